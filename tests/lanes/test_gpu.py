"""Which GPU is chosen and when it is well again; what tool, dump and driver add to a result."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from specrepro.repro.coredump import Dump
from specrepro.repro.errors import LaneError
from specrepro.repro.lanes.gpu import choose, ill
from specrepro.repro.lanes.gpu_trial import environment, with_dump, with_tool, xids
from specrepro.repro.lanes.process import Ending
from specrepro.repro.records import Evidence, Finding, Kind, Seen, Status, Trial, TrialResult
from specrepro.repro.sanitizer.weigh import Weighed
from specrepro.repro.watch.events import KERNEL_LOG, NVML, Event, Watched
from specrepro.repro.watch.gpus import Gpu, Gpus, Process
from specrepro.repro.watch.incidents import group
from specrepro.repro.watch.watchers import Seen as WatchersSeen

ONE = Gpu(0, "H200", "GPU-aa", "0000:3b:00", "9.0", 100 << 30, 90 << 30, False, "none", ())
TWO = replace(ONE, index=1, uuid="GPU-bb", bus="0000:4b:00")
BOTH = Gpus((ONE, TWO), "580", "13.0", "")
NOWHERE = {"CUDA_MPS_PIPE_DIRECTORY": "/nonexistent"}


def only(gpu: Gpu) -> Gpus:
    return Gpus((gpu,), "580", "13.0", "")


@pytest.mark.parametrize(
    ("index", "visible", "chosen"),
    [
        (None, None, 0),
        (1, None, 1),
        (None, "1,0", 1),
        (None, "GPU-bb", 1),
        (0, "1", 0),
    ],
)
def test_the_one_that_was_asked_for_or_may_be_used(
    index: int | None, visible: str | None, chosen: int
) -> None:
    environ = NOWHERE | ({"CUDA_VISIBLE_DEVICES": visible} if visible else {})
    assert choose(BOTH, index, environ, force=False).index == chosen


@pytest.mark.parametrize(
    ("found", "index", "why"),
    [
        (Gpus((), None, None, "NVML: no driver"), None, "NVML: no driver"),
        (BOTH, 7, "no GPU 7; the driver shows 2"),
        (only(replace(ONE, mig=True)), None, "partitioned"),
        (only(replace(ONE, recovery="reset the GPU")), None, "asks to reset the GPU"),
        (only(replace(ONE, processes=(Process(41, None),))), None, r"others compute .*41"),
        (only(replace(ONE, processes=None)), None, "does not say who else"),
    ],
)
def test_none_that_is_not_there_not_well_or_not_ours(
    found: Gpus, index: int | None, why: str
) -> None:
    with pytest.raises(LaneError, match=why):
        choose(found, index, NOWHERE, force=False)


def test_force_overrides_others_but_no_illness() -> None:
    busy = replace(ONE, processes=(Process(41, None),))
    assert choose(only(busy), None, NOWHERE, force=True) == busy
    with pytest.raises(LaneError):
        choose(only(replace(busy, recovery="drain peers")), None, NOWHERE, force=True)


def test_hidden_gpus_are_not_used_unless_named() -> None:
    with pytest.raises(LaneError, match="hides every GPU"):
        choose(BOTH, None, NOWHERE | {"CUDA_VISIBLE_DEVICES": ""}, force=False)


def test_under_mps_nothing_is_planted(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "control")
    environ = {"CUDA_MPS_PIPE_DIRECTORY": str(tmp_path)}
    with pytest.raises(LaneError, match="under MPS"):
        choose(BOTH, None, environ, force=False)
    assert choose(BOTH, None, environ, force=True) == ONE


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (only(ONE), ""),
        (only(replace(ONE, free=(90 << 30) - (32 << 20))), ""),
        (only(replace(ONE, free=89 << 30)), "1,073,741,824 bytes"),
        (only(replace(ONE, free=None)), "an unknown amount"),
        (only(replace(ONE, recovery="reset the GPU")), "asks to reset the GPU"),
        (only(replace(ONE, recovery=None)), "does not say any more"),
        (only(TWO), "does not show GPU 0"),
        (Gpus((), None, None, "NVML: GPU is lost"), "GPU is lost"),
    ],
)
def test_what_makes_a_gpu_ill(after: Gpus, why: str) -> None:
    assert why in ill(ONE, lambda: after, patience=0)
    assert bool(ill(ONE, lambda: after, patience=0)) == bool(why)


def test_memory_is_given_time_to_come_back() -> None:
    looks = iter([only(replace(ONE, free=0)), only(replace(ONE, free=0)), only(ONE)])
    slept: list[float] = []
    assert ill(ONE, lambda: next(looks), sleep=slept.append) == ""
    assert len(slept) == 2


def test_lanes_differ_in_their_environment(tmp_path: Path) -> None:
    plain = environment("plain", ONE, tmp_path)
    assert plain["CUDA_VISIBLE_DEVICES"] == "GPU-aa"
    assert "CUDA_LAUNCH_BLOCKING" not in plain
    assert environment("blocking", ONE, tmp_path)["CUDA_LAUNCH_BLOCKING"] == "1"
    dump = environment("coredump", ONE, tmp_path)
    assert dump["CUDA_ENABLE_COREDUMP_ON_EXCEPTION"] == "1"
    assert "CUDA_ENABLE_COREDUMP_ON_EXCEPTION" not in environment("memcheck", ONE, tmp_path)


TRIAL = Trial("c", "faulty", "memcheck", {}, Status.FAULT)
WELL = Ending("", False, 1.0)
FOUND = Finding(Kind.OUT_OF_BOUNDS_WRITE, 3, "kv_write", "key_cache", (8, 9))
QUIET = Evidence("compute-sanitizer", Seen.NONE, "")


def result(status: Status, **values: object) -> TrialResult:
    return TrialResult(TRIAL, status, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("own", "said", "status"),
    [
        (result(Status.CLEAN), Weighed(Status.CLEAN, (), QUIET, ""), Status.CLEAN),
        (result(Status.CLEAN), Weighed(Status.UNKNOWN, (), QUIET, "cut"), Status.UNKNOWN),
        (result(Status.CLEAN), Weighed(Status.FAULT, (FOUND,), QUIET, ""), Status.FAULT),
        (result(Status.UNKNOWN), Weighed(Status.CLEAN, (), QUIET, ""), Status.UNKNOWN),
        (result(Status.UNKNOWN), Weighed(Status.FAULT, (FOUND,), QUIET, ""), Status.FAULT),
        (
            result(Status.FAULT, stopped=True, reason="700"),
            Weighed(Status.CLEAN, (), QUIET, ""),
            Status.UNKNOWN,
        ),
    ],
)
def test_tool_and_process_must_both_be_relied_upon(
    own: TrialResult, said: Weighed, status: Status
) -> None:
    both = with_tool(own, said, WELL)
    assert (both.status, both.findings) == (status, said.findings)
    assert QUIET in both.evidence
    assert with_tool(own, said, Ending("no end", True, 9.0)).status is Status.TIMEOUT


def test_a_dump_says_that_and_where_it_faulted() -> None:
    dump = Dump("CUDBG_EXCEPTION_X", kernel="kv_write", block="3,0,0", thread="1,0,0")
    both = with_dump(result(Status.UNKNOWN, reason="ended by SIGABRT"), dump, "")
    assert (both.status, both.stopped, both.reason) == (Status.FAULT, True, "")
    assert "kernel kv_write · block 3,0,0, thread 1,0,0" in both.evidence[-1].detail


def test_no_dump_is_evidence_of_nothing_unless_the_process_ended_well() -> None:
    assert with_dump(result(Status.CLEAN), None, "").evidence[-1].state is Seen.NONE
    killed = with_dump(result(Status.UNKNOWN), None, "")
    assert (killed.status, killed.evidence[-1].state) == (Status.UNKNOWN, Seen.UNOBSERVABLE)


def test_xids_of_other_gpus_are_not_this_ones() -> None:
    events = [Event(NVML, 10.0, 31, ONE.bus), Event(KERNEL_LOG, 10.1, 13, TWO.bus)]
    seen = WatchersSeen(
        group(events), [Watched(NVML, True), Watched(KERNEL_LOG, False, "no right")]
    )
    assert [(e.state, e.detail) for e in xids(seen, ONE)] == [
        (Seen.SEEN, "Xid 31"),
        (Seen.UNOBSERVABLE, "no right"),
    ]
    quiet = WatchersSeen([], [Watched(NVML, True)])
    assert xids(quiet, ONE)[0].state is Seen.NONE
