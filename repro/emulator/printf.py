"""What device printf prints, from its format and the bytes of its arguments.

CUDA C++ programming guide, formatted output. Arguments lie one after the other, each aligned to its
size: 4 bytes for int and char, 8 for long long, double and pointers.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

MAX_TEXT = 4096  # characters of one call
MAX_WIDTH = 1024
_SPEC = re.compile(
    r"%([-+ #0]*)(\*|\d{0,6})(?:\.(\*|\d{0,6}))?(hh|h|ll|l|z|t|j|q|L)?([diouxXcsfFeEgGaAp%])",
    re.ASCII,
)
_LONG = frozenset({"l", "ll", "z", "t", "j", "q"})


def formatted(pattern: str, arguments: bytes, text: Callable[[int], str]) -> str:
    """The text; at most MAX_TEXT characters of it.

    arguments: the bytes from the first argument on; missing ones are zero. text: the string at an
    address, for %s. What is no conversion is printed as it stands.
    """
    packed = _Packed(arguments)

    def replaced(match: re.Match[str]) -> str:
        flags, width, precision, size, kind = match.groups()
        if kind == "%":
            return "%"
        if width == "*":
            given = packed.integer("i")
            flags, width = flags + "-" * (given < 0), str(abs(given))
        if precision == "*":
            given = packed.integer("i")
            precision = str(given) if given >= 0 else None
        wide = str(min(int(width or 0), MAX_WIDTH))
        start = "%" + "".join(sorted(set(flags))) + wide * (wide != "0")
        if precision is not None:
            start += "." + str(min(int(precision or 0), MAX_WIDTH))
        return _converted(start, size, kind, packed, text)

    return _SPEC.sub(replaced, pattern[:MAX_TEXT])[:MAX_TEXT]


def _converted(
    start: str, size: str | None, kind: str, packed: _Packed, text: Callable[[int], str]
) -> str:
    long = size in _LONG
    if kind in "di":
        value = packed.integer("q" if long else "i")
        return (start + "d") % _cut(value, size, signed=True)
    if kind in "ouxX":
        value = packed.integer("Q" if long else "I")
        return _unsigned(start, kind, _cut(value, size, signed=False))
    if kind == "c":
        return (start.partition(".")[0].replace("0", "") + "c") % chr(packed.integer("i") & 255)
    if kind == "s":
        return (start.replace("%0", "%") + "s") % text(packed.integer("Q"))
    if kind == "p":
        return "0x%x" % packed.integer("Q")  # noqa: UP031 - the notation of the language printed
    number = packed.real()
    if kind in "aA":
        found = number.hex()
        return found if kind == "a" else found.upper()
    return (start + kind) % number


def _unsigned(start: str, kind: str, value: int) -> str:
    found = (start + ("d" if kind == "u" else kind)) % value
    return found.replace("0o", "0", 1) if kind == "o" else found


def _cut(value: int, size: str | None, *, signed: bool) -> int:
    bits = {"h": 16, "hh": 8}.get(size or "")
    if bits is None:
        return value
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


class _Packed:
    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 0

    def _take(self, size: int) -> bytes:
        self.at = -(-self.at // size) * size
        piece = self.raw[self.at : self.at + size].ljust(size, b"\0")
        self.at += size
        return piece

    def integer(self, code: str) -> int:
        (value,) = struct.unpack("<" + code, self._take(struct.calcsize("<" + code)))
        return int(value)

    def real(self) -> float:
        (value,) = struct.unpack("<d", self._take(8))
        return float(value)
