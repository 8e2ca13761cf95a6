"""Inputs of the compared kernels, the same for both tools: any size, sound or with one fault.

The fault is always an input of the last program (for grids with y: of the last x), as engines have
it: a slot, a length, an index or a number that was computed wrongly.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Argument = Array | int | float

BLOCK = 16  # positions of a cache block
SEED = 20  # of every input


@dataclass(frozen=True, slots=True)
class Planted:
    """What a tool should say: an access to `tensor` from flat element `element` on, outside of it.

    statement: a piece of the kernel's line that does it.
    """

    kind: str
    tensor: str
    element: int
    statement: str


@dataclass(frozen=True, slots=True)
class Workload:
    """One launch. arguments: by name, in the kernel's order; arrays are flat.

    outputs: names of the arrays that the kernel changes. owners: for each tensor that has them, the
    elements of a unit and int32[units], the owners; program x works for request x. empty: names of
    outputs that nobody has written before. joined: names of arrays that lie in one allocation, one
    behind the other.
    """

    grid: tuple[int, int, int]
    arguments: Mapping[str, Argument]
    outputs: tuple[str, ...]
    owners: Mapping[str, tuple[int, Array]] = field(default_factory=dict)
    planted: tuple[Planted, ...] = ()
    empty: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()

    @property
    def programs(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    def fresh(self) -> dict[str, Argument]:
        """The arguments, arrays copied."""
        copies = {
            name: value.copy() if isinstance(value, np.ndarray) else value
            for name, value in self.arguments.items()
        }
        if self.joined:
            arrays = [np.asarray(self.arguments[name]) for name in self.joined]
            parts = np.split(np.concatenate(arrays), np.cumsum([a.size for a in arrays])[:-1])
            copies.update(zip(self.joined, parts, strict=True))
        return copies


def scatter(tokens: int, *, faulty: bool) -> Workload:
    width, draw = 128, np.random.default_rng(SEED)
    blocks = draw.permutation(tokens).astype(np.int32)
    slots = blocks.astype(np.int64) * BLOCK + draw.integers(0, BLOCK, tokens)
    planted: tuple[Planted, ...] = ()
    if faulty:
        slots[-1] = tokens * BLOCK + 3
        planted = tuple(
            Planted("out_of_bounds_write", name, int(slots[-1]) * width, f"tl.store({name} ")
            for name in ("key_cache", "value_cache")
        )
    owner = np.empty(tokens, np.int32)
    owner[blocks] = np.arange(tokens, dtype=np.int32)
    arguments: dict[str, Argument] = {
        "key": draw.standard_normal(tokens * width).astype(np.float16),
        "value": draw.standard_normal(tokens * width).astype(np.float16),
        "key_cache": np.zeros(tokens * BLOCK * width, np.float16),
        "value_cache": np.zeros(tokens * BLOCK * width, np.float16),
        "slots": slots,
    }
    owners = dict.fromkeys(("key_cache", "value_cache"), (BLOCK * width, owner))
    outputs = ("key_cache", "value_cache")
    return Workload((tokens, 1, 1), arguments, outputs, owners, planted, outputs)


def draft_slots(rows: int, *, faulty: bool) -> Workload:
    drafts, columns, draw = 3, 8, np.random.default_rng(SEED)
    lengths = draw.integers(1, columns * BLOCK - drafts, rows).astype(np.int32)
    planted: tuple[Planted, ...] = ()
    if faulty:
        lengths[-1] = columns * BLOCK - 1
        planted = (Planted("out_of_bounds_read", "block_table", rows * columns, "tl.load(entry"),)
    arguments: dict[str, Argument] = {
        "lengths": lengths,
        "block_table": draw.permutation(rows * columns).astype(np.int32),
        "slots": np.zeros(rows * drafts, np.int64),
        "drafts": drafts,
        "table_stride": columns,
    }
    each = np.arange(rows, dtype=np.int32)
    owners = {"block_table": (columns, each), "slots": (drafts, each)}
    return Workload((rows, 1, 1), arguments, ("slots",), owners, planted, ("slots",))


def paged_decode(rows: int, heads: int, positions: int, *, faulty: bool) -> Workload:
    width, draw = 64, np.random.default_rng(SEED)
    columns = -(-positions // BLOCK)
    blocks = rows * columns
    table = draw.permutation(blocks).astype(np.int32)
    owner = np.empty(blocks, np.int32)
    owner[table] = np.repeat(np.arange(rows, dtype=np.int32), columns)
    record = BLOCK * heads * width
    planted: tuple[Planted, ...] = ()
    if faulty:
        table[-1] = blocks + 2
        planted = tuple(
            Planted("out_of_bounds_read", name, (blocks + 2) * record, f"tl.load({name} ")
            for name in ("key_cache", "value_cache")
        )
    arguments: dict[str, Argument] = {
        "query": draw.standard_normal(rows * heads * width).astype(np.float16),
        "key_cache": draw.standard_normal(blocks * record, np.float32).astype(np.float16),
        "value_cache": draw.standard_normal(blocks * record, np.float32).astype(np.float16),
        "block_table": table,
        "lengths": (positions - np.arange(rows) % 7).astype(np.int32),
        "out": np.zeros(rows * heads * width, np.float32),
        "heads": heads,
        "head_dim": width,
        "table_stride": columns,
        "scale": width**-0.5,
    }
    each = np.arange(rows, dtype=np.int32)
    owners = {
        "block_table": (columns, each),
        "key_cache": (record, owner),
        "value_cache": (record, owner),
        "out": (heads * width, each),
    }
    return Workload((rows, heads, 1), arguments, ("out",), owners, planted, ("out",))


def gumbel_argmax(rows: int, vocab: int, *, faulty: bool) -> Workload:
    draw = np.random.default_rng(SEED)
    sizes = np.full(rows, vocab, np.int32)
    planted: tuple[Planted, ...] = ()
    if faulty:
        sizes[-1] = vocab + 1
        planted = (Planted("out_of_bounds_read", "logits", rows * vocab, "tl.load(logits "),)
    arguments: dict[str, Argument] = {
        "logits": draw.standard_normal(rows * vocab, np.float32) * 4,
        "sizes": sizes,
        "sampled": np.zeros(rows, np.int32),
        "stride": vocab,
        "seed": 7,
    }
    owners = {"logits": (vocab, np.arange(rows, dtype=np.int32))}
    return Workload((rows, 1, 1), arguments, ("sampled",), owners, planted, ("sampled",))


def gated_delta(rows: int, *, faulty: bool) -> Workload:
    keys, values, draw = 128, 8, np.random.default_rng(SEED)
    states = rows + 1
    index = (1 + draw.permutation(rows)).astype(np.int32)
    owner = np.full(states, -1, np.int32)
    owner[index] = np.arange(rows, dtype=np.int32)
    planted: tuple[Planted, ...] = ()
    if faulty:
        index[-1] = states + 1
        element = (states + 1) * keys * values
        planted = (
            Planted("out_of_bounds_read", "state", element, "tl.load(state + "),
            Planted("out_of_bounds_write", "state", element, "tl.store(state + "),
        )
    unit = draw.standard_normal((rows, keys), np.float32)
    arguments: dict[str, Argument] = {
        "q": draw.standard_normal(rows * keys, np.float32),
        "k": (unit / np.linalg.norm(unit, axis=1, keepdims=True)).reshape(-1),
        "v": draw.standard_normal(rows * values, np.float32),
        "decay": -draw.random(rows, np.float32),
        "beta": draw.random(rows, np.float32),
        "state": draw.standard_normal(states * keys * values, np.float32),
        "state_index": index,
        "out": np.zeros(rows * values, np.float32),
        "values": values,
    }
    owners = {"state": (keys * values, owner)}
    outputs = ("out", "state")
    return Workload((rows, 1, 1), arguments, outputs, owners, planted, ("out",))


def expert_counts(programs: int, *, faulty: bool) -> Workload:
    experts, draw = 64, np.random.default_rng(SEED)
    chosen = draw.integers(0, experts, programs * 32).astype(np.int32)
    planted: tuple[Planted, ...] = ()
    if faulty:
        chosen[-1] = experts + 5
        planted = (Planted("out_of_bounds_write", "counts", experts + 5, "tl.atomic_add(counts "),)
    arguments: dict[str, Argument] = {"experts": chosen, "counts": np.zeros(experts, np.int32)}
    return Workload((programs, 1, 1), arguments, ("counts",), {}, planted)


def vector_add(programs: int, *, faulty: bool) -> Workload:
    draw, size = np.random.default_rng(SEED), programs * 1024 - 5
    planted: tuple[Planted, ...] = ()
    if faulty:
        planted = (
            Planted("out_of_bounds_read", "left", size, "tl.load(left "),
            Planted("out_of_bounds_read", "right", size, "tl.load(right "),
            Planted("out_of_bounds_write", "out", size, "tl.store(out "),
        )
    arguments: dict[str, Argument] = {
        "left": draw.standard_normal(size, np.float32),
        "right": draw.standard_normal(size, np.float32),
        "out": np.zeros(size, np.float32),
        "size": size + faulty,
    }
    return Workload((programs, 1, 1), arguments, ("out",), {}, planted, ("out",))


def one_allocation(tokens: int, *, faulty: bool) -> Workload:
    """`scatter` where both caches lie in one allocation, the keys' overrun within the values."""
    apart = scatter(tokens, faulty=faulty)
    return dataclasses.replace(apart, joined=("key_cache", "value_cache"))


@dataclass(frozen=True, slots=True)
class Subject:
    """A kernel with inputs of three sizes: the arguments of `build` for each."""

    op: str
    build: Callable[..., Workload]
    sizes: Mapping[str, tuple[int, ...]]


SUBJECTS: Mapping[str, Subject] = {
    "scatter": Subject("scatter", scatter, {"small": (8,), "medium": (128,), "large": (2048,)}),
    "draft_slots": Subject(
        "draft_slots", draft_slots, {"small": (8,), "medium": (256,), "large": (4096,)}
    ),
    "paged_decode": Subject(
        "paged_decode",
        paged_decode,
        {"small": (2, 2, 40), "medium": (32, 2, 256), "large": (128, 2, 1024)},
    ),
    "gumbel_argmax": Subject(
        "gumbel_argmax",
        gumbel_argmax,
        {"small": (2, 1000), "medium": (8, 8000), "large": (16, 32000)},
    ),
    "gated_delta": Subject(
        "gated_delta", gated_delta, {"small": (4,), "medium": (64,), "large": (512,)}
    ),
    "expert_counts": Subject(
        "expert_counts", expert_counts, {"small": (8,), "medium": (128,), "large": (2048,)}
    ),
    "vector_add": Subject(
        "vector_add", vector_add, {"small": (8,), "medium": (128,), "large": (2048,)}
    ),
}
# Looked at for what is found, not for time.
VARIATIONS: Mapping[str, Subject] = {
    "scatter, both caches in one allocation": Subject("scatter", one_allocation, {"small": (8,)}),
    "scatter, `if slot < 0: return`": Subject("scatter_or_return", scatter, {"small": (8,)}),
}


def subject(name: str) -> Subject:
    return {**SUBJECTS, **VARIATIONS}[name]
