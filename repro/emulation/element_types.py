"""The element and scalar types that an argument file may name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ElementType:
    """kind: "f" float, "i" signed, "u" unsigned. size: bytes. triton: the name Triton has for it.

    numpy: the dtype of its storage; for floats that numpy lacks the unsigned words of its bits, and
    exponent, mantissa: their bits.
    """

    name: str
    kind: str
    size: int
    triton: str
    numpy: str
    exponent: int = 0
    mantissa: int = 0

    @property
    def raw(self) -> bool:
        """Whether numpy holds only the bits."""
        return self.exponent > 0


def _all() -> dict[str, ElementType]:
    found = [
        ElementType("f16", "f", 2, "fp16", "<f2"),
        ElementType("f32", "f", 4, "fp32", "<f4"),
        ElementType("f64", "f", 8, "fp64", "<f8"),
        ElementType("bf16", "f", 2, "bf16", "<u2", 8, 7),
        ElementType("f8e4m3", "f", 1, "fp8e4nv", "|u1", 4, 3),
        ElementType("f8e5m2", "f", 1, "fp8e5", "|u1", 5, 2),
        ElementType("bool", "u", 1, "u1", "|u1"),
    ]
    for size in (1, 2, 4, 8):
        for kind in "iu":
            order = "|" if size == 1 else "<"
            name = f"{kind}{8 * size}"
            found.append(ElementType(name, kind, size, name, f"{order}{kind}{size}"))
    return {each.name: each for each in found}


TYPES: Mapping[str, ElementType] = _all()
# Other spellings, as Triton, numpy and torch have them.
ALIASES: Mapping[str, str] = {
    "fp16": "f16",
    "fp32": "f32",
    "fp64": "f64",
    "fp8e4nv": "f8e4m3",
    "fp8e5": "f8e5m2",
    "i1": "bool",
    "u1": "bool",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2",
    **{f"int{n}": f"i{n}" for n in (8, 16, 32, 64)},
    **{f"uint{n}": f"u{n}" for n in (8, 16, 32, 64)},
}


def element_type(name: str) -> ElementType | None:
    """The type of that name or spelling; None where there is none."""
    return TYPES.get(ALIASES.get(name, name))
