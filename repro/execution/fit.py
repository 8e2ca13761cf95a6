"""Whether a place has what a task needs. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .task import Needs

GIB = 1 << 30
DRIVER = re.compile(r"(>=|<=|==|<|>) ?(\d+(?:\.\d+){0,3})")
COMPARED = {
    ">=": lambda one, other: one >= other,
    "<=": lambda one, other: one <= other,
    "==": lambda one, other: one[: len(other)] == other,
    ">": lambda one, other: one > other,
    "<": lambda one, other: one < other,
}


def unmet_by_gpu(needs: Needs, name: str | None, free: int | None) -> tuple[str, ...]:
    """What of `needs` a GPU does not meet; what the driver does not tell is not met.

    name: of the device, `NVIDIA H100 80GB HBM3`. free: bytes.
    """
    problems = []
    if needs.gpu_types and not any(is_type(name, one) for one in needs.gpu_types):
        problems.append(f"needs {' or '.join(needs.gpu_types)}, is {name or 'of an unknown type'}")
    if needs.free_memory and (free is None or free < needs.free_memory):
        has = "an unknown amount" if free is None else f"{free / GIB:.1f} GiB"
        problems.append(f"needs {needs.free_memory / GIB:g} GiB free, has {has}")
    return tuple(problems)


def unmet_by_driver(needs: Needs, driver: str | None) -> tuple[str, ...]:
    """What of `needs` a driver does not meet. driver: `580.65.06`."""
    if not needs.driver or (driver is not None and satisfies(driver, needs.driver)):
        return ()
    return (f"needs driver {needs.driver}, has {driver or 'an unknown one'}",)


def is_type(name: str | None, wanted: str) -> bool:
    """Whether a device's name has `wanted` as a word: `H100` is one of `NVIDIA H100 PCIe`, and
    `A100-SXM4-80GB` and `A100` both are of `NVIDIA A100-SXM4-80GB`."""
    if name is None:
        return False
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(wanted)}(?![A-Za-z0-9])", name, re.I) is not None


def satisfies(version: str, wanted: str) -> bool:
    """Whether a driver's version meets every part of `>=570,<590`; False for one that is no
    version. ValueError where `wanted` is none."""
    parts = driver_parts(wanted)
    numbers = re.fullmatch(r"\d+(?:\.\d+)*", version)
    if numbers is None:
        return False
    has = tuple(int(number) for number in version.split("."))
    return all(COMPARED[sign](_padded(has, then), then) for sign, then in parts)


def driver_parts(wanted: str) -> Sequence[tuple[str, tuple[int, ...]]]:
    """`>=570,<590` as signs and numbers; ValueError for anything else."""
    parts = []
    for word in wanted.split(","):
        match = DRIVER.fullmatch(word.strip())
        if match is None:
            raise ValueError(f"{word.strip()!r} is not a comparison with a driver's version")
        parts.append((match[1], tuple(int(number) for number in match[2].split("."))))
    return parts


def _padded(has: tuple[int, ...], then: tuple[int, ...]) -> tuple[int, ...]:
    """As many numbers as the other has at least; `570` is `570.0` beside `570.86`."""
    return has + (0,) * (len(then) - len(has))
