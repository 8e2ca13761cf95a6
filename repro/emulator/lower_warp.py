"""What threads of a warp do together: shuffles, votes, matches, reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .builder import Builder
from .closures import copy
from .dtypes import BOOL, DTYPES, F32, SIGNED, UNSIGNED, Array, DType
from .geometry import WARP, Geometry
from .named_barriers import COLLECTED
from .program import GEOMETRY, MASK, File, Make
from .ptx import Immediate, Instruction, Pair, Sink

U32 = UNSIGNED[4]
_BITS = np.uint32(1) << np.arange(WARP, dtype=np.uint32)


def shuffle(builder: Builder, instruction: Instruction) -> None:
    """shfl.sync: `d|p, a, b, c, membermask`."""
    words = instruction.modifiers
    if (
        len(words) != 3
        or words[0] != "sync"
        or words[1] not in ("up", "down", "bfly", "idx")
        or words[2] != "b32"
        or len(instruction.operands) != 5
    ):
        builder.unsupported()
    mode = words[1]
    target, value, where, clamp, _ = instruction.operands
    result = target.first if isinstance(target, Pair) else target
    dtype = builder.home(result, DTYPES["b32"])
    source = builder.read(value, dtype, bits=True)
    b, c = builder.read(where, U32), builder.read(clamp, U32)
    key = None
    if isinstance(where, Immediate) and isinstance(clamp, Immediate):
        key = (mode, where.value, clamp.value)
    lanes = builder.slot()
    holds = builder.slot()

    def prepare(file: File) -> None:
        geometry: Geometry = file[GEOMETRY]
        found = geometry.shuffles.get(key)
        if found is None:
            found = _sources(geometry, mode, file[b], file[c])
            if key is not None:
                geometry.shuffles[key] = found
        file[lanes], file[holds] = found

    builder.both(prepare)

    def make(d: int) -> Callable[[File], None]:
        def run(file: File) -> None:
            values = file[source]
            file[d] = values if values.size == 1 else values[file[lanes]]

        return run

    builder.assign(result, dtype, make)
    if isinstance(target, Pair):
        builder.assign(target.second, BOOL, copy(holds))


def _sources(geometry: Geometry, mode: str, b: Array, c: Array) -> tuple[Array, Array]:
    """For each lane the lane it reads from, and whether that is in range (PTX ISA, shfl.sync)."""
    lane = geometry.warp_lane
    b, c = b.astype(np.int64), c.astype(np.int64)
    by, clamp, segment = b & 31, c & 31, (c >> 8) & 31
    most = (lane & segment) | (clamp & ~segment)
    if mode == "up":
        source = lane - by
        holds = source >= most
    elif mode == "idx":
        source = (lane & segment) | (by & ~segment)
        holds = source <= most
    else:
        source = lane + by if mode == "down" else lane ^ by
        holds = source <= most
    source = np.where(holds, source, lane)
    return geometry.lane - lane + source, holds


def _active(file: File, members: int) -> Array:
    """bool[warps, 32]: the lanes that execute and are named."""
    geometry: Geometry = file[GEOMETRY]
    named = (file[members].view(np.uint32) >> geometry.warp_lane.astype(np.uint32)) & np.uint32(1)
    active = named.astype(np.bool_)
    if file[MASK] is not None:
        active = active & file[MASK]
    result: Array = active.reshape(-1, WARP)
    return result


def _spread(file: File, values: Array) -> Array:
    """A value a lane as [warps, 32]."""
    return np.broadcast_to(values, file[GEOMETRY].lanes).reshape(-1, WARP)


def _ballot(bits: Array) -> Array:
    """uint32[warps] of bool[warps, 32]."""
    result: Array = np.bitwise_or.reduce(np.where(bits, _BITS, np.uint32(0)), axis=1)
    return result


def vote(builder: Builder, instruction: Instruction) -> None:
    """vote.sync: all, any, uni, ballot."""
    words = instruction.modifiers
    forms = {("all", "pred"), ("any", "pred"), ("uni", "pred"), ("ballot", "b32")}
    if len(words) != 3 or words[0] != "sync" or (words[1], words[2]) not in forms:
        builder.unsupported()
    if len(instruction.operands) != 3:
        builder.unsupported()
    mode = words[1]
    result, operand, mask = instruction.operands
    source, members = builder.read(operand, BOOL), builder.read(mask, U32)

    def compute(file: File) -> Array:
        active = _active(file, members)
        values = _spread(file, file[source])
        if mode == "ballot":
            return _ballot(values & active)
        every: Array = np.logical_and.reduce(values | ~active, axis=1)
        some: Array = np.logical_or.reduce(values & active, axis=1)
        if mode == "uni":
            return every | ~some
        return every if mode == "all" else some

    builder.assign(result, U32 if mode == "ballot" else BOOL, _per_warp(compute))


def _per_warp(compute: Callable[[File], Array]) -> Make:
    """d = what `compute` gives each warp, in all of its lanes"""

    def make(d: int) -> Callable[[File], None]:
        def run(file: File) -> None:
            file[d] = np.repeat(compute(file), WARP)

        return run

    return make


def match(builder: Builder, instruction: Instruction) -> None:
    """match.any.sync: the lanes with the same value; match.all.sync: `d|p`, all or none."""
    words = instruction.modifiers
    if len(words) != 3 or words[1] != "sync" or words[2] not in ("b32", "b64"):
        builder.unsupported()
    if len(instruction.operands) != 3 or words[0] not in ("any", "all"):
        builder.unsupported()
    result, operand, mask = instruction.operands
    if words[0] == "all":
        _match_all(builder, instruction)
        return
    dtype = DTYPES[words[2]]
    source, members = builder.read(operand, dtype), builder.read(mask, U32)

    def make(d: int) -> Callable[[File], None]:
        def run(file: File) -> None:
            active = _active(file, members)
            values = _spread(file, file[source])
            same = np.zeros(values.shape, np.uint32)
            for lane in range(WARP):
                equal = (values == values[:, lane : lane + 1]) & active[:, lane : lane + 1]
                same |= np.where(equal, _BITS[lane], np.uint32(0))
            file[d] = same.reshape(-1)

        return run

    builder.assign(result, U32, make)


def _match_all(builder: Builder, instruction: Instruction) -> None:
    result, operand, mask = instruction.operands
    dtype = DTYPES[instruction.modifiers[2]]
    source, members = builder.read(operand, dtype), builder.read(mask, U32)

    def holds(file: File) -> Array:
        active = _active(file, members)
        values = _spread(file, file[source])
        first = values[np.arange(len(values)), active.argmax(axis=1)]
        every: Array = np.logical_and.reduce((values == first[:, None]) | ~active, axis=1)
        return every

    def lanes(file: File) -> Array:
        return np.where(holds(file), _ballot(_active(file, members)), np.uint32(0))

    pair = result if isinstance(result, Pair) else Pair(result, Sink())
    predicate = builder.predicate
    flags, masks = builder.compute(_per_warp(holds)), builder.compute(_per_warp(lanes))
    builder.assign(pair.first, U32, copy(masks))
    builder.predicate = predicate
    builder.assign(pair.second, BOOL, copy(flags))


def elect(builder: Builder, instruction: Instruction) -> None:
    """elect.sync: `d|p, membermask`: the predicate holds for one lane, the lowest here."""
    if instruction.modifiers != ("sync",) or len(instruction.operands) != 2:
        builder.unsupported()
    result, mask = instruction.operands
    members = builder.read(mask, U32)

    def leader(file: File) -> Array:
        found: Array = _active(file, members).argmax(axis=1).astype(np.uint32)
        return found

    slot = builder.compute(_per_warp(leader))
    chosen = builder.slot()

    def run(file: File) -> None:
        file[chosen] = file[GEOMETRY].warp_lane == file[slot]

    builder.both(run)
    pair = result if isinstance(result, Pair) else Pair(result, Sink())
    builder.assign(pair.first, U32, copy(slot))
    builder.assign(pair.second, BOOL, copy(chosen))


REDUCTIONS: dict[tuple[str, str], tuple[Any, int]] = {
    ("add", "u32"): (np.add, 0),
    ("add", "s32"): (np.add, 0),
    ("min", "u32"): (np.minimum, 0xFFFFFFFF),
    ("max", "u32"): (np.maximum, 0),
    ("min", "s32"): (np.minimum, (1 << 31) - 1),
    ("max", "s32"): (np.maximum, -(1 << 31)),
    ("and", "b32"): (np.bitwise_and, 0xFFFFFFFF),
    ("or", "b32"): (np.bitwise_or, 0),
    ("xor", "b32"): (np.bitwise_xor, 0),
}


def reduce(builder: Builder, instruction: Instruction) -> None:
    """redux.sync: one value of a warp."""
    words = instruction.modifiers
    if words[-1:] == ("f32",):
        _reduce_floats(builder, instruction)
        return
    found = REDUCTIONS.get((words[1], words[2])) if len(words) == 3 else None
    if found is None or words[0] != "sync" or len(instruction.operands) != 3:
        builder.unsupported()
    function, neutral = found
    dtype: DType = DTYPES[words[2]]
    result, operand, mask = instruction.operands
    source, members = builder.read(operand, dtype), builder.read(mask, U32)

    def compute(file: File) -> Array:
        values = np.where(_active(file, members), _spread(file, file[source]), dtype.type(neutral))
        reduced: Array = function.reduce(values, axis=1, dtype=dtype)
        return reduced

    builder.assign(result, dtype, _per_warp(compute))


def _reduce_floats(builder: Builder, instruction: Instruction) -> None:
    """redux.sync.min and max, with .abs and .NaN, of f32 (sm_100a)."""
    words = list(instruction.modifiers)
    named = [word for word in ("min", "max") if word in words]
    if (
        len(named) != 1
        or set(words) - {"sync", "min", "max", "abs", "NaN", "f32"}
        or len(instruction.operands) != 3
    ):
        builder.unsupported()
    least = named == ["min"]
    result, operand, mask = instruction.operands
    source, members = builder.read(operand, F32), builder.read(mask, U32)
    start = np.float32(np.inf if least else -np.inf)

    def compute(file: File) -> Array:
        active = _active(file, members)
        values = _spread(file, file[source])
        if "abs" in words:
            values = np.abs(values)
        numbers = np.where(active & ~np.isnan(values), values, start)
        # By bits: -0 is below +0.
        bits = numbers.view(np.int32)
        order = np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits)
        chosen = order.min(axis=1) if least else order.max(axis=1)
        back = np.where(chosen < 0, chosen ^ np.int32(0x7FFFFFFF), chosen).view(np.float32)
        missing = active & np.isnan(values)
        gone = missing.any(axis=1) if "NaN" in words else (missing | ~active).all(axis=1)
        return np.where(gone, np.uint32(0x7FFFFFFF).view(np.float32), back)

    builder.assign(result, F32, _per_warp(compute))


def active_mask(builder: Builder, instruction: Instruction) -> None:
    """activemask: the lanes that execute it together."""
    if instruction.modifiers != ("b32",) or len(instruction.operands) != 1:
        builder.unsupported()
    members = builder.constant(-1, SIGNED[4])

    def compute(file: File) -> Array:
        return _ballot(_active(file, members))

    builder.assign(instruction.operands[0], U32, _per_warp(compute))


def block_reduction(builder: Builder, instruction: Instruction) -> None:
    """barred: what the threads of a block that have passed a barrier together brought to it."""
    mode = instruction.modifiers[0]
    if len(instruction.operands) == 1:
        _collected(builder, instruction)
        return
    result, operand = instruction.operands
    source = builder.read(operand, BOOL)

    def make(d: int) -> Callable[[File], None]:
        def run(file: File) -> None:
            geometry: Geometry = file[GEOMETRY]
            shape = (geometry.count, geometry.padded)
            active = file[MASK] if file[MASK] is not None else geometry.running
            here = np.ones(shape, np.bool_) if active is None else active.reshape(shape)
            values = np.broadcast_to(file[source], geometry.lanes).reshape(shape)
            if mode == "popc":
                found: Array = (values & here).sum(1, dtype=np.uint32)
            elif mode == "and":
                found = np.logical_and.reduce(values | ~here, axis=1)
            else:
                found = np.logical_or.reduce(values & here, axis=1)
            file[d] = np.repeat(found, geometry.padded)

        return run

    builder.assign(result, U32 if mode == "popc" else BOOL, make)


def _collected(builder: Builder, instruction: Instruction) -> None:
    """barred after a barrier of some threads, which left what it collected."""
    if builder.brought is None:
        builder.brought = builder.slot(np.zeros(1, COLLECTED))
    slot, mode = builder.brought, instruction.modifiers[0]

    def make(d: int) -> Callable[[File], None]:
        def run(file: File) -> None:
            file[d] = np.ascontiguousarray(file[slot][mode])

        return run

    builder.assign(instruction.operands[0], U32 if mode == "popc" else BOOL, make)


def warp_barrier(builder: Builder, instruction: Instruction) -> None:
    """bar.warp.sync: the meeting itself is the scheduler's."""
    if instruction.modifiers != ("warp", "sync") or len(instruction.operands) != 1:
        builder.unsupported()


HANDLERS = {
    "shfl": shuffle,
    "vote": vote,
    "match": match,
    "redux": reduce,
    "elect": elect,
    "activemask": active_mask,
    "bar": warp_barrier,
    "barred": block_reduction,
}
