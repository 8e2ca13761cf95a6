"""What a GPU must show: each lane its faults and its silence, memory that ends where it is said to,
records that are findings, a dump, an Xid, and a device that is well afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.watch.gpus import gpus

from .conftest import SPECREPRO, TAIL, Trials

pytestmark = pytest.mark.gpu

HERE = Path(__file__).parent
Run = Callable[..., Trials]
Needs = Callable[[str], None]
BOUNDS = ("out_of_bounds_read", "out_of_bounds_write")
LANES = ("plain", "blocking", "memcheck", "coredump")
CHECKS = ("memcheck", "racecheck", "initcheck", "synccheck")


def tail(ran: Run) -> Trials:
    """The tail overflow in all lanes, in one run that all tests look at."""
    lanes = ("reference", "emulator", *LANES)
    return ran(*TAIL, *(word for lane in lanes for word in ("--lane", lane)))


def in_lane(ran: Run, lane: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The faulty and the fixed trial of the tail overflow."""
    trials = tail(ran)
    return trials["faulty", lane], trials["fixed", lane]


def told(trial: dict[str, Any], source: str) -> list[dict[str, Any]]:
    return [one for one in trial["evidence"] if one["source"].startswith(source)]


def places(trial: dict[str, Any]) -> set[tuple[Any, ...]]:
    """Every element that is named, with its launch: ranges may be cut differently."""
    return {
        (f["kind"], f["launch"], f["op"], f["tensor"], f["step"], element)
        for f in trial["findings"]
        if f["kind"] in BOUNDS
        for element in range(f["elements"][0], f["elements"][1] + 1)
    }


@pytest.mark.parametrize("lane", LANES)
def test_the_fault_shows_itself_and_the_fix_is_clean(
    ran: Run, lane_tools: Needs, lane: str
) -> None:
    lane_tools(lane)
    faulty, fixed = in_lane(ran, lane)
    assert (faulty["status"], fixed["status"]) == ("fault", "clean"), (faulty, fixed)
    assert faulty["as_expected"]
    assert fixed["as_expected"]


@pytest.mark.parametrize(("distance", "error"), [(0, 0), (64, 700)])
def test_the_first_byte_behind_a_tensor_is_a_fault_and_its_last_is_none(
    gpu: str, distance: int, error: int
) -> None:
    script = str(HERE / "first_byte.py")
    words = [sys.executable, script, str(distance)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, str(error)), done.stderr


def test_a_record_of_memcheck_is_a_finding_of_the_emulator(ran: Run, lane_tools: Needs) -> None:
    lane_tools("memcheck")
    trials = tail(ran)
    found, emulated = places(trials["faulty", "memcheck"]), places(trials["faulty", "emulator"])
    assert found
    assert found <= emulated
    # the context ends at the first fault: of that launch nothing is missing
    launches = {one[1] for one in found}
    assert launches == {min(one[1] for one in emulated)}
    assert trials["faulty", "memcheck"]["agrees_with_reference"]


def test_a_core_dump_names_exception_and_kernel_and_is_deleted(ran: Run, lane_tools: Needs) -> None:
    lane_tools("coredump")
    faulty, fixed = in_lane(ran, "coredump")
    (said,) = told(faulty, "core dump")
    assert "ILLEGAL_ADDRESS" in said["detail"]
    assert "kv_write" in said["detail"]
    assert told(fixed, "core dump")[0]["state"] == "none while observable"


def test_the_driver_tells_of_the_fault_within_the_window_and_not_of_the_fix(ran: Run) -> None:
    faulty, fixed = in_lane(ran, "plain")
    sources = told(faulty, "Xid")
    observable = [one for one in sources if one["state"] != "unobservable"]
    if not observable:
        pytest.skip("; ".join(one["detail"] for one in sources))
    assert any(one["state"] == "seen" for one in observable), sources
    assert all(one["state"] != "seen" for one in told(fixed, "Xid"))


def test_the_error_of_plain_says_which_launches_it_may_be_of(ran: Run) -> None:
    faulty, _ = in_lane(ran, "plain")
    (said,) = told(faulty, "CUDA")
    assert "(700)" in said["detail"]
    assert "launch" in said["detail"]


def test_the_device_is_well_behind_a_fault(ran: Run) -> None:
    before = gpus().gpus[0]
    again = ran(*TAIL, "--lane", "plain")
    after = gpus().gpus[0]
    assert after.recovery in (None, "none")
    assert before.free is not None
    assert after.free is not None
    assert after.free >= before.free - (64 << 20)
    assert [again[name, "plain"]["status"] for name in ("faulty", "fixed")] == ["fault", "clean"]


def test_a_captured_graph_that_reads_stale_data_comes_out_as_its_case_says(ran: Run) -> None:
    words = ("stale-draft-metadata", "--variant", "faulty", "--variant", "rebuild_in_place")
    # at another point than the file's own its other points are left out
    trials = ran(*words, "--set", "new_tokens=23", "--lane", "reference", "--lane", "plain")
    faulty, fixed = trials["faulty", "plain"], trials["rebuild_in_place", "plain"]
    assert (faulty["status"], fixed["status"]) == ("fault", "clean"), (faulty, fixed)
    assert faulty["as_expected"]
    assert fixed["as_expected"]


def test_a_gpu_that_is_not_there_is_refused_by_its_number(ran: Run) -> None:
    trials = ran(*TAIL, "--lane", "plain", "--device", "99")
    assert {t["status"] for t in trials.values()} == {"skipped"}
    assert all(t["reason"].startswith("there is no GPU 99") for t in trials.values())


@pytest.fixture(scope="session")
def planted() -> dict[str, Any]:
    """The record of a selftest in the lanes of compute-sanitizer."""
    command = [*SPECREPRO, "selftest", "--json"]
    command += [word for lane in CHECKS for word in ("--lane", lane)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    record: dict[str, Any] = json.loads(done.stdout)
    return record


@pytest.mark.parametrize("lane", CHECKS)
def test_a_tool_sees_what_is_planted_for_it_and_nothing_in_the_control(
    lane_tools: Needs, lane: str, request: pytest.FixtureRequest
) -> None:
    lane_tools(lane)
    cells = {
        fault["name"]: one
        for fault in request.getfixturevalue("planted")["faults"]
        for one in fault["cells"]
        if one["instrument"] == lane
    }
    amiss = {name: one for name, one in cells.items() if not one["ok"]}
    assert amiss == {}
    assert cells["clean"]["state"] == "clean"
    assert any(one["state"] == "seen" for one in cells.values())
