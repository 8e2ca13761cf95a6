"""cp.async: copies from global to shared memory that a thread does not wait for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .access import HINTS, Access, Form
from .builder import Builder
from .closures import apply1
from .copies import Copy
from .dtypes import BOOL, UNSIGNED, Array
from .lower_memory import gathered
from .memory import SHARED, Memory
from .program import MASK, MEMORY, File
from .ptx import Immediate, Instruction, Negated, Operand, Register
from .sites import Site

U32 = UNSIGNED[4]
SIZES = (4, 8, 16)
MAX_GROUPS = 1 << 20


def copy_async(builder: Builder, instruction: Instruction) -> None:
    """cp.async: a copy, or the end of a group, or a wait."""
    words = instruction.modifiers
    if words[:1] != ("async",):
        builder.unsupported()
    if words[1:] == ("commit_group",) and not instruction.operands:
        _commit(builder)
    elif words[1:] == ("wait_group",) and len(instruction.operands) == 1:
        (most,) = instruction.operands
        if not isinstance(most, Immediate) or not 0 <= most.value <= MAX_GROUPS:
            builder.unsupported("a number of groups that is no literal")
        _wait(builder, most.value)
    elif words[1:] == ("wait_all",) and not instruction.operands:
        _wait(builder, None)
    elif words[1:2] in (("ca",), ("cg",)):
        _issue(builder, instruction)
    else:
        builder.unsupported()


def _issue(builder: Builder, instruction: Instruction) -> None:
    words = [word for word in instruction.modifiers[2:] if not word.startswith(HINTS)]
    operands = list(instruction.operands)
    if "L2::cache_hint" in instruction.modifiers:
        operands.pop()
    if words not in (["shared", "global"], ["shared::cta", "global"]) or len(operands) not in (
        3,
        4,
    ):
        builder.unsupported()
    target, source, size = operands[:3]
    if not isinstance(size, Immediate) or size.value not in SIZES:
        builder.unsupported("a copy of another size than 4, 8 or 16 bytes")
    if instruction.modifiers[1] == "cg" and size.value != 16:
        builder.unsupported("cp.async.cg copies 16 bytes")
    wanted = _source_bytes(builder, operands[3] if len(operands) == 4 else None, size.value)
    predicate = builder.predicate
    form = Form(builder, replace(instruction, modifiers=("global", "b32")))
    form.elements = size.value // 4
    reads = Access(builder, source, form, U32, writes=False, keeps=True)
    builder.predicate = predicate
    form.space = SHARED
    writes = Access(builder, target, form, U32, writes=True, keeps=True)

    def run(file: File) -> None:
        active = reads.lanes(file)
        if active is None:
            return
        memory: Memory = file[MEMORY]
        total = memory.geometry.lanes
        addresses, lanes = active
        if lanes is None:
            lanes = memory.geometry.lane
        sources = np.broadcast_to(addresses, lanes.shape)
        targets = np.broadcast_to(file[writes.slot] + writes.offset, total)[lanes]
        sizes = None if wanted is None else np.broadcast_to(file[wanted], total)[lanes]
        values = _read(memory, reads.site, sources, lanes, sizes)
        marks = None
        if memory.initialised:
            marks = memory.written(sources, writes.site.width)
            if marks is not None and sizes is not None:
                marks[np.arange(writes.site.width) >= sizes[:, None]] = 1
        copy = memory.copies.issue(writes.site, targets, lanes, values, marks)
        memory.begin(copy)

    builder.both(run)


def _source_bytes(builder: Builder, operand: Operand | None, size: int) -> int | None:
    """The slot of how many bytes each thread reads, the others being zero; None: all."""
    if operand is None:
        return None
    if isinstance(operand, Negated) or (isinstance(operand, Register) and operand.type == "pred"):
        ignored = builder.read(operand, BOOL)
        return builder.compute(
            apply1(lambda p: np.where(p, np.uint32(0), np.uint32(size)), ignored)
        )
    return builder.read(operand, U32)


def _read(memory: Memory, site: Site, addresses: Array, lanes: Array, sizes: Array | None) -> Array:
    """uint32[accesses, elements]: what is copied."""
    width, (_, elements) = site.width, site.key
    values = np.zeros((lanes.size, elements), np.uint32)
    whole = np.ones(lanes.size, np.bool_) if sizes is None else sizes >= width
    if whole.any():
        values[whole] = _gather(memory, site, addresses[whole], lanes[whole])
    if sizes is not None:
        raw = values.view(np.uint8)
        single = site._replace(key=(UNSIGNED[1], 1), width=1)
        for byte in range(width):
            part = ~whole & (sizes > byte)
            if part.any():
                read = _gather(memory, single, addresses[part] + byte, lanes[part])
                raw[part, byte] = read[:, 0]
    return values


def _gather(memory: Memory, site: Site, addresses: Array, lanes: Array) -> Array:
    pieces = memory.resolve(site, addresses, lanes)
    found = gathered(pieces, site, addresses, lanes, memory.geometry.lanes)
    found = np.broadcast_to(found.reshape(len(found), -1), (memory.geometry.lanes, site.key[1]))
    return found[lanes]


def _commit(builder: Builder) -> None:
    predicate = builder.predicate

    def run(file: File) -> None:
        memory: Memory = file[MEMORY]
        memory.copies.commit(_mask(file, predicate))

    builder.both(run)


def _wait(builder: Builder, keep: int | None) -> None:
    predicate = builder.predicate

    def run(file: File) -> None:
        memory: Memory = file[MEMORY]
        for copy in memory.copies.take(_mask(file, predicate), keep):
            land(memory, copy)

    builder.both(run)


def _mask(file: File, predicate: int | None) -> Array | None:
    mask: Array | None = file[MASK]
    if predicate is None:
        return mask
    holds = np.broadcast_to(file[predicate], file[MEMORY].geometry.lanes)
    return holds if mask is None else mask & holds


def land(memory: Memory, copy: Copy) -> None:
    """Write what was copied."""
    stored = copy.spread(memory.geometry.lanes) if memory.races is not None else ()
    for records, at, which in memory.resolve(copy.site, copy.addresses, copy.lanes, stored):
        values = copy.values if which is None else copy.values[which]
        if copy.marks is None or which is None:
            memory.carry(copy.site, at, copy.marks)
        else:
            memory.carry(copy.site, at, copy.marks[which])
        records[at] = values[:, 0] if records.ndim == 1 else values


def finish(memory: Memory) -> None:
    """All threads have ended: what they never waited for lands."""
    for copy in memory.copies.take(None, None):
        land(memory, copy)


HANDLERS = {"cp": copy_async}
