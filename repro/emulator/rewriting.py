"""Instructions that are several simpler ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn

from ..errors import UnsupportedError
from .ptx import Immediate, Instruction, Operand, Register, Vector

MAX_TARGETS = 4096  # of an indexed branch


def needs_rewriting(instruction: Instruction) -> bool:
    """Whether `rewritten` gives anything else than the instruction itself."""
    if instruction.opcode in ("bar", "barrier"):
        return "red" in instruction.modifiers
    return instruction.opcode in ("brx", "wmma") or "b128" in instruction.modifiers


def rewritten(instruction: Instruction, unique: str) -> Iterator[Instruction]:
    """The same as simpler instructions. unique: a name for registers that no other has."""
    if not needs_rewriting(instruction):
        yield instruction
    elif instruction.opcode == "brx":
        yield from _indexed_branch(instruction, unique)
    elif instruction.opcode == "wmma":
        # three instructions, of which one has no result
        what, *words = instruction.modifiers or ("",)
        if what not in ("load", "store", "mma"):
            _refuse(instruction)
        yield replace(instruction, opcode=f"wmma.{what}", modifiers=tuple(words))
    elif "b128" in instruction.modifiers:
        yield from _halved(instruction)
    else:
        yield from _reducing_barrier(instruction)


def _reducing_barrier(instruction: Instruction) -> Iterator[Instruction]:
    """bar.red: a barrier, after which each thread looks at what all it was for brought."""
    words = [word for word in instruction.modifiers if word not in ("aligned", "cta")]
    forms = (["red", "popc", "u32"], ["red", "and", "pred"], ["red", "or", "pred"])
    if words not in forms or len(instruction.operands) not in (3, 4):
        _refuse(instruction)
    result, number, *count, predicate = instruction.operands
    aligned = tuple(word for word in instruction.modifiers if word == "aligned")
    if count:
        # who it was for is known only when it is complete, so the barrier collects
        operands: tuple[Operand, ...] = (number, *count, predicate)
        yield replace(instruction, modifiers=("collect", *aligned), operands=operands)
        operands = (result,)
    else:
        yield replace(instruction, modifiers=("sync", *aligned), operands=(number,))
        operands = (result, predicate)
    yield replace(instruction, opcode="barred", modifiers=tuple(words[1:]), operands=operands)


def _halved(instruction: Instruction) -> Iterator[Instruction]:
    """mov, ld and st of 128 bits: of two registers of 64, which a register of 128 bits is."""
    words, operands = instruction.modifiers, instruction.operands
    memory = instruction.opcode in ("ld", "st") and not {"param", "v2", "v4"} & set(words)
    if words[-1] != "b128" or len(operands) < 2 or not (memory or instruction.opcode == "mov"):
        _refuse(instruction)
    if not memory:
        if words != ("b128",) or len(operands) != 2:
            _refuse(instruction)
        halves = [_halves(instruction, each) for each in operands]
        for pair in zip(*halves, strict=True):
            yield replace(instruction, modifiers=("b64",), operands=pair)
        return
    at = 0 if instruction.opcode == "ld" else 1
    both = Vector(_halves(instruction, operands[at]))
    yield replace(
        instruction,
        modifiers=(*words[:-1], "v2", "b64"),
        operands=(*operands[:at], both, *operands[at + 1 :]),
    )


def _halves(instruction: Instruction, operand: Operand) -> tuple[Operand, Operand]:
    """The lower and the upper 64 bits of an operand of 128."""
    if isinstance(operand, Register) and operand.type == "b128":
        return Register(f"{operand.name}#low", "b64"), Register(f"{operand.name}#high", "b64")
    if isinstance(operand, Vector) and len(operand.items) == 2:
        low, high = operand.items
        return low, high
    return _refuse(instruction)


def _refuse(instruction: Instruction) -> NoReturn:
    raise UnsupportedError(
        f"{instruction.spelling} is not supported", where=f"PTX line {instruction.line}"
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
        _refuse(instruction)
    same = Register(f"{unique}#same", "pred")
    for number, label in enumerate(table.items):
        operands = (same, instruction.operands[0], Immediate(number))
        yield replace(instruction, opcode="setp", modifiers=("eq", "u32"), operands=operands)
        yield replace(instruction, opcode="bra", modifiers=(), operands=(label,), predicate=same)
    yield replace(instruction, opcode="trap", modifiers=(), operands=())
