"""Kernels of one instruction, and the shipped fixtures."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specrepro.repro.emulator.launch import Buffer, LaunchReport, launch
from specrepro.repro.emulator.ptx import Kernel, parse

Array = np.ndarray[Any, Any]
PTX = Path(__file__).parent / "ptx"

HEADER = ".version 8.8\n.target sm_80\n.address_size 64\n"
WORDS = {1: "b8", 2: "b16", 4: "b32", 8: "b64"}
REGISTERS = "abcefg"


def kernel(body: str, pointers: int, declarations: str = "") -> Kernel:
    """A kernel `k` of `pointers` parameters p0, p1... loaded into %p0, %p1...; %i is ctaid * ntid
    + tid, %t is tid.
    """
    params = ", ".join(f".param .u64 p{n}" for n in range(pointers))
    loads = "\n".join(f"ld.param.u64 %p{n}, [p{n}];" for n in range(pointers))
    text = f"""{HEADER}
.visible .entry k({params})
{{
.reg .b64 %p<{max(1, pointers)}>;
.reg .b32 %i, %t, %n, %w;
{declarations}
.loc 1 1 0
{loads}
mov.u32 %t, %tid.x;
mov.u32 %n, %ntid.x;
mov.u32 %i, %ctaid.x;
mad.lo.s32 %i, %i, %n, %t;
{body}
ret;
}}
.file 1 "kernel.cu"
"""
    return parse(text).kernels["k"]


def element_address(register: str, pointer: str, itemsize: int) -> str:
    return f"mad.wide.s32 {register}, %i, {itemsize}, {pointer};"


def evaluate(
    instructions: str,
    inputs: list[Array],
    out: Any,
    *,
    declarations: str = "",
    block: int | None = None,
) -> Array:
    """What `instructions` leave in %d, for each thread; %a, %b, %c, %e... are its inputs."""
    dtype = np.dtype(out)
    lines, registers = [], [f".reg .b64 %at; .reg .{WORDS[max(2, dtype.itemsize)]} %d;"]
    for number, (name, values) in enumerate(zip(REGISTERS, inputs, strict=False)):
        size = values.dtype.itemsize
        registers.append(f".reg .{WORDS[max(2, size)]} %{name};")
        lines.append(element_address("%at", f"%p{number}", size))
        lines.append(f"ld.global.{WORDS[size]} %{name}, [%at];")
    lines.append(instructions)
    lines.append(element_address("%at", f"%p{len(inputs)}", dtype.itemsize))
    lines.append(f"st.global.{WORDS[dtype.itemsize]} [%at], %d;")
    built = kernel("\n".join(lines), len(inputs) + 1, "\n".join(registers) + declarations)
    count = inputs[0].size
    threads = block or count
    result = np.zeros(count, dtype)
    buffers = [Buffer(f"in{n}", np.ascontiguousarray(v)) for n, v in enumerate(inputs)]
    report = launch(
        built, (count // threads, 1, 1), (threads, 1, 1), [*buffers, Buffer("out", result)]
    )
    assert report.accesses == ()
    return result


def rounded(exact: Fraction, precision: int, least: int, most: int, mode: str = "rn") -> float:
    """`exact` in a binary format of `precision` bits, exponents least..most of the leading bit.

    An implementation of its own, from the definition. rn, rz, rm, rp as PTX has them.
    """
    if exact == 0:
        return 0.0
    sign, size = (-1 if exact < 0 else 1), abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, least) - precision + 1)
    whole, rest = divmod(size, unit)
    up = {
        "rn": rest * 2 > unit or (rest * 2 == unit and whole % 2 == 1),
        "rz": False,
        "rm": sign < 0 and rest > 0,
        "rp": sign > 0 and rest > 0,
    }[mode]
    value = (whole + up) * unit
    limit = (2 - Fraction(2) ** (1 - precision)) * Fraction(2) ** most
    if value > limit:
        towards = mode == "rz" or (mode == "rm" and sign > 0) or (mode == "rp" and sign < 0)
        return sign * (float(limit) if towards else float("inf"))
    return sign * float(value)


FORMATS = {"f16": (11, -14, 15), "bf16": (8, -126, 127), "f32": (24, -126, 127)}


@pytest.fixture
def one() -> Callable[..., Array]:
    return evaluate


@pytest.fixture
def build() -> Callable[..., Kernel]:
    return kernel


@pytest.fixture
def nearest() -> Callable[..., float]:
    """rounded(exact, format name, mode)"""

    def to(exact: Fraction, name: str, mode: str = "rn") -> float:
        return rounded(exact, *FORMATS[name], mode)

    return to


@pytest.fixture
def run() -> Callable[..., LaunchReport]:
    """launch with short shapes: run(kernel, blocks, threads, args)"""

    def go(built: Kernel, blocks: int, threads: int, args: list[Any], **more: Any) -> LaunchReport:
        return launch(built, (blocks, 1, 1), (threads, 1, 1), args, **more)

    return go


@pytest.fixture(scope="session")
def fixtures() -> dict[str, Kernel]:
    """The kernels of ptx/*.ptx, by name."""
    found: dict[str, Kernel] = {}
    for path in sorted(PTX.glob("*.ptx")):
        found |= parse(path.read_text()).kernels
    return found
