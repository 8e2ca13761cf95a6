"""A lowered kernel: what the machine runs.

A program is a list of basic blocks, a block a list of closures over one register file: a list with
an array a slot. Arrays hold one value a thread, or one value for all (size 1); none is ever changed
in place. Each block exists twice: `fast` for when no thread is elsewhere and results may be written
for all, `slow` with results merged into those of the threads that are elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .dtypes import DType
from .ptx import Instruction
from .sites import Site

File = list[Any]  # the register file
Op = Callable[[File], None]
Make = Callable[[int], Op]  # destination slot -> closure

# Slots that every program has: active threads (bool[n], None for all), the launch's memory and
# the batch's geometry.
MASK, MEMORY, GEOMETRY = 0, 1, 2

BARRIERS = 16  # of a block

MAX_SHARED = 227 << 10  # bytes of a block, the most any device has
MAX_LOCAL = 64 << 10  # bytes of a thread; devices have 512 KB, but not for all threads at once


@dataclass(frozen=True, slots=True)
class End:
    """How a block ends. kind: jump, fall, return, trap, barrier, named, arrive.

    predicate: slot of the threads for which that holds (None: all); the others fall through.
    target: of a jump, a block. barrier: its number. number, count: of named barriers and arrivals,
    slots of the barrier's number and of how many threads it waits for (None: all of the block).
    brings: slot of the predicate that each thread brings to a named barrier.
    """

    kind: str
    instruction: Instruction
    predicate: int | None = None
    target: int = 0
    barrier: int = 0
    number: int = 0
    count: int | None = None
    brings: int | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A basic block. members: slot of the member mask when it begins with a meeting."""

    fast: tuple[Op, ...]
    slow: tuple[Op, ...]
    end: End
    length: int
    members: int | None
    first: Instruction


@dataclass(frozen=True, slots=True)
class Program:
    """A lowered kernel. template: the register file before the batch's own values are put in.

    specials: slot of each special register used. params: (parameter, byte, dtype, slot).
    shared_static, local_bytes: bytes a block, a thread. addressed: parameters whose address is
    taken. grain: log2 of the bytes of the narrowest access. invented: special registers that it
    reads and whose values are made up. brought: slot of what barriers of some threads collected.
    sites: by the identity of its instruction, each access that is the only one of its own.
    polling: whether threads may wait for others by polling memory.
    """

    blocks: tuple[Block, ...]
    template: tuple[Any, ...]
    specials: dict[str, int]
    params: tuple[tuple[int, int, DType, int], ...]
    shared_static: int
    local_bytes: int
    addressed: tuple[int, ...]
    grain: int = 0
    invented: tuple[str, ...] = ()
    brought: int | None = None
    sites: Mapping[int, Site] = field(default_factory=dict)
    polling: bool = False
