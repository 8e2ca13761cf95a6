"""Variables and parameters, and where variables lie in their space."""

from __future__ import annotations

from collections.abc import Iterator

from .ptx import Parameter, Variable
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
MAX_BYTES = 1 << 30  # of one variable
MAX_INITIAL = 1 << 24  # of one with initial values


def variables(reader: Reader, space: str, *, extern: bool) -> Iterator[Variable]:
    """What follows `.shared` and the like, up to the semicolon."""
    align, kind = 0, ""
    while reader.token.text.startswith("."):
        word = reader.next()
        if word == ".align":
            align = reader.integer()
        elif word[1:] in SIZES:
            kind = word[1:]
        elif word in (".v2", ".v4"):
            reader.fail(f"{word} variables are not known")
        else:
            reader.fail(f"{word!r} is not known in a declaration")
    if not kind:
        reader.fail("a declaration without a type")
    while True:
        name = reader.next()
        size, dynamic = SIZES[kind], False
        while reader.take("["):
            if reader.take("]"):
                size, dynamic = 0, extern
                continue
            size *= reader.integer()
            reader.expect("]")
        if not 0 <= size <= MAX_BYTES or align < 0 or align > MAX_BYTES:
            reader.fail(f"{name} has {size} bytes")
        initial = _initial(reader, kind, size) if reader.take("=") else None
        yield Variable(name, space, size, align or SIZES[kind], dynamic, initial)
        if not reader.take(","):
            break
    reader.expect(";")


def _initial(reader: Reader, kind: str, size: int) -> bytes | None:
    """What follows the `=`; None where it is more than a list of numbers."""
    width, depth, plain = SIZES[kind], 0, size <= MAX_INITIAL
    found = bytearray()
    while (word := reader.token.text) != ";":
        if word in ("{", "}"):
            depth += 1 if word == "{" else -1
            plain = plain and depth < 2
            reader.next()
            if depth < 1:
                break
        elif word == ",":
            if depth == 0:
                break
            reader.next()
        elif (match := FLOAT.match(word)) is not None:
            digits = match[2] or match[4]
            plain = plain and len(digits) == 2 * width
            found += int(digits, 16).to_bytes(8, "little")[:width]
            reader.next()
        elif word == "-" or word[:1].isdigit():
            found += (reader.integer() & ((1 << 8 * width) - 1)).to_bytes(width, "little")
        else:
            plain = False
            reader.next()
    if len(found) > size:
        reader.fail(f"{len(found)} bytes for a variable of {size}")
    return bytes(found).ljust(size, b"\0") if plain else None


def parameters(reader: Reader) -> Iterator[Parameter]:
    """What follows the opening parenthesis of a kernel, up to the closing one."""
    while not reader.take(")"):
        reader.expect(".param")
        kind = ""
        while reader.token.text.startswith("."):
            word = reader.next()
            if word == ".align":
                reader.integer()
            elif word[1:] in SIZES:
                kind = word[1:]
            elif word not in (".ptr", ".global", ".const", ".shared", ".local"):
                reader.fail(f"{word!r} is not known in a parameter")
        if not kind:
            reader.fail("a parameter without a type")
        name, size = reader.next(), 0
        if reader.take("["):
            size = reader.integer() * SIZES[kind]
            reader.expect("]")
        yield Parameter(name, kind, size)
        reader.take(",")


def layout(variables: list[Variable]) -> tuple[dict[str, int], int]:
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
