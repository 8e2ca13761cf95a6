"""A CUDA C++ file of the user made into PTX."""

from __future__ import annotations

import re
from pathlib import Path

from ..compilation import cuda_headers, nvrtc
from .host_code import device_code
from .kernel_text import KernelText

# The part of the C library that device code may use, of which NVRTC brings no headers. Types and
# `assert` as CUDA's own headers have them on Linux.
_STDINT = "\n".join(
    f"typedef {sign}{c} {prefix}int{bits}_t;"
    for bits, c in ((8, "char"), (16, "short"), (32, "int"), (64, "long"))
    for sign, prefix in (("signed ", ""), ("unsigned ", "u"))
)
_STDINT = f"#pragma once\n{_STDINT}\ntypedef unsigned long uintptr_t; typedef long intptr_t;\n"
_ASSERT = """#pragma once
extern "C" __device__ void __assertfail(const char*, const char*, unsigned, const char*, size_t);
#define assert(e) ((e) ? (void)0 : __assertfail(#e, __FILE__, __LINE__, __func__, sizeof(char)))
"""
STAND_INS = {
    "stdint.h": _STDINT,
    "cstdint": _STDINT,
    "assert.h": _ASSERT,
    "cassert": _ASSERT,
}
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)


def compile_cuda(path: Path, shown: str, entry: str | None) -> KernelText:
    """Compile the device code of `path`; `shown` is the name messages have for it.

    Host functions and headers that are not here are left out, and the notes say which: code that
    needed them is refused by the compiler with its line. `entry` may be an instance of a template.
    """
    source = path.read_text(encoding="utf-8", errors="replace")
    device = device_code(source)
    notes = [
        f"host code left out: {part.name}, "
        + (f"line {part.first}" if part.first == part.last else f"lines {part.first}–{part.last}")
        for part in device.left_out
    ]
    headers = dict(STAND_INS)
    for name in dict.fromkeys(_INCLUDE.findall(device.text)):
        here = any((folder / name).is_file() for folder in (*cuda_headers(), path.parent))
        if not here and name not in headers:
            headers[name] = ""
            notes.append(f"header left out: {name}")
    expressions = [entry] if entry is not None and "<" in entry else []
    compiled = nvrtc(
        device.text.encode(),
        shown,
        folders=[path.parent],
        headers=headers,
        expressions=expressions,
    )
    chosen = compiled.lowered.get(entry, entry) if entry is not None else None
    return KernelText(compiled.ptx, chosen, tuple(notes))
