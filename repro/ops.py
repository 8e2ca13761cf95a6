"""What a scenario may call: tensors, and one method an op that turns its arguments into a launch.

The scenario does not know which lane runs it. A lane is a `Device`: it makes tensors, executes
launches and lets the host read and write. The reference lane executes the Python reference of an
op, which touches memory only through `Tensor.load` and `Tensor.store`; they record and mask wrong
accesses. No other lane uses those two: bounds are checked twice, by code that shares nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .records import Kind

EVERYBODY = -1  # the null block and other shared units: any request may touch them
NOBODY = -2  # a free unit: an access by any request is foreign

DTYPE_NAMES = {
    "float16": "fp16",
    "float32": "fp32",
    "int32": "int32",
    "int64": "int64",
    "uint16": "uint16",
}

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Owners:
    """Who may touch which unit of a tensor.

    unit: elements in a unit (a block-table row, a KV block...). of: int32[units], the request that
    owns each unit, EVERYBODY or NOBODY; the scenario keeps it up to date while blocks change hands.
    """

    unit: int
    of: NDArray[np.int32]


class Recorder(Protocol):
    """Where `Tensor` reports what a reference did wrong."""

    def wrong(self, kind: Kind, tensor: Tensor, elements: NDArray[np.int64], row: int) -> None: ...

    def request(self, row: int) -> int | None:
        """The request that row `row` of the current launch works for; None: not declared."""


class Tensor:
    """A named array of a device.

    data: the storage, one-dimensional; an element is numbered by its place in it. shape, strides:
    in elements. behind: what lies right behind the storage in memory, where a scenario states it:
    an out-of-bounds read that lands there is a finding and returns it.
    """

    __slots__ = ("behind", "data", "name", "owners", "recorder", "shape", "strides")

    def __init__(
        self,
        name: str,
        data: Array,
        shape: Sequence[int],
        *,
        strides: Sequence[int] | None = None,
        owners: Owners | None = None,
        behind: Array | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        if data.ndim != 1 or (behind is not None and behind.dtype != data.dtype):
            raise ValueError(f"{name}: storage and what lies behind it are flat and of one dtype")
        self.name = name
        self.data = data
        self.shape = tuple(shape)
        self.strides = tuple(strides) if strides is not None else contiguous(self.shape)
        self.owners = owners
        self.behind = behind
        self.recorder = recorder

    @property
    def size(self) -> int:
        """Elements of storage."""
        return int(self.data.size)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype

    def __repr__(self) -> str:
        name = DTYPE_NAMES.get(self.dtype.name, self.dtype.name)
        return f"{self.name} {name}[{', '.join(map(str, self.shape))}]"

    def load(self, index: ArrayLike, *, row: int) -> Array:
        """Elements at `index` (any shape of int), for row `row` of the launch; 0 where masked."""
        at = np.asarray(index, dtype=np.int64)
        inside = (at >= 0) & (at < self.size)
        if inside.all():
            values = self.data[at]
        else:
            self._report(Kind.OUT_OF_BOUNDS_READ, at[~inside], row)
            values = np.zeros(at.shape, self.dtype)
            values[inside] = self.data[at[inside]]
            if self.behind is not None:
                beyond = at - self.size
                stated = (beyond >= 0) & (beyond < self.behind.size)
                values[stated] = self.behind[beyond[stated]]
        self._check_owner(Kind.FOREIGN_READ, at[inside], row)
        return values

    def store(self, index: ArrayLike, values: ArrayLike, *, row: int) -> None:
        """Store `values` (broadcast) at `index`; out-of-bounds elements are recorded, not done."""
        at = np.asarray(index, dtype=np.int64)
        new = np.broadcast_to(np.asarray(values, dtype=self.dtype), at.shape)
        inside = (at >= 0) & (at < self.size)
        if not inside.all():
            self._report(Kind.OUT_OF_BOUNDS_WRITE, at[~inside], row)
        self._check_owner(Kind.FOREIGN_WRITE, at[inside], row)
        self.data[at[inside]] = new[inside]

    def _check_owner(self, kind: Kind, at: NDArray[np.int64], row: int) -> None:
        if self.owners is None or self.recorder is None or at.size == 0:
            return
        request = self.recorder.request(row)
        if request is None:
            return
        owner = self.owners.of[at // self.owners.unit]
        foreign = (owner != request) & (owner != EVERYBODY)
        if foreign.any():
            self._report(kind, at[foreign], row)

    def _report(self, kind: Kind, at: NDArray[np.int64], row: int) -> None:
        if self.recorder is None:
            raise IndexError(f"{kind} of {self!r} at element {int(at.flat[0])}")
        self.recorder.wrong(kind, self, at.reshape(-1), row)


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides of `shape`, in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(1, int(extent))
    return tuple(reversed(strides))


Argument = Tensor | int | float | None


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of one op.

    args: by parameter name, as the kernel's manifest and the reference's signature name them; None
    is a null pointer. grid: blocks in x, y, z; x is the *row* of the op (a token or a request).
    requests: int32[grid x], the request each row works for (EVERYBODY: no request, not checked).
    step: what the scenario calls this moment, for the reader (draft step, engine step).
    """

    index: int
    op: str
    args: Mapping[str, Argument]
    grid: tuple[int, int, int]
    requests: NDArray[np.int32] | None
    step: int | None


class StoppedError(Exception):
    """A lane ends the trial at its first finding, because it was asked to."""


class Device(Protocol):
    """A lane's side of the ops."""

    def tensor(
        self,
        name: str,
        values: Array,
        *,
        owners: Owners | None = None,
        behind: Array | None = None,
    ) -> Tensor:
        """A tensor holding a copy of `values`, contiguous, aligned to 256 bytes."""

    def launch(self, launch: Launch) -> None: ...

    def read(self, tensor: Tensor) -> Array:
        """A host copy, in the tensor's shape; waits for the launches before it."""

    def write(self, tensor: Tensor, values: ArrayLike) -> None:
        """Overwrite the whole tensor from the host."""

    def allocate(self, name: str, size: int) -> bool:
        """Ask for `size` bytes; False where the device does not have them."""


class Ops:
    """The ops, for a scenario. `step` labels the launches that follow."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.step: int | None = None
        self.launches = 0

    def slot_mapping(
        self,
        query_start: Tensor,
        positions: Tensor,
        block_table: Tensor,
        slots: Tensor,
        *,
        block_size: int,
        requests: ArrayLike | None = None,
    ) -> None:
        """slots[t] = block_table[r, positions[t] // block_size] * block_size + offset.

        query_start int32[requests + 1], positions int64[tokens], block_table int32[requests,
        columns], slots int64[>= tokens]; slots past the last token become -1. Rows: requests.
        """
        count = query_start.shape[0] - 1
        rows = None
        if requests is not None:  # the program after the last request only pads
            rows = np.append(np.asarray(requests, np.int32), EVERYBODY)
        self._launch(
            "slot_mapping",
            (count + 1, 1, 1),
            rows,
            query_start=query_start,
            positions=positions,
            block_table=block_table,
            slots=slots,
            num_requests=count,
            num_slots=slots.shape[0],
            table_stride=block_table.strides[0],
            block_size=block_size,
        )

    def draft_step(
        self,
        positions: Tensor,
        seq_lens: Tensor,
        block_table: Tensor,
        slots: Tensor,
        *,
        block_size: int,
        limit: int,
        at_limit: int,
        requests: ArrayLike | None = None,
    ) -> None:
        """Advance every request by one draft token, in place; see kernels/draft_step.

        positions int64[requests], seq_lens int32[requests], slots int64[requests]. at_limit: what
        happens to a position >= limit (AT_LIMIT of the draft_step reference). Rows: requests.
        """
        self._launch(
            "draft_step",
            (positions.shape[0], 1, 1),
            requests,
            positions=positions,
            seq_lens=seq_lens,
            block_table=block_table,
            slots=slots,
            table_stride=block_table.strides[0],
            block_size=block_size,
            limit=limit,
            at_limit=at_limit,
        )

    def kv_write(
        self,
        key: Tensor,
        value: Tensor,
        key_cache: Tensor,
        value_cache: Tensor,
        slots: Tensor,
        *,
        requests: ArrayLike | None = None,
    ) -> None:
        """key_cache[slots[t]] = key[t], the same for value; slot -1 is skipped.

        key, value [tokens, ...], caches [slots, ...], all of one 16-bit dtype; slots int64[tokens].
        Rows: tokens.
        """
        width = int(np.prod(key.shape[1:], dtype=np.int64))
        self._launch(
            "kv_write",
            (key.shape[0], 1, 1),
            requests,
            key=key,
            value=value,
            key_cache=key_cache,
            value_cache=value_cache,
            slots=slots,
            width=width,
            key_stride=key.strides[0],
            value_stride=value.strides[0],
            cache_stride=key_cache.strides[0],
        )

    def rope(
        self,
        x: Tensor,
        positions: Tensor,
        table: Tensor,
        *,
        requests: ArrayLike | None = None,
    ) -> None:
        """Rotate x fp16[tokens, heads, dim] in place by table fp32[positions, dim] (cos | sin).

        positions int64[tokens]. Rows: tokens.
        """
        self._launch(
            "rope",
            (x.shape[0], 1, 1),
            requests,
            x=x,
            positions=positions,
            table=table,
            heads=x.shape[1],
            head_dim=x.shape[2],
            x_stride=x.strides[0],
            table_stride=table.strides[0],
        )

    def paged_attention(
        self,
        query: Tensor,
        key_cache: Tensor,
        value_cache: Tensor,
        block_table: Tensor,
        query_start: Tensor,
        seq_lens: Tensor,
        out: Tensor,
        *,
        block_size: int,
        scale: float,
        window: int = 0,
        requests: ArrayLike | None = None,
    ) -> None:
        """Causal attention of each request's last tokens over its paged KV cache.

        query fp16[tokens, heads, dim], caches fp16[slots, kv heads, dim], block_table
        int32[requests, columns], query_start int32[requests + 1], seq_lens int32[requests] (the
        request's whole length, its queries being the last of it), out fp32 like query. window > 0:
        a query sees that many positions, itself included. Rows: requests.
        """
        self._launch(
            "paged_attention",
            (seq_lens.shape[0], query.shape[1], 1),
            requests,
            query=query,
            key_cache=key_cache,
            value_cache=value_cache,
            block_table=block_table,
            query_start=query_start,
            seq_lens=seq_lens,
            out=out,
            head_dim=query.shape[2],
            group=query.shape[1] // key_cache.shape[1],
            query_stride=query.strides[0],
            out_stride=out.strides[0],
            cache_stride=key_cache.strides[0],
            table_stride=block_table.strides[0],
            block_size=block_size,
            window=window,
            scale=float(scale),
        )

    def rejection_sample(
        self,
        draft_start: Tensor,
        draft_tokens: Tensor,
        draft_probs: Tensor | None,
        target_probs: Tensor,
        bonus_tokens: Tensor,
        uniform: Tensor,
        noise: Tensor,
        output: Tensor,
        *,
        greedy: bool,
        requests: ArrayLike | None = None,
    ) -> None:
        """Accept drafts from the left, then one recovered or bonus token, then -1.

        draft_start int32[requests + 1], draft_tokens int32[drafts], draft_probs fp32[drafts, vocab]
        (None: the draft has no distribution), target_probs fp32[drafts, vocab], bonus_tokens
        int32[requests], uniform fp32[drafts], noise fp32[requests, vocab] (exponential, for the
        recovered token), output int32[requests, k + 1]. Rows: requests.
        """
        self._launch(
            "rejection_sample",
            (output.shape[0], 1, 1),
            requests,
            draft_start=draft_start,
            draft_tokens=draft_tokens,
            draft_probs=draft_probs,
            target_probs=target_probs,
            bonus_tokens=bonus_tokens,
            uniform=uniform,
            noise=noise,
            output=output,
            output_stride=output.strides[0],
            vocab=target_probs.shape[1],
            greedy=int(greedy),
            has_draft_probs=int(draft_probs is not None),
        )

    def _launch(
        self,
        op: str,
        grid: tuple[int, int, int],
        requests: ArrayLike | None,
        **args: Argument,
    ) -> None:
        if min(grid) == 0:  # an empty batch launches nothing, as a framework would
            return
        rows = None if requests is None else np.asarray(requests, np.int32)
        if rows is not None and rows.shape != (grid[0],):
            raise ValueError(f"{op}: {grid[0]} rows, but requests for {rows.shape}")
        self.device.launch(Launch(self.launches, op, args, grid, rows, self.step))
        self.launches += 1
