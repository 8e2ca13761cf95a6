"""Kernels written with cooperative groups, of a block and of what is in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from specrepro.repro.compilation import CompilerMissingError, cuda_headers, nvrtc
from specrepro.repro.emulator.checks import ALL
from specrepro.repro.emulator.launch import Buffer, LaunchReport, prepare
from specrepro.repro.emulator.ptx import Kernel, parse
from specrepro.repro.errors import UnsupportedError
from specrepro.repro.records import Kind

pytestmark = pytest.mark.compilers

SOURCE = Path(__file__).parent / "ptx" / "cooperative.cu"
Run = Callable[..., LaunchReport]
# one element of each sign and parity, and no two alike
VALUES = np.random.default_rng(0).permutation(1024)[:256].astype(np.int32) - 300


def compiled(text: str) -> dict[str, Kernel]:
    try:
        if not (cuda_headers()[0] / "nv" / "target").is_file():
            pytest.skip("nvidia-cuda-cccl is not installed")
        return dict(parse(nvrtc(text.encode(), SOURCE.name).ptx).kernels)
    except CompilerMissingError as error:
        pytest.skip(f"{error} is not installed")


@pytest.fixture(scope="module")
def kernels() -> dict[str, Kernel]:
    return compiled(SOURCE.read_text())


def sums(run: Run, kernel: Kernel) -> tuple[LaunchReport, list[int], list[int]]:
    out, most = np.zeros(2, np.int32), np.zeros(32, np.int32)
    given = [Buffer("in", VALUES), Buffer("out", out), Buffer("most", most)]
    report = run(kernel, 2, 128, given, checks=ALL)
    return report, out.tolist(), most.tolist()


def test_groups_of_a_block_sum_and_reduce(run: Run, kernels: dict[str, Kernel]) -> None:
    report, out, most = sums(run, kernels["sums"])
    assert report.accesses == ()
    assert out == VALUES.reshape(2, 128).sum(1).tolist()
    assert most == VALUES.reshape(32, 8).max(1).tolist()


def test_a_group_that_does_not_meet_is_a_race(run: Run) -> None:
    text = SOURCE.read_text()
    line = text[: text.index("part[warp.meta")].count("\n") + 1
    report, _, _ = sums(run, compiled(text.replace("  block.sync();\n", "\n"))["sums"])
    assert {(a.kind, a.line) for a in report.accesses} == {(Kind.SHARED_RACE, line)}


def test_threads_that_came_together_share_an_atomic(run: Run, kernels: dict[str, Kernel]) -> None:
    given, out = VALUES[:128], np.zeros(129, np.int32)
    report = run(kernels["odd"], 1, 128, [Buffer("in", given), Buffer("out", out)], checks=ALL)
    assert report.accesses == ()
    wanted = sorted(given[given % 2 == 1].tolist())
    assert out[0] == len(wanted)
    assert sorted(out[1 : 1 + len(wanted)].tolist()) == wanted


def test_all_blocks_waiting_for_each_other_are_refused(kernels: dict[str, Kernel]) -> None:
    with pytest.raises(UnsupportedError, match="%envreg"):
        prepare(kernels["everybody"])
