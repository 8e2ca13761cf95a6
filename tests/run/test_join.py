"""What instruments saw of one fault, put together: each by what it can tell."""

from __future__ import annotations

import pytest

from specrepro.repro.device_judge import weigh_device
from specrepro.repro.join import Row, contradictions, join
from specrepro.repro.plan import Wanted
from specrepro.repro.records import (
    Evidence,
    Finding,
    Kind,
    Place,
    Prediction,
    Seen,
    Status,
    Trial,
    TrialResult,
)

WRITE = Kind.OUT_OF_BOUNDS_WRITE


def overrun(launch: int = 41, first: int = 1024, tensor: str = "key_cache") -> Finding:
    return Finding(
        WRITE, launch=launch, op="kv_write", tensor=tensor, elements=(first, first + 15), request=0
    )


def result(
    lane: str, status: Status, *evidence: Evidence, findings: tuple[Finding, ...] = ()
) -> TrialResult:
    trial = Trial("case", "faulty", lane, {}, Status.FAULT)
    return TrialResult(
        trial, status, findings=findings, evidence=evidence, stopped=status is Status.FAULT
    )


REFERENCE = result("reference", Status.FAULT, findings=(overrun(43, 2048), overrun()))


def error(first: int, last: int, op: str | None = None) -> Evidence:
    return Evidence("CUDA", Seen.SEEN, "CUDA_ERROR", Place((first, last), op, pid=7))


def xid(*tensors: str, access: str | None = "write", pid: int | None = 7) -> Evidence:
    place = Place(tensors=tensors, access=access, pid=pid)
    return Evidence("Xid by kernel log", Seen.SEEN, "Xid 31", place)


def row(lane: str, *evidence: Evidence, findings: tuple[Finding, ...] = ()) -> list[Row]:
    device = result(lane, Status.FAULT, *evidence, findings=findings)
    return list(join({"reference": REFERENCE, lane: device}).rows)


def test_a_launch_error_names_launches_and_no_tensor() -> None:
    (only,) = row("blocking", error(41, 41, "kv_write"))
    assert (only.instrument, only.observed, only.agrees) == ("launch error", "fault", True)
    assert (only.located, only.note) == ("launch 41 kv_write", "no tensor, elements")
    (only,) = row("plain", error(38, 44))
    assert (only.located, only.agrees) == ("one of launches 38 to 44", True)


def test_the_kernel_log_names_a_tensor_by_its_address_and_whose_process() -> None:
    rows = row("plain", error(41, 41, "kv_write"), xid("key_cache"))
    assert rows[1].located == "write of key_cache (this process)"
    assert rows[1].note == "no launch, kernel, elements"
    other = row("plain", error(41, 41, "kv_write"), xid("key_cache", pid=9001))[1]
    assert other.located.endswith("(process 9001 on the host)")
    assert other.agrees  # in a container the host counts otherwise


@pytest.mark.parametrize(
    "evidence",
    [
        error(2, 5),
        error(41, 41, "rope"),
        xid("value_cache"),
        xid("key_cache", access="read"),
        Evidence("core dump", Seen.SEEN, "", Place(op="paged_attention")),
    ],
)
def test_what_the_reference_has_not_is_a_contradiction_and_stands_first(evidence: Evidence) -> None:
    agreeing = Evidence("core dump", Seen.SEEN, "", Place(op="kv_write"))
    rows = row("coredump", agreeing, evidence)
    assert [one.agrees for one in rows] == [False, True]
    assert "the reference has no such access" in rows[0].note
    device = result("plain", Status.FAULT, evidence)
    (said,) = contradictions("plain", device, REFERENCE.findings)
    assert said.startswith(rows[0].instrument)
    wanted = Wanted(
        (Prediction(WRITE, "kv_write", "key_cache"),), (), literal_clean=False, fix=False
    )
    judged = weigh_device(wanted, device, "plain", REFERENCE.findings)
    assert (judged.wrong, judged.shown) == ((said,), False)


def test_the_sanitizer_names_elements_which_the_reference_must_have() -> None:
    tool = Evidence("compute-sanitizer 2026.4, memcheck", Seen.SEEN, "1 record")
    (same,) = row("memcheck", tool, findings=(overrun(),))
    assert (same.agrees, same.located) == (
        True,
        "launch 41 kv_write write of key_cache elements 1024..1039",
    )
    (other,) = row("memcheck", tool, findings=(overrun(first=4096),))
    assert other.agrees is False
    (nameless,) = row("memcheck", tool)
    assert (nameless.agrees, nameless.note) == (None, "names no tensor")


def test_what_could_not_look_says_why_and_agrees_with_nothing() -> None:
    blind = Evidence("Xid by kernel log", Seen.UNOBSERVABLE, "no right to read it")
    quiet = Evidence("Xid by NVML", Seen.NONE, "no Xid")
    rows = row("plain", quiet, blind)
    assert [(one.observed, one.agrees, one.note) for one in rows] == [
        ("none", None, ""),
        ("unobservable", None, "no right to read it"),
    ]


def test_the_first_writer_is_the_first_by_launch_not_by_mention() -> None:
    joined = join({"reference": REFERENCE, "emulator": result("emulator", Status.FAULT)}, [])
    assert joined.first_writer == (
        "launch 41 kv_write write of key_cache elements 1024..1039, for request 0"
    )
    assert [(one.instrument, one.agrees) for one in joined.rows] == [("emulator", False)]


def test_without_a_reference_nothing_agrees_and_nobody_is_named() -> None:
    joined = join({"plain": result("plain", Status.FAULT, error(1, 2), xid("key_cache"))})
    assert [one.agrees for one in joined.rows] == [None, None]
    assert joined.first_writer == ""


def test_a_place_outlives_its_json() -> None:
    from specrepro.repro.records import to_json

    for one in (error(1, 2, "rope"), xid("a", "b"), Evidence("x", Seen.NONE)):
        assert Evidence.from_json(to_json(one)) == one
    with pytest.raises(ValueError, match="not evidence"):
        Evidence.from_json({"source": "x", "state": "seen", "detail": "", "place": {"launches": 3}})
