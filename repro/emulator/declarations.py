"""Variables and parameters, and where variables lie in their space."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .ptx import Parameter, Relocation, Variable
from .reader import FLOAT, Reader

SIZES = {
    "pred": 1,
    **{f"{kind}{bits}": bits // 8 for kind in "bsu" for bits in (8, 16, 32, 64)},
    "f16": 2,
    "bf16": 2,
    "f16x2": 4,
    "bf16x2": 4,
    "f32": 4,
    "f64": 8,
}
VECTORS = {".v2": 2, ".v4": 4}
# What a pointer parameter may say about where it points.
POINTS = frozenset({".ptr", ".global", ".const", ".shared", ".local"})
MAX_BYTES = 1 << 30  # of one variable
MAX_INITIAL = 1 << 24  # of one with initial values
MAX_NESTED = 64  # braces in braces of an initial value


def variables(reader: Reader, space: str, *, extern: bool = False) -> Iterator[Variable]:
    """What follows `.shared` and the like, up to the semicolon."""
    align, kind = _type(reader)
    while True:
        name = reader.next()
        size, dynamic = SIZES[kind], False
        count: int | None = 1
        while reader.take("["):
            if reader.take("]"):
                count, dynamic = None, extern and space == "shared"
                continue
            size *= reader.integer()
            reader.expect("]")
        initial: bytes | None = None
        addresses: tuple[Relocation, ...] = ()
        if reader.take("="):
            initial, addresses = Initial(reader, kind).read()
        if count is None:
            size = len(initial or b"")
        if not 0 <= size <= MAX_BYTES:
            reader.fail(f"{name} has {size} bytes")
        if initial is not None and len(initial) > size:
            reader.fail(f"{len(initial)} bytes for a variable of {size}")
        external = extern and not dynamic and initial is None
        yield Variable(
            name, space, size, align or SIZES[kind], dynamic, initial, addresses, external
        )
        if not reader.take(","):
            break
    reader.expect(";")


def _type(reader: Reader) -> tuple[int, str]:
    """Alignment (0: not given) and type of a declaration."""
    align, kind, vector = 0, "", 1
    while reader.word.startswith("."):
        word = reader.next()
        if word == ".align":
            align = reader.integer()
        elif word[1:] in SIZES:
            kind = word[1:]
        elif word in VECTORS:
            vector = VECTORS[word]
        elif word in POINTS:
            continue
        elif word == ".attribute":
            while not reader.take(")"):
                reader.next()
        else:
            reader.fail(f"{word!r} is not known in a declaration")
    if not kind:
        reader.fail("a declaration without a type")
    if vector > 1:
        reader.fail(f".v{vector} variables are not known")
    if not 0 <= align <= MAX_BYTES:
        reader.fail(f"an alignment of {align} bytes")
    return align, kind


class Initial:
    """What follows the `=` of a variable."""

    def __init__(self, reader: Reader, kind: str) -> None:
        self.reader, self.width = reader, SIZES[kind]
        self.found = bytearray()
        self.addresses: list[Relocation] = []

    def read(self) -> tuple[bytes, tuple[Relocation, ...]]:
        """Bytes, and which of them are addresses."""
        depth = 0
        while True:
            if self.reader.take("{"):
                depth += 1
                if depth > MAX_NESTED:
                    self.reader.fail("braces nested too deep")
            elif depth and self.reader.take("}"):
                depth -= 1
            elif depth and self.reader.take(","):
                continue
            else:
                self._value()
            if not depth:
                return bytes(self.found), tuple(self.addresses)

    def _value(self) -> None:
        reader, width = self.reader, self.width
        if len(self.found) > MAX_INITIAL:
            reader.fail(f"an initial value of more than {MAX_INITIAL} bytes")
        word = reader.word
        if (match := FLOAT.match(word)) is not None:
            digits = match[2] or match[4]
            if len(digits) != 2 * width:
                reader.fail(f"{word} has not {width} bytes")
            reader.next()
            self.found += int(digits, 16).to_bytes(width, "little")
        elif word == "-" or word[:1].isdigit():
            value = reader.integer()
            if reader.take("("):
                self._piece(value)
            else:
                value &= (1 << 8 * width) - 1
                self.found += value.to_bytes(width, "little")
        else:
            if width != 8:
                reader.fail(f"{width} bytes of an address")
            self._address(0, 8)

    def _piece(self, mask: int) -> None:
        """`0xFF00(generic(name)+4)`: the bytes of an address that the mask names."""
        first = (max(0, (mask & -mask).bit_length() - 1)) // 8
        if mask != ((1 << 8 * self.width) - 1) << 8 * first or first + self.width > 8:
            self.reader.fail(f"mask {mask:#x} of an address")
        self._address(first, self.width)
        self.reader.expect(")")

    def _address(self, first: int, size: int) -> None:
        """`name`, `name+4`, `generic(name)+4`: `size` bytes of the address from `first` on."""
        reader = self.reader
        name = reader.next()
        if name == "generic" and reader.take("("):
            name = reader.next()
            reader.expect(")")
        if not (name[0].isalpha() or name[0] in "_$%"):
            reader.fail(f"{name!r} in an initial value")
        addend = 0
        if reader.take("+") or reader.word == "-":
            addend = reader.integer()
        self.addresses.append(Relocation(len(self.found), name, addend, first, size))
        self.found += bytes(size)


def parameters(reader: Reader) -> Iterator[Parameter]:
    """What follows the opening parenthesis of a kernel, up to the closing one."""
    while not reader.take(")"):
        reader.expect(".param")
        _, kind = _type(reader)
        name, size = reader.next(), 0
        if reader.take("["):
            size = reader.integer() * SIZES[kind]
            reader.expect("]")
            if not 0 < size <= MAX_BYTES:
                reader.fail(f"{name} has {size} bytes")
        yield Parameter(name, kind, size)
        reader.take(",")


def formals(reader: Reader) -> Iterator[Variable]:
    """What follows the opening parenthesis of a function's parameters or results."""
    while not reader.take(")"):
        if not reader.take(".param"):
            reader.fail("only parameters in .param space are known")
        align, kind = _type(reader)
        name, size = reader.next(), SIZES[kind]
        if reader.take("["):
            size *= 0 if reader.take("]") else reader.integer()
            if size:
                reader.expect("]")
            if not 0 <= size <= MAX_BYTES:
                reader.fail(f"{name} has {size} bytes")
        yield Variable(name, "param", size, align or SIZES[kind])
        reader.take(",")


def layout(variables: Iterable[Variable]) -> tuple[dict[str, int], int]:
    """Offsets and the size in bytes of variables laid out one after the other."""
    offsets: dict[str, int] = {}
    size = 0
    for variable in variables:
        if variable.dynamic:
            continue
        size = -(-size // variable.align) * variable.align
        offsets[variable.name] = size
        size += variable.size
    return offsets, size
