"""Parameters of calls as registers.

What is stored to and loaded from a parameter of a call lies at constant offsets, so each parameter
becomes registers, and its loads and stores become moves: one register for a scalar, words of four
bytes for a structure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from ..errors import UnsupportedError
from .declarations import SIZES
from .ptx import (
    Address,
    Immediate,
    Instruction,
    Operand,
    Register,
    Sink,
    Variable,
    Vector,
)

MAX_BYTES = 4096  # of one parameter, as on devices
COUNTS = {"v2": 2, "v4": 4}


class CallMemory:
    """One parameter or result of one call. name: its own, of no other call."""

    def __init__(self, variable: Variable, name: str) -> None:
        if variable.size > MAX_BYTES:
            raise UnsupportedError(f"{variable.size} bytes in parameter {variable.name} of a call")
        self.name = name
        self.size = variable.size
        self.step = 8 if variable.size == 8 and variable.align == 8 else 4

    def piece(self, number: int) -> Register:
        """The register of bytes number * step and on."""
        return Register(f"{self.name}#{number}", f"b{8 * self.step}")

    def whole(self) -> Register:
        """The register of a scalar."""
        return self.piece(0)

    def access(self, instruction: Instruction) -> Iterator[Instruction]:
        """The moves that do what an ld.param or st.param does."""
        kind = instruction.modifiers[-1] if instruction.modifiers else ""
        words = set(instruction.modifiers[:-1]) - {"param", "param::func", "volatile"}
        count = max((COUNTS.get(word, 1) for word in words), default=1)
        stores = instruction.opcode == "st"
        if words - COUNTS.keys() or kind not in SIZES or len(instruction.operands) != 2:
            _refuse(instruction)
        value, address = instruction.operands
        if stores:
            address, value = value, address
        values = value.items if isinstance(value, Vector) else (value,)
        if len(values) != count or not isinstance(address, Address):
            _refuse(instruction)
        width = SIZES[kind]
        if address.offset % width or not 0 <= address.offset <= self.size - count * width:
            _refuse(instruction, f"bytes from {address.offset} on of {self.size}")
        for number, item in enumerate(values):
            at = address.offset + number * width
            make = self._store(item, kind, at) if stores else self._load(item, kind, at)
            for opcode, modifiers, operands in make:
                yield Instruction(
                    opcode,
                    modifiers,
                    operands,
                    instruction.predicate,
                    instruction.negated,
                    instruction.line,
                    instruction.place,
                )

    def _store(self, value: Operand, kind: str, at: int) -> Iterator[_Parts]:
        width, step = SIZES[kind], self.step
        number, inside = divmod(at, step)
        piece = self.piece(number)
        if width == step:
            yield "mov", (f"b{8 * width}",), (piece, _raw(value))
        elif width > step:
            yield "mov", ("b64",), (Vector((piece, self.piece(number + 1))), _raw(value))
        else:
            cut = Register(f"{self.name}#cut", piece.type)
            if isinstance(value, Immediate):
                yield "mov", (piece.type,), (cut, _raw(value))
            else:
                yield "cvt", (f"u{8 * step}", f"u{8 * width}"), (cut, value)
            where = (Immediate(8 * inside), Immediate(8 * width))
            yield "bfi", (piece.type,), (piece, cut, piece, *where)

    def _load(self, result: Operand, kind: str, at: int) -> Iterator[_Parts]:
        if isinstance(result, Sink):
            return
        if not isinstance(result, Register):
            raise UnsupportedError("a parameter of a call is loaded into no register")
        width, step, size = SIZES[kind], self.step, SIZES[result.type]
        number, inside = divmod(at, step)
        source: Operand = self.piece(number)
        if width > step:
            source = Vector((self.piece(number), self.piece(number + 1)))
        elif inside:
            cut = Register(f"{self.name}#cut", f"b{8 * step}")
            yield "shr", (f"u{8 * step}",), (cut, source, Immediate(8 * inside))
            source = cut
        if width == size and width >= step:
            yield "mov", (f"b{8 * width}",), (result, source)
        else:
            letter = "s" if kind[0] == "s" else "u"
            wanted = f"{letter}{8 * size}", f"{letter}{8 * width}"
            yield "cvt", wanted, (result, source)


_Parts = tuple[str, tuple[str, ...], tuple[Operand, ...]]


def _raw(value: Operand) -> Operand:
    """A literal as its bits."""
    return Immediate(value.value) if isinstance(value, Immediate) else value


def _refuse(instruction: Instruction, why: str = "") -> NoReturn:
    text = f"{instruction.spelling} of a parameter of a call is not supported"
    raise UnsupportedError(f"{text}: {why}" if why else text, where=f"PTX line {instruction.line}")
