"""The parts of a serving engine that the speculative-decoding scenarios share.

Requests grow by engine steps. A step runs the target over each request's last token and its drafts,
keeps what the target would have said, and lets the draft layer propose again. Target and draft are
the same toy model with caches of their own, so what one does to its cache never shows in the other.
Tensors of the target carry the prefix `target_`; those without a prefix belong to the draft layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ops import EVERYBODY, NOBODY, Ops, Owners, Tensor
from . import toy_model as model


@dataclass(slots=True)
class Request:
    """A request in flight. `tokens` are all of it, the last one not yet computed by the target."""

    number: int
    tokens: list[int]
    end: int
    target_done: int = 0  # positions whose KV the target layer holds
    draft_done: int = 0  # the same of the draft layer
    drafts: list[int] = field(default_factory=list)
    drafted: int = 0
    accepted: int = 0
    grown: list[int] = field(default_factory=list)  # new tokens by engine step

    @property
    def length(self) -> int:
        return len(self.tokens)

    @property
    def finished(self) -> bool:
        return self.length >= self.end


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens of one request that a layer computes: `queries` of them, at the end, are asked for."""

    request: int
    start: int
    tokens: Sequence[int]
    queries: int


class Pages:
    """Block tables, and who owns which block.

    Block 0 is the null block: every unset column names it and it belongs to everybody, as in vLLM.
    The unit names are those a case may use under `owners`.
    """

    def __init__(
        self, ops: Ops, *, block_size: int, columns: int, owners: Mapping[str, str]
    ) -> None:
        self.ops = ops
        self.block_size = block_size
        self.columns = columns
        self.declared = owners
        self.rows: dict[int, NDArray[np.int32]] = {}
        self.owner: list[int] = [EVERYBODY]
        self._tables: dict[tuple[int, ...], Tensor] = {}

    def give(self, request: int, first: int, last: int) -> None:
        """New blocks for positions first ... last - 1 of a request; the rest stays null."""
        row = np.zeros(self.columns, np.int32)
        for column in range(first // self.block_size, -(-last // self.block_size)):
            row[column] = len(self.owner)
            self.owner.append(request)
        self.rows[request] = row

    def one_page(self, request: int) -> None:
        """The whole sequence in block 0 of one huge page: slot = position."""
        self.rows[request] = np.zeros(1, np.int32)

    def block_owners(self, name: str, blocks: int, width: int) -> Owners | None:
        """Owners of a cache with `width` elements a slot, where the case declares them."""
        if self.declared.get(name) != "block":
            return None
        of = np.full(blocks, NOBODY, np.int32)
        of[: len(self.owner)] = self.owner
        return Owners(self.block_size * width, of)

    def table(self, batch: Sequence[int], behind: NDArray[np.int32] | None = None) -> Tensor:
        """The block table of a batch, a row a request, int32[requests, columns]."""
        key = tuple(batch)
        if key not in self._tables:
            rows = np.stack([self.rows[number] for number in batch])
            owners = None
            if self.declared.get("block_table") == "row":
                owners = Owners(rows.shape[1], np.asarray(batch, np.int32))
            self._tables[key] = self.ops.device.tensor(
                "block_table", rows, owners=owners, behind=behind
            )
        return self._tables[key]


class Layer:
    """One attention layer with a paged cache and a rotation table of its own."""

    def __init__(
        self, ops: Ops, prefix: str, pages: Pages, *, slots: int, positions: int, window: int = 0
    ) -> None:
        self.ops = ops
        self.pages = pages
        self.window = window
        width = model.HEADS * model.HEAD_DIM
        shape = (slots, model.HEADS, model.HEAD_DIM)
        caches = []
        for name in (f"{prefix}key_cache", f"{prefix}value_cache"):
            owners = pages.block_owners(name, -(-slots // pages.block_size), width)
            caches.append(ops.device.tensor(name, np.zeros(shape, np.float16), owners=owners))
        self.key_cache, self.value_cache = caches
        table = model.rope_table(positions)
        self.rope_table = ops.device.tensor(f"{prefix}rope_table", table)

    def extend(self, table: Tensor, spans: Sequence[Span]) -> list[list[int]]:
        """Compute spans (prompt chunks, or last token and drafts); next tokens of the queries."""
        device = self.ops.device
        lengths = [len(span.tokens) for span in spans]
        positions = np.concatenate([span.start + np.arange(len(span.tokens)) for span in spans])
        position_tensor = device.tensor("positions", positions.astype(np.int64))
        slots = device.tensor("slots", np.full(len(positions), -1, np.int64))
        self.ops.slot_mapping(
            device.tensor("query_start", starts(lengths)),
            position_tensor,
            table,
            slots,
            block_size=self.pages.block_size,
            requests=[span.request for span in spans],
        )
        seq_lens = [span.start + len(span.tokens) for span in spans]
        return self._run(
            table,
            [span.request for span in spans],
            [list(span.tokens) for span in spans],
            [span.queries for span in spans],
            position_tensor,
            slots,
            device.tensor("seq_lens", np.asarray(seq_lens, np.int32)),
        )

    def step(
        self,
        table: Tensor,
        batch: Sequence[int],
        tokens: Sequence[int],
        positions: Tensor,
        slots: Tensor,
        seq_lens: Tensor,
    ) -> list[int]:
        """Compute one draft token of each request at live positions, slots and lengths."""
        predicted = self._run(
            table, batch, [[t] for t in tokens], [1] * len(batch), positions, slots, seq_lens
        )
        return [row[0] for row in predicted]

    def _run(
        self,
        table: Tensor,
        batch: Sequence[int],
        tokens: Sequence[Sequence[int]],
        queries: Sequence[int],
        positions: Tensor,
        slots: Tensor,
        seq_lens: Tensor,
    ) -> list[list[int]]:
        ops, device = self.ops, self.ops.device
        flat = [token for row in tokens for token in row]
        owner = np.repeat(np.asarray(batch, np.int32), [len(row) for row in tokens])
        ends = np.cumsum([len(row) for row in tokens])
        asked = np.concatenate(
            [np.arange(end - count, end) for end, count in zip(ends, queries, strict=True)]
        )
        query, key, value = model.embed(flat)
        query_tensor = device.tensor("query", query[asked])
        key_tensor = device.tensor("key", key)
        all_positions = device.read(positions)
        query_positions = positions
        if len(asked) != len(flat):
            query_positions = device.tensor("query_positions", all_positions[asked])
        ops.rope(key_tensor, positions, self.rope_table, requests=owner)
        ops.rope(query_tensor, query_positions, self.rope_table, requests=owner[asked])
        ops.kv_write(
            key_tensor,
            device.tensor("value", value),
            self.key_cache,
            self.value_cache,
            slots,
            requests=owner,
        )
        out = device.tensor("out", np.zeros(query[asked].shape, np.float32))
        ops.paged_attention(
            query_tensor,
            self.key_cache,
            self.value_cache,
            table,
            device.tensor("query_start", starts(queries)),
            seq_lens,
            out,
            block_size=self.pages.block_size,
            scale=1.0,
            window=self.window,
            requests=batch,
        )
        lengths = device.read(seq_lens)
        visible = np.concatenate(
            [np.arange(n - count, n) + 1 for n, count in zip(lengths, queries, strict=True)]
        )
        if self.window:
            visible = np.minimum(visible, self.window)
        predicted = iter(model.decode(device.read(out), visible.tolist()))
        return [[next(predicted) for _ in range(count)] for count in queries]


def starts(lengths: Sequence[int]) -> NDArray[np.int32]:
    """int32[requests + 1]: where each request's tokens start in a flat batch, and the end."""
    return np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))]).astype(np.int32)


def verify(
    ops: Ops, batch: Sequence[int], drafts: Sequence[Sequence[int]], said: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Greedy verification: what each request emits of its drafts and the target's own tokens.

    said: the target's next token after the last token and after each draft, one more than drafts.
    """
    device = ops.device
    counts = [len(row) for row in drafts]
    total = sum(counts)
    if total == 0:  # nothing to verify: the ordinary sampler's step
        return [list(row[-1:]) for row in said]
    width = max(counts) + 1
    certain = np.zeros((total, model.VOCAB), np.float32)
    wanted = [token for row in said for token in row[:-1]]
    certain[np.arange(total), wanted] = 1
    flat = [token for row in drafts for token in row]
    output = device.tensor("output_tokens", np.full((len(batch), width), -1, np.int32))
    ops.rejection_sample(
        device.tensor("draft_start", starts(counts)),
        device.tensor("draft_tokens", np.asarray(flat, np.int32)),
        None,
        device.tensor("target_probs", certain),
        device.tensor("bonus_tokens", np.asarray([row[-1] for row in said], np.int32)),
        device.tensor("uniform", np.zeros(total, np.float32)),
        device.tensor("noise", np.ones((len(batch), model.VOCAB), np.float32)),
        output,
        greedy=True,
        requests=batch,
    )
    rows: Any = device.read(output)
    return [[int(token) for token in row if token >= 0] for row in rows]
