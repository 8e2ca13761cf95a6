"""Which plan a delayed copy carries: arithmetic on the schedule, without a device.

A draft pass queues a fixed number of pieces of work. The host writes a buffer and queues the copy
of it; the copy reads the buffer when it executes, so it carries the plan that was written last by
then. This file counts pieces; `repro/ops/timeline.py` executes them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

ENGINE_BUFFERS = ("page_indptr", "page_indices", "last_page_len")
LIBRARY_BUFFER = "split"
BUFFERS = (*ENGINE_BUFFERS, LIBRARY_BUFFER)
# Pieces of one pass in the order they are queued: a copy by the name of its buffer, else a launch.
# The engine's buffers are written before the first of their copies, the library's before its own.
PASS = ("draft_step", *BUFFERS, "rope", "rope", "kv_write", "planned_attention", "merge_states")
WRITES = {"page_indptr": ENGINE_BUFFERS, LIBRARY_BUFFER: (LIBRARY_BUFFER,)}


@dataclass(frozen=True, slots=True)
class Pace:
    """How far the host runs ahead, in pieces; drawn anew for each piece unless `steady`."""

    host_ahead: int
    seed: int
    steady: bool


def arrivals(passes: int, pace: Pace, reused: Sequence[str]) -> list[dict[str, int]]:
    """For each pass and buffer: the pass whose plan its copy carries.

    reused: the buffers whose host memory every plan overwrites; the others get new memory.
    """
    draw = random.Random(pace.seed)  # noqa: S311 - a schedule, not a secret
    carried: list[dict[str, int]] = [{} for _ in range(passes)]
    waiting: list[tuple[int, str]] = []
    written = dict.fromkeys(BUFFERS, -1)

    def execute_down_to(left: int) -> None:
        while len(waiting) > left:
            number, piece = waiting.pop(0)
            if piece in BUFFERS:
                carried[number][piece] = written[piece] if piece in reused else number

    for number in range(passes):
        for piece in PASS:
            for buffer in WRITES.get(piece, ()):
                written[buffer] = number
            waiting.append((number, piece))
            ahead = pace.host_ahead
            if ahead and not pace.steady:
                ahead = draw.randint(0, ahead)
            execute_down_to(ahead)
    execute_down_to(0)
    return carried
