"""Kernels to programs."""

from __future__ import annotations

import numpy as np

from .builder import Builder
from .calls import expanded
from .closures import apply1
from .dataflow import WHOLE, ends, is_warp_barrier, meets
from .dtypes import BOOL, DTYPES
from .instructions import HANDLERS
from .program import BARRIERS, Block, End, Program
from .ptx import Immediate, Instruction, Kernel, Register, Symbol
from .turns import polls


def lower(kernel: Kernel) -> Program:
    """A kernel as a program; UnsupportedError names what it does not execute."""
    if not kernel.body:
        return Program((), (None, None, None), {}, (), kernel.shared_bytes, 0, ())
    kernel = expanded(kernel)
    builder = Builder(kernel)
    numbers = {span.first: number for number, span in enumerate(builder.spans)}
    blocks = []
    for span in builder.spans:
        builder.forms, builder.fast, builder.slow = {}, [], []
        first = kernel.body[span.first]
        members = None
        end = End("fall", kernel.body[span.end - 1])
        for instruction in kernel.body[span.first : span.end]:
            builder.instruction = instruction
            builder.predicate = None
            predicate = None
            if instruction.predicate is not None:
                predicate = builder.read(instruction.predicate, BOOL)
                if instruction.negated:
                    predicate = builder.compute(apply1(np.logical_not, predicate))
            if ends(instruction):
                if instruction.opcode == "assertfail":
                    HANDLERS["assertfail"](builder, instruction)
                end = _end(builder, instruction, predicate, numbers)
                continue
            if meets(instruction) or is_warp_barrier(instruction):
                if predicate is not None:
                    builder.unsupported("predicated")
                members = _members(builder, instruction)
            builder.predicate = predicate
            handler = HANDLERS.get(instruction.opcode)
            if handler is None:
                builder.unsupported()
            handler(builder, instruction)
        fast, slow = tuple(builder.fast), tuple(builder.slow)
        blocks.append(Block(fast, slow, end, span.end - span.first, members, first))
    return Program(
        tuple(blocks),
        tuple(builder.template),
        builder.specials,
        tuple((*key, slot) for key, slot in builder.params.items()),
        builder.shared_static,
        builder.local_bytes,
        tuple(builder.addressed),
        builder.grain,
        tuple(sorted(builder.invented)),
        builder.brought,
        builder.sites,
        any(polls(instruction) for instruction in kernel.body),
    )


def _end(
    builder: Builder, instruction: Instruction, predicate: int | None, numbers: dict[int, int]
) -> End:
    opcode, modifiers, operands = (
        instruction.opcode,
        set(instruction.modifiers),
        instruction.operands,
    )
    if opcode == "bra":
        if modifiers - {"uni"} or len(operands) != 1 or not isinstance(operands[0], Symbol):
            builder.unsupported()
        at = builder.kernel.labels[operands[0].name]
        return End("jump", instruction, predicate, numbers.get(at, len(numbers)))
    if opcode == "assertfail":
        return End("return", instruction, predicate)
    if opcode in ("ret", "exit", "trap"):
        if modifiers - {"uni"} or operands:
            builder.unsupported()
        return End("trap" if opcode == "trap" else "return", instruction, predicate)
    return _barrier(builder, instruction, predicate)


def _barrier(builder: Builder, instruction: Instruction, predicate: int | None) -> End:
    """bar and barrier: `a` or `a, b`, number and threads."""
    operands = instruction.operands
    words = sorted(set(instruction.modifiers) - {"aligned", "cta"})
    brings = None
    if words == ["collect"]:
        brings = builder.read(operands[-1], BOOL)
        words, operands = ["sync"], operands[:-1]
    if words not in (["sync"], ["arrive"]) or len(operands) not in (1, 2):
        builder.unsupported()
    number = operands[0]
    if isinstance(number, Immediate) and not 0 <= number.value < BARRIERS:
        builder.unsupported("barriers are numbered from 0 to 15")
    if words == ["sync"] and len(operands) == 1 and isinstance(number, Immediate):
        return End("barrier", instruction, predicate, 0, number.value)
    if words == ["arrive"] and len(operands) == 1:
        builder.unsupported("an arrival without a number of threads")
    slots = [builder.read(operand, DTYPES["s32"]) for operand in operands]
    count = slots[1] if len(slots) == 2 else None
    kind = "named" if words == ["sync"] else "arrive"
    return End(kind, instruction, predicate, number=slots[0], count=count, brings=brings)


def _members(builder: Builder, instruction: Instruction) -> int:
    """The slot of the member mask of a meeting."""
    if instruction.opcode == "activemask":
        return builder.constant(0, DTYPES["u32"])
    if instruction.opcode in WHOLE:
        return builder.constant(-1, DTYPES["u32"])
    named = instruction.operands[-1] if instruction.operands else None
    if isinstance(named, Register):
        # The scheduler looks at it before the block runs, so where it is kept between blocks.
        return builder.kept(named)
    if not isinstance(named, Immediate):
        builder.unsupported()
    return builder.read(named, DTYPES["u32"])
