"""Damaged PTX is refused by name or runs to an end: nothing else may happen."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specrepro.repro.emulator.launch import Buffer, LaunchReport, launch
from specrepro.repro.emulator.ptx import Kernel, parse
from specrepro.repro.errors import SpecreproError, UnsupportedError

FILES = sorted(Path(__file__).parent.glob("ptx/*.ptx"))
FILES += sorted(Path(__file__).parent.glob("coverage/ptx/*.ptx"))
TEXTS = [path.read_text() for path in FILES]
PIECES = [*"{}()[];,.%@!|+-:<>", "%r1", "%p1", "0f7F800000", "-1", "ld.global.u32", "bra", "\x00"]


def damaged(text: str, seed: int) -> str:
    """`text` with a few tokens dropped, doubled, swapped or replaced."""
    chance = random.Random(seed)  # noqa: S311 - reproducible damage, no secret
    words = text.split(" ")
    for _ in range(chance.randint(1, 4)):
        at, other = chance.randrange(len(words)), chance.randrange(len(words))
        kind = chance.randrange(5)
        if kind == 0:
            words[at] = ""
        elif kind == 1:
            words[at] += " " + words[at]
        elif kind == 2:
            words[at], words[other] = words[other], words[at]
        elif kind == 3:
            words[at] = chance.choice(PIECES)
        else:
            word = words[at]
            cut = chance.randrange(len(word) + 1)
            words[at] = word[:cut] + chance.choice(PIECES) + word[cut + 1 :]
    return " ".join(words)


def attempt(kernel: Kernel) -> LaunchReport:
    threads = kernel.reqntid or (32, 1, 1)
    args: list[Buffer | int | float | None] = []
    for number, parameter in enumerate(kernel.params):
        if parameter.type in ("u64", "b64", "s64"):
            args.append(Buffer(f"b{number}", np.full(64, 3, np.int32)))
        else:
            args.append(3)
    return launch(kernel, (2, 1, 1), threads, args, shared_bytes=256, max_instructions=3000)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 1 << 30), which=st.integers(0, len(TEXTS) - 1))
def test_damaged_text_is_refused_or_runs_to_an_end(seed: int, which: int) -> None:
    try:
        kernels = parse(damaged(TEXTS[which], seed)).kernels
    except UnsupportedError:
        return
    for kernel in kernels.values():
        try:
            report = attempt(kernel)
        except SpecreproError:
            continue
        assert 0 <= report.instructions <= 3000


@settings(max_examples=100, deadline=None)
@given(words=st.lists(st.sampled_from([*'{};,.%@[]() \n"/*:+-_0f1', ".reg", ".entry ", "k"])))
def test_random_text_is_refused_or_empty(words: list[str]) -> None:
    text = "".join(words)
    try:
        kernels = parse(text).kernels
    except UnsupportedError:
        return
    assert all(not kernel.body for kernel in kernels.values())


@pytest.mark.parametrize(
    "text",
    [
        "/* " * 200_000,
        "\n.section x" * 100_000,
        "\n.section x {" * 100_000,
        '\n"' * 100_000,
        '"' * 200_000,
        "a" * 500_000,
        "a." * 200_000,
        ".entry k() { .reg .b32 %r<999999999>; mov.b32 %r99999999, %r1; ret; }",
        ".entry k() { " + "mov.b32 %r, 1;" * 10_000,
        ".entry k() { .reg .b32 %" + "9" * 100_000 + "; ret; }",
        ".section .debug_str { " + "\n" * 100_000,
    ],
    ids=lambda text: text[:12],
)
def test_large_nonsense_ends_soon(text: str) -> None:
    read: Callable[[str], object] = parse
    try:
        read(text)
    except UnsupportedError as error:
        assert error.message  # noqa: PT017 - either outcome is right, silence about why is not
