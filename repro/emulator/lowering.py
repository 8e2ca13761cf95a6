"""Kernels to programs."""

from __future__ import annotations

import numpy as np

from .builder import Builder
from .calls import expanded
from .closures import apply1
from .dataflow import WHOLE, ends, is_warp_barrier, meets
from .dtypes import BOOL, DTYPES
from .instructions import HANDLERS
from .program import Block, End, Program
from .ptx import Immediate, Instruction, Kernel, Register, Symbol


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
    plain = ("bar", {"sync"}), ("bar", {"cta", "sync"}), ("barrier", {"sync"})
    if (opcode, modifiers - {"aligned"}) not in (*plain, ("barrier", {"cta", "sync"})):
        builder.unsupported()
    if len(operands) != 1 or not isinstance(operands[0], Immediate):
        builder.unsupported("only numbered barriers of the whole block are known")
    if not 0 <= operands[0].value < 16:
        builder.unsupported("barriers are numbered from 0 to 15")
    return End("barrier", instruction, predicate, 0, operands[0].value)


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
