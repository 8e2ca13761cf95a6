"""Instructions that are several simpler ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..errors import UnsupportedError
from .ptx import Immediate, Instruction, Register, Vector

MAX_TARGETS = 4096  # of an indexed branch


def needs_rewriting(instruction: Instruction) -> bool:
    """Whether `rewritten` gives anything else than the instruction itself."""
    if instruction.opcode in ("bar", "barrier"):
        return "red" in instruction.modifiers
    return instruction.opcode == "brx"


def rewritten(instruction: Instruction, unique: str) -> Iterator[Instruction]:
    """The same as simpler instructions. unique: a name for registers that no other has."""
    if not needs_rewriting(instruction):
        yield instruction
    elif instruction.opcode == "brx":
        yield from _indexed_branch(instruction, unique)
    else:
        yield from _reducing_barrier(instruction)


def _reducing_barrier(instruction: Instruction) -> Iterator[Instruction]:
    """bar.red: a barrier, after which each thread looks at what all of its block brought."""
    words = [word for word in instruction.modifiers if word not in ("aligned", "cta")]
    forms = (["red", "popc", "u32"], ["red", "and", "pred"], ["red", "or", "pred"])
    if words not in forms or len(instruction.operands) != 3:
        raise UnsupportedError(
            f"{instruction.spelling} is not supported, of the threads of a whole block alone",
            where=f"PTX line {instruction.line}",
        )
    result, number, predicate = instruction.operands
    aligned = tuple(word for word in instruction.modifiers if word == "aligned")
    yield replace(instruction, modifiers=("sync", *aligned), operands=(number,))
    yield replace(
        instruction, opcode="barred", modifiers=tuple(words[1:]), operands=(result, predicate)
    )


def _indexed_branch(instruction: Instruction, unique: str) -> Iterator[Instruction]:
    """brx.idx: one comparison and branch for each target; an index beyond them traps."""
    table = instruction.operands[-1]
    if (
        set(instruction.modifiers) - {"idx", "uni"}
        or len(instruction.operands) != 2
        or not isinstance(table, Vector)
        or len(table.items) > MAX_TARGETS
        or instruction.predicate is not None
    ):
        raise UnsupportedError(
            f"{instruction.spelling} is not supported", where=f"PTX line {instruction.line}"
        )
    same = Register(f"{unique}#same", "pred")
    for number, label in enumerate(table.items):
        operands = (same, instruction.operands[0], Immediate(number))
        yield replace(instruction, opcode="setp", modifiers=("eq", "u32"), operands=operands)
        yield replace(instruction, opcode="bra", modifiers=(), operands=(label,), predicate=same)
    yield replace(instruction, opcode="trap", modifiers=(), operands=())
