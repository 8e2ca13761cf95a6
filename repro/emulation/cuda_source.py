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
_FLOAT = """#pragma once
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_MIN 1.17549435e-38F
#define FLT_MAX 3.40282347e+38F
#define FLT_EPSILON 1.19209290e-07F
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_MIN 2.2250738585072014e-308
#define DBL_MAX 1.7976931348623157e+308
#define DBL_EPSILON 2.2204460492503131e-16
"""
_LIMITS = """#pragma once
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295U
#define LONG_MIN (-9223372036854775807L - 1)
#define LONG_MAX 9223372036854775807L
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MIN (-9223372036854775807LL - 1)
#define LLONG_MAX 9223372036854775807LL
#define ULLONG_MAX 18446744073709551615ULL
"""
_MATH = """#pragma once
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define HUGE_VALF INFINITY
#define HUGE_VAL __longlong_as_double(0x7ff0000000000000LL)
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LN2 0.69314718055994530942
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_1_PI 0.31830988618379067154
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
typedef unsigned int uint; typedef unsigned short ushort; typedef unsigned long ulong;
"""
# Where CUDA's C++ library is here, which has the same for device code.
_NUMERIC_LIMITS = """#pragma once
#if __has_include(<cuda/std/limits>)
#include <cuda/std/limits>
namespace std { using ::cuda::std::numeric_limits; }
#endif
"""
IMPLIED = "math.h"  # what nvcc includes unasked
STAND_INS = {
    "stdint.h": _STDINT,
    "cstdint": _STDINT,
    "assert.h": _ASSERT,
    "cassert": _ASSERT,
    "float.h": _FLOAT,
    "cfloat": _FLOAT,
    "limits.h": _LIMITS,
    "climits": _LIMITS,
    "math.h": _MATH,
    "cmath": '#include "math.h"\n',
    "limits": _NUMERIC_LIMITS,
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
        implied=[IMPLIED],
        expressions=expressions,
    )
    chosen = compiled.lowered.get(entry, entry) if entry is not None else None
    return KernelText(compiled.ptx, chosen, tuple(notes))
