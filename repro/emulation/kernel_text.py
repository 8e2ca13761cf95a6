"""A kernel of the user as PTX, and which of its entries is meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..escape import quoted
from ..scenarios.declare import nearest

if TYPE_CHECKING:
    from ..emulator.ptx import Kernel

LANGUAGES = {".ptx": "ptx", ".cu": "cuda", ".py": "triton"}
MAX_BYTES = {"ptx": 16 << 20, "cuda": 2 << 20, "triton": 2 << 20}


@dataclass(frozen=True, slots=True)
class KernelText:
    """PTX, the entry that was asked for (None: the only one), and what was left out of it."""

    ptx: str
    entry: str | None
    notes: tuple[str, ...] = ()


def language(path: Path) -> str:
    """`ptx`, `cuda` or `triton`; UsageError for a file that is none of them or not there."""
    if path.suffix not in LANGUAGES:
        raise UsageError("a kernel is a .ptx, .cu (CUDA C++) or .py (Triton) file", where=str(path))
    if not path.is_file():
        raise UsageError("no such file", where=str(path))
    kind = LANGUAGES[path.suffix]
    if path.stat().st_size > MAX_BYTES[kind]:
        raise UsageError(f"has more than {MAX_BYTES[kind]:,} bytes", where=str(path))
    return kind


def chosen(names: Iterable[str], wanted: str | None, where: str) -> str:
    """The entry that `wanted` names, in PTX or in C++; the only one for None. UsageError if none or
    several are meant.
    """
    known = list(names)
    if not known:
        raise UsageError("it holds no kernel", where=where)
    shown = ", ".join(dict.fromkeys(plain_name(name) for name in known[:20]))
    if wanted is None:
        if len(known) > 1:
            raise UsageError(
                f"it holds {len(known)} kernels", where=where, hint=f"--entry names one of: {shown}"
            )
        return known[0]
    if wanted in known:
        return wanted
    found = [name for name in known if plain_name(name) == wanted]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"several kernels are called {quoted(wanted)}",
            where=where,
            hint=f"--entry takes the name in the PTX: {', '.join(found[:20])}",
        )
    hint = nearest(wanted, map(plain_name, known)) or f"it has {shown}"
    raise UsageError(f"it has no kernel {quoted(wanted)}", where=where, hint=hint)


def plain_name(mangled: str) -> str:
    """The C++ name of a kernel without namespaces and types, where the name is an Itanium one."""
    if not mangled.startswith("_Z"):
        return mangled
    text = mangled.removeprefix("_Z")
    nested = text.startswith("N")
    name, text = mangled, text.removeprefix("N")
    while match := re.match(r"\d+", text):
        length = int(match[0][:6])
        rest = text[match.end() :]
        name, text = rest[:length], rest[length:]
        if not nested:
            break
    return name


def renamed(ptx: str, names: Iterable[str], shown: str) -> str:
    """PTX whose `.file` directives say `shown` for the files called one of `names`."""
    known = set(names)

    def line(match: re.Match[str]) -> str:
        return f'{match[1]}"{shown}"' if match[2] in known else match[0]

    return re.sub(r'^(\s*\.file\s+\d+\s+)"([^"\n]*)"', line, ptx, flags=re.MULTILINE)


def with_places(kernel: Kernel, file: str) -> Kernel:
    """`kernel`; without line information its instructions are placed on lines of the PTX."""
    from ..emulator.ptx import Place

    if any(instruction.place.line for instruction in kernel.body):
        return kernel
    body = tuple(replace(one, place=Place(file, one.line)) for one in kernel.body)
    return replace(kernel, body=body)
