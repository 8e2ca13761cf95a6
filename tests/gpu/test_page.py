"""What of a session is kept, and the page that is made of it: nothing that failed is hidden, and
what was not looked at is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import loaded


def part(name: str, state: str = "done", ok: bool | None = True, said: str = "") -> dict[str, Any]:
    return {"name": name, "state": state, "ok": ok, "seconds": 1.0, "limit": 20.0, "said": said}


def session(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    machine = {
        "device": "Card | <b>1</b>",
        "driver": "580, CUDA 13.0",
        "python": "3.12",
        "packages": {"numpy": "2.4", "triton": None},
    }
    return {
        "schema": "specrepro/gpu-session@2",
        "started": "2026-11-30T08:00:00Z",
        "limit": 460,
        "ended": "by itself",
        "machine": machine,
        "parts": list(parts) or [part("doctor"), part("cases", "cut", True, "1 of 2 runs")],
        **more,
    }


def trial(expected: str, status: str, **values: Any) -> dict[str, Any]:
    return {
        "variant": "v",
        "point": {},
        "expected": expected,
        "status": status,
        "as_expected": True,
        "agrees": False,
        "reason": "",
        "evidence": [],
        **values,
    }


def ran(*trials: dict[str, Any], verdict: str = "REPRODUCED", lane: str = "plain") -> Any:
    run = {"case": "x", "lane": lane, "said": "", "verdict": verdict, "reasons": ["why"]}
    return run | {"trials": list(trials)}


def late(lane: str) -> dict[str, Any]:
    return {"case": "x", "lane": lane, "said": "the time was over", "trials": []}


def text_of(record: dict[str, Any]) -> str:
    return str(loaded("page").page(record, "name"))


def test_a_page_begins_with_what_is_not_as_it_must_be_and_escapes_what_it_is_told() -> None:
    bad = trial("clean", "fault", variant="fixed", as_expected=False, reason="error | 700")
    cases = {"runs": [ran(bad, verdict="NOT REPRODUCED"), late("memcheck"), late("coredump")]}
    record = session(cases=cases)
    assert loaded("page").name_of(record) == "card-b-1-b-2026-11-30"
    text = text_of(record)
    amiss, rest = text.split("## Not looked at")
    assert "x, fixed in plain: fault, expected clean; error \\| 700" in amiss
    assert "part `cases`: cut. 1 of 2 runs" in amiss
    assert "the time was over: x in memcheck; x in coredump" in rest.split("## Parts")[0]
    assert "<b>" not in text
    assert "| fixed | fault ✗ |" in text


@pytest.mark.parametrize(
    ("parts", "ended", "said"),
    [
        ([part("doctor"), part("tests")], "by itself", "All that was looked at came out"),
        ([part("tests", ok=False), part("cases", "cut")], "by itself", "Not as it must be: tests."),
        ([part("tests", "failed", None)], "by itself", "Not as it must be: tests."),
        ([part("tests", "left out", None)], "by itself", "Not to its end: tests."),
        ([part("doctor")], "interrupted by SIGTERM", "It was interrupted by SIGTERM."),
        ([part("doctor")], "", "It was ended from outside."),
    ],
)
def test_the_first_line_is_no_better_than_the_worst_part(
    parts: list[dict[str, Any]], ended: str, said: str
) -> None:
    line = next(one for one in text_of(session(*parts, ended=ended)).splitlines() if "**" in one)
    assert said in line
    if said != "All that was looked at came out":
        assert "All that was looked at" not in line


def test_what_did_not_run_is_named_with_its_reason() -> None:
    cell = {"instrument": "plain", "state": "not run", "ok": True, "detail": "no time was left"}
    text = text_of(
        session(
            part("selftest"),
            selftest={
                "instruments": [
                    {"name": "plain", "ran": True, "reason": ""},
                    {"name": "memcheck", "ran": False, "reason": "no compute-sanitizer"},
                ],
                "faults": [
                    {
                        "about": "write",
                        "cells": [cell, cell | {"instrument": "memcheck", "detail": "x"}],
                    }
                ],
            },
            tests={"tests": [{"name": "t", "state": "skipped", "seconds": 0.0, "said": "no log"}]},
            cases={"runs": [ran(trial("fault", "skipped", reason="no graphs"))]},
            benchmark={"rows": [], "not_measured": {"coredump": "no time of it"}, "said": ""},
        )
    )
    told = text.split("## Not looked at")[1].split("## Parts")[0].strip().splitlines()
    assert told == [
        "- selftest: no compute-sanitizer: memcheck",
        "- selftest: no time was left: write in plain",
        "- tests: no log: t",
        "- cases: no graphs: x in plain (1 of 1 trials)",
        "- benchmark: no time of it: coredump",
    ]


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (ran(trial("fault", "fault"), trial("clean", "clean")), []),
        (ran(trial("fault", "skipped", as_expected=False)), []),
        (ran(trial("fault", "clean")), ["x, v in plain: clean, expected fault; the fault did not"]),
        (
            ran(
                trial("clean", "unknown", as_expected=False, reason="killed"),
                verdict="INCONCLUSIVE",
            ),
            ["x, v in plain: unknown, expected clean; killed"],
        ),
        (
            ran(trial("fault", "fault", evidence=[{"source": "GPU afterwards", "detail": "gone"}])),
            ["x, v in plain: the GPU was not well afterwards: gone"],
        ),
        (
            ran(trial("clean", "clean", point={"k": 2}), verdict="NOT REPRODUCED"),
            ["x in plain: why"],
        ),
    ],
)
def test_a_silent_an_unknown_and_a_contradicting_trial_are_amiss(run: Any, said: list[str]) -> None:
    found = loaded("compact").amiss(run)
    assert [one.startswith(words) for one, words in zip(found, said, strict=True)] == [
        True for _ in said
    ]


def test_the_test_in_which_pytest_was_ended_has_not_passed() -> None:
    report = b"""<testsuites><testsuite>
    <testcase classname="tests.gpu.test_hardware" name="test_a" time="1.5"/>
    <testcase classname="tests.gpu.test_hardware" name="test_b" time="0.1">
      <failure message="assert 1 == 2&#10;more"/></testcase>
    <testcase time="0.0"/></testsuite></testsuites>"""
    found = loaded("compact").tests_of(report)["tests"]
    assert [(one["name"], one["state"]) for one in found] == [
        ("test_hardware::test_a", "passed"),
        ("test_hardware::test_b", "failed"),
        ("the one that was under way when the time was over", "unknown"),
    ]
    assert found[1]["said"] == "assert 1 == 2"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("status 3: log: /home/someone/.local/state/log.txt", "status 3: log: …/log.txt"),
        ("no end within 13 s", "no end within 13 s"),
        ("read/write of a/b and 3/4", "read/write of a/b and 3/4"),
    ],
)
def test_paths_are_not_brought_back(said: str, kept: str) -> None:
    assert loaded("compact").without_paths(said) == kept


@pytest.mark.parametrize(
    ("name", "wanted", "left", "of", "limit"),
    [
        ("selftest", ("selftest", "tests", "cases", "benchmark"), 450.0, 460.0, 125.0),
        ("tests", ("tests", "cases"), 30.0, 460.0, 30.0),
        ("tests", ("tests",), 450.0, 460.0, 450.0),
        ("tests", ("tests", "cases"), 900.0, 920.0, 200.0),
        ("cases", ("cases", "benchmark"), 260.0, 460.0, 200.0),
        ("cases", ("cases", "benchmark"), 40.0, 460.0, 20.0),
        ("cases", ("selftest", "cases"), 260.0, 460.0, 260.0),
    ],
)
def test_cases_have_what_is_left_and_leave_the_benchmark_its_part(
    name: str, wanted: tuple[str, ...], left: float, of: float, limit: float
) -> None:
    assert loaded("session").limit_of(name, wanted, left, of) == limit


def test_a_row_of_the_benchmark_is_of_trials_that_ended_alike_or_is_named_with_the_reason() -> None:
    lanes = loaded("gpu_lanes", Path(__file__).parents[1] / "benchmarks")

    def measured(*ends: tuple[str, float | None]) -> list[Any]:
        return [lanes.Measured(status, seconds, "why") for status, seconds in ends]

    found = {
        ("plain", "fixed"): measured(("clean", 2.0), ("clean", 4.0), ("clean", 3.0)),
        ("blocking", "fixed"): measured(("clean", 6.0), ("clean", 7.5), ("clean", 6.0)),
        ("memcheck", "fixed"): measured(("clean", 6.0), ("fault", 1.0)),
        ("coredump", "faulty"): measured(("fault", None)),
    }
    rows = {one["lane"]: (one["seconds"], one["ratio"]) for one in lanes.table(found)}
    assert rows == {"plain": (3.0, 1.0), "blocking": (6.0, 2.0)}
    assert lanes.why_not(found) == {
        "memcheck, fixed": "its trials ended differently: clean, fault",
        "coredump, faulty": "why",
        "plain, one arena": "it came to no end within the time",
    }
    # rows that are compared do the same work
    assert all("seq_len=63" in words for words in lanes.asked().values())


@pytest.mark.parametrize("broken", ["{", "[]", "{}"])
def test_results_that_are_none_are_refused(tmp_path: Path, broken: str) -> None:
    (tmp_path / "session.json").write_text(broken)
    assert loaded("page").main([str(tmp_path), str(tmp_path / "docs")]) == 2
    assert not (tmp_path / "docs").exists()


def test_a_second_session_of_the_day_has_a_page_of_its_own_and_the_same_one_the_same(
    tmp_path: Path,
) -> None:
    pages = []
    for seconds in (460, 900, 460):
        record = session(part("doctor"), limit=seconds)
        (tmp_path / "session.json").write_text(json.dumps(record))
        assert loaded("page").main([str(tmp_path), str(tmp_path / "docs")]) == 0
        names = (path.name for path in (tmp_path / "docs").glob("*.md"))
        pages.append(sorted(names, key=len))
    first, second = pages[1]
    assert pages == [[first], [first, second], [first, second]]
    assert second == first.replace(".md", "-2.md")
    assert second.removesuffix(".md") in (tmp_path / "docs" / second).read_text()
