"""Compiler output made fit to ship: the same bytes on every machine, and no path of any."""

from __future__ import annotations

import re

_FILE = re.compile(r'(\s*\.file\s+\d+\s+)"([^"]*)"')
_INLINE_ASM = ("// begin inline asm", "// end inline asm")


def normalise(ptx: str, source: str) -> str:
    """PTX without comments, debug sections and machine paths; still accepted by ptxas.

    source: the kernel's own file, relative to the package root with forward slashes. Other files
    (a compiler's library, CUDA headers) become relative to the site-packages they came from.
    `.debug_str` stays where `.loc ... function_name` refers to it; it holds function names only.
    """
    lines: list[str] = []
    depth = 0  # within the braces of a dropped section
    dropping = False
    locations = -1  # `.loc` seen within the current inline asm; -1: outside
    inlined = "function_name" in ptx
    for raw in ptx.splitlines():
        if raw.strip() in _INLINE_ASM:
            locations = 0 if raw.strip() == _INLINE_ASM[0] else -1
        line = raw.split("//", 1)[0].rstrip() if ".file" not in raw else raw.rstrip()
        if not line:
            continue
        if line.lstrip().startswith(".section"):
            dropping = not (inlined and ".debug_str" in line)
            depth = 0
        if dropping:
            depth += line.count("{") - line.count("}")
            if "}" in line and depth == 0:
                dropping = False
            continue
        if locations >= 0 and line.lstrip().startswith(".loc"):
            # LLVM counts the lines of the asm text as lines of the source: in the second line of
            # a load's text it names the statement below the load.
            locations += 1
            if locations > 1:
                continue
        lines.append(_FILE.sub(lambda match: f'{match[1]}"{relative(match[2], source)}"', line))
    return "\n".join(lines) + "\n"


def relative(path: str, source: str) -> str:
    """`path` as shipped PTX names it; see `normalise`."""
    path = path.replace("\\", "/")
    parts, own = path.split("/"), source.split("/")
    if parts[-len(own) :] == own:
        return source
    for packages in ("site-packages", "dist-packages"):
        if packages in parts:
            return "/".join(parts[parts.index(packages) + 1 :])
    return parts[-1] if parts[0] == "" or parts[0].endswith(":") else path
