"""`specrepro selftest` on a GPU: driver, NVML, compute-sanitizer and kernel log are made up, the
planted kernels are executed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from specrepro.repro.lanes.catalog import CATALOG
from specrepro.repro.records import Kind
from specrepro.repro.selftest.cells import sees
from specrepro.repro.selftest.device import LANES
from specrepro.repro.selftest.faults import FAULTS

Box = Any
Record = dict[str, Any]


def asked(box: Box, *words: str) -> tuple[int, Record]:
    done = box.specrepro("selftest", "--json", "--within", "3000", *words)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


def cells(record: Record, instrument: str) -> dict[str, Record]:
    return {
        fault["name"]: cell
        for fault in record["faults"]
        for cell in fault["cells"]
        if cell["instrument"] == instrument
    }


@pytest.fixture(scope="module")
def record(box_of: Callable[[], Box]) -> Record:
    box = box_of()
    box.xid(31)
    status, found = asked(box, *(word for lane in LANES for word in ("--lane", lane)))
    assert status == 0, [(f["name"], c) for f in found["faults"] for c in f["cells"] if not c["ok"]]
    return found


@pytest.mark.parametrize("lane", LANES)
def test_a_lane_sees_every_fault_that_it_says_it_sees(record: Record, lane: str) -> None:
    states = {name: cell["state"] for name, cell in cells(record, lane).items()}
    assert states.pop("clean") == "clean"
    wanted = {f.name for f in FAULTS if f.kind is not None and sees(f, CATALOG[lane])}
    assert {name for name, state in states.items() if state == "seen"} == wanted
    assert states.pop("hang") == ("unknown" if lane == "plain" else "cannot see")


def test_what_is_seen_is_said_as_the_instrument_tells_it(record: Record) -> None:
    said = {lane: {n: c["detail"] for n, c in cells(record, lane).items()} for lane in LANES}
    assert "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in said["plain"]["far_write"]
    assert "CUDA_ERROR_MISALIGNED_ADDRESS (716)" in said["blocking"]["misaligned"]
    assert "CUDA_ERROR_ASSERT (710)" in said["plain"]["assertion"]
    assert "out_of_bounds_write at 64 to 127 of out (planted.cu:" in said["memcheck"]["far_write"]
    assert "uninitialised_read at 0 to 63 of in" in said["initcheck"]["unwritten_read"]
    assert "CUDBG_EXCEPTION_WARP_ASSERT" in said["coredump"]["assertion"]
    assert "no end within" in said["plain"]["hang"]


def test_the_kernel_log_tells_of_what_plain_shows_and_nothing_of_the_control(
    record: Record,
) -> None:
    found = cells(record, "Xid")
    assert {n for n, c in found.items() if c["state"] == "seen"} == {
        "far_write",
        "far_read",
        "misaligned",
        "assertion",
    }
    assert found["far_write"]["detail"] == "kernel log: 31"
    assert found["clean"]["state"] == "clean"


def test_every_instrument_ran_and_the_gpu_is_named(record: Record) -> None:
    assert record["gpu"] == "NVIDIA H200"
    idle = {one["name"] for one in record["instruments"] if not one["ran"]}
    assert idle == {"reference", "emulator"}  # which were not asked for


def test_a_tool_that_sees_nothing_is_found_out(box: Box) -> None:
    box.tool = {"found": []}
    lanes = ("memcheck", "racecheck")
    status, found = asked(box, *(word for lane in lanes for word in ("--lane", lane)))
    assert status == 1
    for lane in lanes:
        states = {n: c["state"] for n, c in cells(found, lane).items()}
        wanted = {f.name for f in FAULTS if f.kind is not None and sees(f, CATALOG[lane])}
        missed = {n for n, state in states.items() if state in ("not seen", "unknown")}
        assert (states["clean"], missed) == ("clean", wanted)


def test_a_tool_that_is_not_there_is_a_reason_and_no_failure(box: Box) -> None:
    (box.folder / "bin" / "compute-sanitizer").unlink()
    box.more["PATH"] = str(box.folder / "bin")
    status, found = asked(box, "--lane", "memcheck", "--lane", "coredump")
    why = {one["name"]: one["reason"] for one in found["instruments"]}
    assert why["memcheck"].startswith("no compute-sanitizer on PATH")
    assert (why["coredump"], why["plain"]) == ("", "it was not asked for")
    assert status == 0
    assert cells(found, "memcheck")["far_write"]["state"] == "not run"


def test_a_gpu_that_is_lost_ends_it_and_what_is_left_is_unknown(box: Box) -> None:
    box.lost = True
    status, found = asked(box, "--lane", "plain", "--lane", "blocking")
    assert status == 1
    left = [c for lane in LANES for c in cells(found, lane).values() if not c["ok"]]
    assert {c["state"] for c in left} == {"unknown"}
    assert all("does not show GPU 0 any more" in c["detail"] for c in left)


def test_nothing_is_planted_where_others_compute(box: Box) -> None:
    box.nvml.append("process 0 77 512")
    status, found = asked(box, "--lane", "reference", "--lane", "plain")
    assert status == 0
    why = {one["name"]: one["reason"] for one in found["instruments"]}
    assert "others compute on GPU 0" in why["plain"]
    assert found["gpu"] is None
    assert {c["state"] for c in cells(found, "plain").values()} <= {"not run", "cannot see"}


def test_nothing_is_planted_on_a_gpu_that_another_run_holds(box: Box) -> None:
    from specrepro.repro.execution.cards import hold
    from specrepro.repro.watch.gpus import Gpu

    uuid = box.nvml[0].split("|")[1]
    lock = hold(Gpu(0, None, uuid, None, None, None, None, None, None, None))
    assert lock is not None
    try:
        status, found = asked(box, "--lane", "reference", "--lane", "plain")
    finally:
        os.close(lock)
    why = {one["name"]: one["reason"] for one in found["instruments"]}
    assert (status, "is in use" in why["plain"]) == (0, True)


def test_a_watcher_that_could_see_and_saw_nothing_is_a_failure(box: Box) -> None:
    box.log.touch()
    box.more["SPECREPRO_KERNEL_LOG"] = str(box.log)  # and nobody logs anything
    status, found = asked(box, "--lane", "plain")
    silent = cells(found, "Xid")
    assert status == 1
    assert (silent["far_write"]["state"], silent["far_write"]["ok"]) == ("not seen", False)
    assert silent["assertion"]["ok"]  # the driver need not report it


def test_what_does_not_fit_into_the_time_is_left_out_and_no_failure(box: Box) -> None:
    done = box.specrepro("selftest", "--json", "--within", "1", "--lane", "coredump")
    found = json.loads(done.stdout)
    coredump = cells(found, "coredump")
    assert done.returncode == 1  # nothing at all was looked at
    assert (coredump["far_write"]["state"], coredump["far_write"]["ok"]) == ("not run", True)
    assert coredump["far_write"]["detail"] == "the time of the selftest was over"


def test_a_lane_that_is_none_is_refused(box: Box) -> None:
    done = box.specrepro("selftest", "--lane", "gpu")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no lane `gpu`" in done.stderr


def test_kinds_of_the_device_are_all_planted() -> None:
    planted = {fault.kind for fault in FAULTS}
    for lane in LANES:
        in_kernels = CATALOG[lane].sees - CATALOG["plain"].locates
        assert in_kernels <= planted, lane
    assert Kind.HANG in planted
