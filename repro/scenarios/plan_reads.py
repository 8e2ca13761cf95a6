"""What a split-KV launch reads where it was launched with one plan and finds another.

Index arithmetic on plain integers, from the contents of the buffers alone: the closed form of
`plan_race`. A read past a tensor yields 0, as every lane masks it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..records import Kind
from .split_plan import SplitPlan
from .toy_tokens import HEAD_DIM, HEADS, SHARPNESS, next_token

Place = tuple[Kind, str, str]  # kind, op, tensor
Seen = tuple[float, float, float, float]  # log-sum-exp and mean of head 0, the same of head 1

WIDTH = HEADS * HEAD_DIM
CLEAR = 0.01  # a mean nearer than this to the middle of two integers may be rounded either way
NOTHING: Seen = (-math.inf, 0.0, -math.inf, 0.0)
MASKED: Seen = (0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Caches:
    """What the draft layer's caches hold: request r has blocks 1 + r * columns and on.

    tokens: of each request, as the target would say them; filled: positions written so far.
    """

    block_size: int
    columns: int
    tokens: Sequence[Sequence[int]]
    filled: Sequence[int]

    def owner(self, block: int) -> int | None:
        """The request that owns a block; None: the null block, which is everybody's."""
        return (block - 1) // self.columns if block else None

    def content(self, block: int, offset: int) -> tuple[int, int] | None:
        """Position and token in a slot; None: nothing was written there."""
        owner = self.owner(block)
        if owner is None:
            return None
        position = (block - 1) % self.columns * self.block_size + offset
        return (position, self.tokens[owner][position]) if position < self.filled[owner] else None


@dataclass(slots=True)
class Reads:
    """Wrong elements by place, and what each request's draft may have become."""

    wrong: dict[Place, set[int]] = field(default_factory=lambda: defaultdict(set))
    drafts: list[set[int]] = field(default_factory=list)


def launch_reads(
    plan: SplitPlan, held: Mapping[str, Sequence[int]], caches: Caches, lengths: Sequence[int]
) -> Reads:
    """Reads of planned_attention and merge_states launched with `plan` over buffers `held`.

    lengths: positions each request has in this pass, its query being the last of them.
    """
    reads = Reads()
    chunks = [_chunk(plan, row, held, caches, lengths, reads.wrong) for row in range(plan.chunks)]
    for request, length in enumerate(lengths):
        first, last = (held["split"][plan.indptr_at + request + i] for i in (0, 1))
        parts = []
        for row in range(first, last):
            if row < plan.chunks:
                parts.append(chunks[row])
                continue
            parts.append(MASKED)
            for tensor, width in (("partial_lse", HEADS), ("partial_out", WIDTH)):
                place = (Kind.OUT_OF_BOUNDS_READ, "merge_states", tensor)
                reads.wrong[place].update(range(row * width, (row + 1) * width))
        _, mean, _, own = _merged(parts)
        reads.drafts.append(
            {
                next_token(total, last_token)
                for total in _rounded(mean * length)
                for last_token in _rounded(own)
            }
        )
    return reads


def _chunk(
    plan: SplitPlan,
    row: int,
    held: Mapping[str, Sequence[int]],
    caches: Caches,
    lengths: Sequence[int],
    wrong: dict[Place, set[int]],
) -> Seen:
    def load(tensor: str, at: int, size: int) -> int:
        if at < size:
            return held[tensor][at]
        wrong[Kind.OUT_OF_BOUNDS_READ, "planned_attention", tensor].add(at)
        return 0

    count = len(lengths)
    request = held["split"][plan.request_at + row]
    tile = held["split"][plan.tile_at + row]
    first = load("page_indptr", request, count + 1)
    pages = load("page_indptr", request + 1, count + 1) - first
    length = (pages - 1) * caches.block_size + load("last_page_len", request, count)
    begin = tile * plan.pages_in_chunk * caches.block_size
    scores, values = [], []
    for position in range(begin, min(length, begin + plan.pages_in_chunk * caches.block_size)):
        block = held["page_indices"][first + position // caches.block_size]
        offset = position % caches.block_size
        if caches.owner(block) not in (None, plan.requests[row]):
            slot = block * caches.block_size + offset
            for tensor in ("key_cache", "value_cache"):
                place = (Kind.FOREIGN_READ, "planned_attention", tensor)
                wrong[place].update(range(slot * WIDTH, (slot + 1) * WIDTH))
        content = caches.content(block, offset)
        scores.append(_score(lengths[request] - 1 - content[0]) if content else 0.0)
        values.append(float(content[1]) if content else 0.0)
    if not values:
        return NOTHING
    return _merged(
        [(0.0, value, score, value) for score, value in zip(scores, values, strict=True)]
    )


def _score(distance: int) -> float:
    """Query times key of head 1: a sum of rotations, highest at one's own position."""
    half = HEAD_DIM // 2
    return SHARPNESS * sum(
        math.cos(distance * 10000.0 ** (-2.0 * i / HEAD_DIM)) for i in range(half)
    )


def _merged(parts: Sequence[Seen]) -> Seen:
    """Log-sum-exp and mean of both heads over partial results; 0 where none has weight."""
    seen: list[float] = []
    for head in (0, 2):
        peak = max((part[head] for part in parts), default=-math.inf)
        if peak == -math.inf:
            seen += NOTHING[:2]
            continue
        weights = [math.exp(part[head] - peak) for part in parts]
        total = sum(weights)
        mean = sum(w * part[head + 1] for w, part in zip(weights, parts, strict=True)) / total
        seen += [peak + math.log(total), mean]
    return seen[0], seen[1], seen[2], seen[3]


def _rounded(value: float) -> set[int]:
    """The integers that `value` may be rounded to."""
    return {round(value - CLEAR), round(value + CLEAR)}
