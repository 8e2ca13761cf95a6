"""Machines as they are found, well and not: what `specrepro run` makes of each. The table of runs.

Each row is a machine, what is run on it beside `reference`, the verdict, the status of the faulty
and of the fixed trial, and words that the faulty trial must say in its reason or evidence.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

Box = Any
REPRODUCED, INCONCLUSIVE = "REPRODUCED", "INCONCLUSIVE"
# at another point than the file's own its other points are left out
CASE = ("mtp-tail-overflow", "--variant", "faulty", "--variant", "fixed", "--set", "seq_len=63")


@dataclass(frozen=True)
class Row:
    """lane: the one that is looked at. said: words of the faulty trial. quiet: words that the fixed
    one must not say. words: options."""

    machine: str
    make: Callable[[Box], None]
    lane: str
    verdict: str
    faulty: str
    fixed: str
    said: tuple[str, ...]
    quiet: str = ""
    words: tuple[str, ...] = ()


def well(box: Box) -> None:
    box.xid()


def page_fault(box: Box) -> None:
    box.xid(31)


def storm(box: Box) -> None:
    box.xid(13, 50)


def lost(box: Box) -> None:
    box.xid()
    box.nvml.append("lose 0")
    box.lost = True


def no_nvml(box: Box) -> None:
    (box.folder / "lib" / "libnvidia-ml.so.1").unlink()


def no_driver(box: Box) -> None:
    box.nvml.append("fail nvmlInit_v2 9")


def no_kernel_log(box: Box) -> None:
    """To root nothing is forbidden: there it is missing."""
    box.xid()
    box.log.chmod(0)
    if os.geteuid() == 0:
        box.log.unlink()


def no_tool(box: Box) -> None:
    (box.folder / "bin" / "compute-sanitizer").unlink()
    box.more["PATH"] = str(box.folder / "bin")


def tool(**said: Any) -> Callable[[Box], None]:
    def make(box: Box) -> None:
        box.tool = {"found": ["seen"], **said}

    return make


def stuck(box: Box) -> None:
    box.before.append("export FAKE_STUCK=1")


ROWS = (
    Row("healthy", well, "plain", REPRODUCED, "fault", "clean", ("(700)", "no Xid")),
    Row("healthy, memcheck", well, "memcheck", REPRODUCED, "fault", "clean", ("finding",)),
    Row("Xid 31", page_fault, "plain", REPRODUCED, "fault", "clean", ("Xid 31",), "Xid 31"),
    Row("storm of 13", storm, "plain", REPRODUCED, "fault", "clean", ("Xid 13",), "Xid 13"),
    # what was seen before stays; the fix was not looked at on the device, and that is said
    Row("79, lost", lost, "plain", REPRODUCED, "fault", "skipped", ("Xid 79 (hardware)",)),
    Row("NVML missing", no_nvml, "plain", INCONCLUSIVE, "skipped", "skipped", ("no CUDA device",)),
    Row(
        "no driver",
        no_driver,
        "plain",
        INCONCLUSIVE,
        "skipped",
        "skipped",
        ("no CUDA device (NVML: Driver Not Loaded)",),
    ),
    Row(
        "kernel log denied",
        no_kernel_log,
        "plain",
        REPRODUCED,
        "fault",
        "clean",
        ("unobservable", "kernel.log: "),
    ),
    Row(
        "sanitizer absent",
        no_tool,
        "memcheck",
        INCONCLUSIVE,
        "skipped",
        "skipped",
        ("no compute-sanitizer on PATH",),
    ),
    Row(
        "sanitizer killed",
        tool(ending="killed"),
        "memcheck",
        INCONCLUSIVE,
        "unknown",
        "unknown",
        ("did not come to its end",),
    ),
    Row(
        "sanitizer truncated",
        tool(ending="cut"),
        "memcheck",
        INCONCLUSIVE,
        "unknown",
        "unknown",
        (),
    ),
    Row(
        "sanitizer too old",
        tool(version="2022.4.1.0"),
        "memcheck",
        INCONCLUSIVE,
        "skipped",
        "skipped",
        ("older than 2023.3",),
    ),
    Row(
        "sanitizer of another version",
        tool(version="2025.2.1.0"),
        "memcheck",
        REPRODUCED,
        "fault",
        "clean",
        ("compute-sanitizer 2025.2.1.0, memcheck",),
    ),
    Row(
        "child hung in the driver",
        stuck,
        "plain",
        INCONCLUSIVE,
        "timeout",
        "timeout",
        ("no end within 5 s",),
        words=("--timeout", "5"),
    ),
)


def words_of(trial: dict[str, Any]) -> str:
    evidence = (f"{e['source']} {e['state']} {e['detail']}" for e in trial["evidence"])
    return "\n".join([str(trial["reason"]), *evidence])


@pytest.fixture
def box(made_up_gpu: Any, tmp_path: Path) -> Box:
    return made_up_gpu(tmp_path)


@pytest.mark.parametrize("row", ROWS, ids=[row.machine for row in ROWS])
def test_each_machine_has_its_verdict_and_its_message(box: Box, row: Row) -> None:
    row.make(box)
    record = box.run(*CASE, "--lane", "reference", "--lane", row.lane, *row.words)
    trials = box.trials(record)
    faulty, fixed = trials["faulty", row.lane], trials["fixed", row.lane]
    (case,) = record["cases"]
    assert (case["verdict"], faulty["status"], fixed["status"]) == (
        row.verdict,
        row.faulty,
        row.fixed,
    ), (words_of(faulty), words_of(fixed), case["reasons"])
    for word in row.said:
        assert word in words_of(faulty)
    if row.quiet:
        assert row.quiet not in words_of(fixed)
    # whatever the machine, what was not seen to be well is not called so
    if row.fixed != "clean":
        assert fixed["reason"]


def test_a_gpu_that_is_lost_behind_a_fault_is_said_and_nothing_more_is_started(box: Box) -> None:
    lost(box)
    lanes = ("--lane", "reference", "--lane", "plain", "--lane", "blocking")
    record = box.run(*CASE, *lanes)
    (case,) = record["cases"]
    trials = box.trials(record)
    left = [trials["fixed", "plain"], trials["faulty", "blocking"], trials["fixed", "blocking"]]
    for trial in left:
        assert trial["status"] == "skipped"
        assert "after mtp-tail-overflow, faulty in lane plain" in trial["reason"]
    assert case["verdict"] == REPRODUCED
    assert "in lane plain the GPU was not well: the driver" in case["reasons"][-1]
    runs = str(box.folder / "runs")
    page = " ".join(box.specrepro("runs", "show", "latest", "--runs", runs).stdout.split())
    assert "not well after faulty in lane plain: the driver does not show GPU 0" in page
    assert "79 (hardware)" in page
    sent = box.specrepro("report", "latest", "--runs", runs).stdout
    assert "not well after faulty in lane plain" in sent


def test_no_machine_changes_what_the_lanes_without_a_device_say(box: Box) -> None:
    no_nvml(box)
    record = box.run(*CASE)
    (case,) = record["cases"]
    trials = box.trials(record)
    assert case["verdict"] == REPRODUCED
    assert (trials["faulty", "emulator"]["status"], trials["fixed", "emulator"]["status"]) == (
        "fault",
        "clean",
    )
    skipped = {t["lane"]: t["reason"] for t in trials.values() if t["status"] == "skipped"}
    assert set(skipped) == {"plain", "blocking", "memcheck", "coredump"}
    assert all(reason and "\n" not in reason for reason in skipped.values())


def test_a_point_at_which_no_lane_ran_is_said_not_to_have_run(box: Box) -> None:
    no_nvml(box)
    runs = str(box.folder / "runs")
    done = box.specrepro("run", "mtp-tail-overflow", "--lane", "plain", "--runs", runs)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert done.returncode == 125
    assert ["faces", "neighbour:", "not", "run"] in lines
    assert ["garbage_size:", "not", "run"] in lines
