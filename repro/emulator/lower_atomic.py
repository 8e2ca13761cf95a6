"""Atomic operations: atom and red."""

from __future__ import annotations

import numpy as np

from .access import Access, Form
from .atomics import UPDATES, update
from .builder import Builder
from .closures import copy
from .dtypes import DTYPES
from .memory import Memory
from .program import MEMORY, File, Op
from .ptx import Instruction, Operand, Sink


def atomic(builder: Builder, instruction: Instruction) -> None:
    """atom and red: `atom.space.op.type d, [a], b` (cas: b, c)."""
    form = Form(builder, instruction)
    returns = instruction.opcode == "atom"
    operands = list(instruction.operands)
    if form.policy:
        operands.pop()
    result: Operand = operands.pop(0) if returns and operands else Sink()
    if form.parameter or form.elements > 1 or form.words[1:] or len(form.words) != 1:
        builder.unsupported()
    (name,) = form.words
    if (name, form.kind) not in UPDATES or len(operands) != 2 + (name == "cas"):
        builder.unsupported()
    dtype = DTYPES[form.kind]
    values = [builder.read(operand, dtype) for operand in operands[1:]]
    predicate = builder.predicate
    access = Access(builder, operands[0], form, dtype, writes=True, updates=True)
    slot = builder.slot()
    builder.both(_atomic(access, name, values, slot))
    builder.predicate = predicate
    if not isinstance(result, Sink):
        builder.assign(result, dtype, copy(slot))


def _atomic(access: Access, name: str, slots: list[int], slot: int) -> Op:
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
            old[slice(None) if which is None else which] = update(name, records, at, values)
        everywhere = np.zeros(memory.geometry.lanes, dtype)
        everywhere[lanes] = old
        file[slot] = everywhere

    return run


HANDLERS = {"atom": atomic, "red": atomic}
