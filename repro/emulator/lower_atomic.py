"""Atomic operations: atom and red."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .access import Access, Form
from .atomics import UPDATES, function_of, update
from .builder import Builder
from .closures import copy
from .dtypes import DTYPES, FLOATS, Array
from .memory import GENERIC, SHARED, Memory
from .program import MEMORY, File, Op
from .ptx import Instruction, Operand, Sink, Vector
from .sites import Site


def atomic(builder: Builder, instruction: Instruction) -> None:
    """atom and red: `atom.space.op.type d, [a], b` (cas: b, c)."""
    form = Form(builder, instruction)
    returns = instruction.opcode == "atom"
    operands = list(instruction.operands)
    if form.policy:
        operands.pop()
    result: Operand = operands.pop(0) if returns and operands else Sink()
    words = [word for word in form.words if word != "noftz"]
    if form.parameter or len(words) != 1:
        builder.unsupported()
    (name,) = words
    if (name, form.kind) not in UPDATES or len(operands) != 2 + (name == "cas"):
        builder.unsupported()
    dtype = DTYPES[form.kind]
    if form.elements > 1:
        _vector(builder, form, name, result, operands)
        return
    values = [builder.read(operand, dtype) for operand in operands[1:]]
    predicate = builder.predicate
    access = Access(builder, operands[0], form, dtype, writes=True, updates=True)
    slot = builder.slot()
    builder.both(_atomic(access, _Change(name, form), values, slot))
    builder.predicate = predicate
    if not isinstance(result, Sink):
        builder.assign(result, dtype, copy(slot))


class _Change:
    """What an atomic does to a value. Only those to global memory flush subnormal float32."""

    def __init__(self, name: str, form: Form) -> None:
        self.exact = function_of(name, form.kind, flushes=False)
        self.flushed = function_of(name, form.kind, flushes=form.space == GENERIC)

    def function(self, memory: Memory, site: Site, records: Array) -> Callable[..., Any]:
        """The one for these records of a window."""
        if self.exact is self.flushed:
            return self.exact
        shared = memory.spaces[SHARED].window(site.key).records
        return self.exact if records is shared else self.flushed


def _vector(
    builder: Builder, form: Form, name: str, result: Operand, operands: list[Operand]
) -> None:
    """Additions to several floats next to each other, each an atomic of its own."""
    dtype = DTYPES[form.kind]
    value = operands[1]
    items = value.items if isinstance(value, Vector) else ()
    results = result.items if isinstance(result, Vector) else ()
    if name != "add" or form.kind not in FLOATS or len(items) != form.elements:
        builder.unsupported()
    if not isinstance(result, Sink) and len(results) != form.elements:
        builder.unsupported()
    values = [builder.read(item, dtype) for item in items]
    predicate = builder.predicate
    access = Access(builder, operands[0], form, dtype, writes=True, updates=True)
    change = _Change(name, form)
    slots = [builder.slot() for _ in items]

    def run(file: File) -> None:
        for slot in slots:
            file[slot] = np.zeros(1, dtype)
        active = access.lanes(file)
        if active is None:
            return
        addresses, lanes = active
        memory: Memory = file[MEMORY]
        if lanes is None:
            lanes = memory.geometry.lane
        addresses = np.broadcast_to(addresses, lanes.shape)
        old = np.zeros((memory.geometry.lanes, len(slots)), dtype)
        for records, at, which in memory.resolve(access.site, addresses, lanes):
            chosen = lanes if which is None else lanes[which]
            function = change.function(memory, access.site, records)
            for number, each in enumerate(values):
                operand = np.broadcast_to(file[each], memory.geometry.lanes)[chosen]
                old[chosen, number] = update(function, records[:, number], at, [operand])
        for number, slot in enumerate(slots):
            file[slot] = old[:, number]

    builder.both(run)
    for register, slot in zip(results, slots, strict=False):
        builder.predicate = predicate
        builder.assign(register, dtype, copy(slot))


def _atomic(access: Access, change: _Change, slots: list[int], slot: int) -> Op:
    site = access.site
    dtype = site.key[0]

    def run(file: File) -> None:
        file[slot] = np.zeros(1, dtype)
        active = access.lanes(file)
        if active is None:
            return
        addresses, lanes = active
        memory: Memory = file[MEMORY]
        if lanes is None:
            lanes = memory.geometry.lane
        addresses = np.broadcast_to(addresses, lanes.shape)
        old = np.zeros(lanes.size, dtype)
        for records, at, which in memory.resolve(site, addresses, lanes):
            chosen = lanes if which is None else lanes[which]
            values = [
                np.broadcast_to(file[value], memory.geometry.lanes)[chosen] for value in slots
            ]
            old[slice(None) if which is None else which] = update(
                change.function(memory, site, records), records, at, values
            )
        everywhere = np.zeros(memory.geometry.lanes, dtype)
        everywhere[lanes] = old
        file[slot] = everywhere

    return run


HANDLERS = {"atom": atomic, "red": atomic}
