"""Correct kernels out of a grammar stay silent, and lose that with one of their barriers."""

from __future__ import annotations

import importlib.metadata
import random
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from specrepro.repro.compilation import nvrtc
from specrepro.repro.emulator import checks, shared_races
from specrepro.repro.emulator.launch import Buffer, LaunchReport, launch
from specrepro.repro.emulator.ptx import Kernel, parse
from specrepro.repro.ptx_text import normalise
from specrepro.repro.records import Kind

Draw = random.Random  # of programs, not of secrets
COUNT, KEPT_COUNT = 200, 12
KEPT = Path(__file__).parent / "ptx" / "generated" / "correct.ptx"
BLOCKS, THREADS = 3, 128
HEAD = """
#define T int(threadIdx.x)
#define B int(blockIdx.x)
#define I int(blockIdx.x * blockDim.x + threadIdx.x)
"""
# One phase each: it leaves shared memory free for the next one. SYNC is a barrier that is needed.
PHASES = [
    "s[T] = v; SYNC v += s[(T + $a) % 128]; SYNC",
    "s[127 - T] = v * $a; SYNC v ^= s[T]; SYNC",
    "if (T == $b) s[0] = v; SYNC v += s[0]; SYNC",
    "if (T < 16) s[T] = 0; SYNC atomicAdd(&s[(v & 0xff) % 16], $a); SYNC v += s[T % 16]; SYNC",
    "if (T == 0) s[3] = 0; SYNC if (v % $a == 0) atomicMax(&s[3], T); SYNC v += s[3]; SYNC",
    "for (int d = 64; d; d /= 2) { s[T] = v; SYNC if (T < d) v += s[T + d]; SYNC }",
    "s[T] = v; if (__syncthreads_count(v & 1) > $a) v += s[(T + 1) % 128]; SYNC",
    "s[T] = v; SYNC for (int d = 1; d < 128; d *= 2) {"
    " int w = T >= d ? s[T - d] : 0; SYNC s[T] += w; SYNC } v = s[T]; SYNC",
    "s[T] = v; __syncwarp(); v += s[T ^ $c]; __syncwarp(); SYNC",
    "s[T] = v; __syncwarp(); if (T % 32 == 0) { for (int i = 1; i < 32; i++) v += s[T + i]; }"
    " __syncwarp(); SYNC",
    "{ unsigned half = T % 32 < 16 ? 0xffff : 0xffff0000; s[T] = v; __syncwarp(half);"
    " v += s[T ^ ($c & 15)]; __syncwarp(half); } SYNC",
    "v += __shfl_xor_sync(~0u, v, $c);",
    "v = __ballot_sync(~0u, v & 1) ? v + $a : v;",
    "for (int i = 0; i < 4; i++) { s[i % 2 * 128 + T] = v + i; SYNC"
    " v += s[i % 2 * 128 + (T + $a) % 128]; } SYNC",
    "s[$b % 8] = $a; SYNC v += s[$b % 8]; SYNC",
    "tile[T / 16][T % 16] = v; SYNC v += tile[T % 8][T / 8]; SYNC",
    "((unsigned char*)s)[T] = v; SYNC v += ((unsigned char*)s)[T ^ $c]; SYNC",
    "if (T < 64) ((long long*)s)[T] = v; SYNC v += s[T]; SYNC",
    "{ int own[8]; for (int i = 0; i < 8; i++) own[i] = v * i; v += own[(v + $a) & 7]; }",
    "out[I] = v; v += out[I];",
    "if (v & 1) v += $a; else v -= $b;",
]
NESTS = [
    "if (B % 2 == $d) { @ }",
    "for (int n = 0; n < $d + 1; n++) { @ }",
    "for (int n = 0; n <= B; n++) { @ }",
]


def body(draw: Draw, depth: int = 0) -> str:
    """Statements: phases one after the other, some within branches and loops of whole blocks."""
    parts = []
    for _ in range(draw.randint(1, 3)):
        if depth < 2 and draw.random() < 0.3:
            parts.append(draw.choice(NESTS).replace("@", body(draw, depth + 1)))
        else:
            parts.append(draw.choice(PHASES))
    text = "\n".join(parts)
    for name, most in (("$a", 31), ("$b", 127), ("$d", 1)):
        text = text.replace(name, str(draw.randint(name == "$a", most)))
    return text.replace("$c", str(2 ** draw.randint(0, 4)))


def kernel(name: str, statements: str) -> str:
    return f"""extern "C" __global__ void {name}(int* out, const int* in) {{
  __shared__ int s[256];
  __shared__ int tile[8][17];
  int v = in[I];
  {statements}
  out[I] = v;
  if (v == 123456789) out[I] = s[T] + tile[0][0];
}}
"""


def correct(number: int) -> str:
    statements = body(Draw(number)).replace("SYNC", "__syncthreads();")
    return kernel(f"correct_{number}", statements)


def broken(number: int, phase: str, left_out: int) -> str:
    """A kernel of one phase without its SYNC number `left_out`."""
    text = phase.replace("$a", "5").replace("$b", "9").replace("$c", "4").replace("$d", "1")
    pieces = text.split("SYNC")
    syncs = ["__syncthreads();"] * (len(pieces) - 1)
    syncs[left_out] = ""
    joined = "".join(a + b for a, b in zip(pieces, [*syncs, ""], strict=True))
    return kernel(f"broken_{number}", joined)


# Phases whose first barrier stands before another thread's access of another value.
SAME_VALUE = "s[$b % 8] = $a;"
BREAKABLE = [
    phase
    for phase in PHASES
    if "SYNC" in phase and "__sync" not in phase and not phase.startswith(SAME_VALUE)
]


def run(built: Kernel) -> LaunchReport:
    out = Buffer("out", np.zeros(BLOCKS * THREADS, np.int32))
    numbers = np.random.default_rng(1).integers(0, 1 << 20, BLOCKS * THREADS).astype(np.int32)
    args = [out, Buffer("in", numbers)]
    return launch(built, (BLOCKS, 1, 1), (THREADS, 1, 1), args, checks=checks.ALL)


def compiled(sources: list[str]) -> Mapping[str, Kernel]:
    text = nvrtc((HEAD + "".join(sources)).encode(), "generated.cu").ptx
    return parse(normalise(text, "generated.cu")).kernels


def need_compiler() -> None:
    for wheel in ("nvidia-cuda-nvrtc", "nvidia-cuda-runtime"):
        try:
            importlib.metadata.version(wheel)
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{wheel} is not installed")


def silent(kernels: Mapping[str, Kernel]) -> None:
    loud = {}
    for name, built in kernels.items():
        report = run(built)
        if report.accesses or report.warnings:
            loud[name] = [*report.accesses, *report.warnings]
    assert loud == {}


@pytest.mark.compilers
def test_correct_kernels_have_no_finding() -> None:
    need_compiler()
    kernels = compiled([correct(number) for number in range(COUNT)])
    assert len(kernels) == COUNT
    silent(kernels)


def test_kept_correct_kernels_have_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = parse(KEPT.read_text()).kernels
    assert len(kernels) == KEPT_COUNT
    silent(kernels)
    monkeypatch.setattr(shared_races, "FEW", 0)  # what blocks passed without the others is
    monkeypatch.setattr(shared_races, "APART", 0)  # forgotten at each barrier
    silent(kernels)


@pytest.mark.compilers
def test_without_its_first_barrier_a_phase_races() -> None:
    need_compiler()
    kernels = compiled([broken(n, phase, 0) for n, phase in enumerate(BREAKABLE)])
    quiet = [
        BREAKABLE[int(name.removeprefix("broken_"))]
        for name, built in kernels.items()
        if Kind.SHARED_RACE not in {access.kind for access in run(built).accesses}
    ]
    assert quiet == []


if __name__ == "__main__":
    KEPT.parent.mkdir(exist_ok=True)
    source = HEAD + "".join(correct(number) for number in range(KEPT_COUNT))
    KEPT.write_text(normalise(nvrtc(source.encode(), "generated.cu").ptx, "generated.cu"))
