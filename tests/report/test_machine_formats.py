"""JUnit and SARIF of a run: read back, and judged by what they stand for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.errors import UsageError
from specrepro.repro.report.junit import junit
from specrepro.repro.report.sarif import sarif

RUN = {"id": "r1", "version": "1.0", "started": "2026-11-30T00:00:00Z", "command": "run"}


def finding(line: int = 3) -> dict[str, Any]:
    return {
        "kind": "out_of_bounds_write", "launch": 1, "op": "kv_write", "tensor": "key_cache",
        "elements": [4, 5], "count": 2, "bytes_past_end": 0, "width": 2, "lands_in": None,
        "request": 0, "source": {"file": "kernels/kv_write/kernel.cu", "line": line},
        "expected": None, "got": None,
    }  # fmt: skip


def trial(status: str, expected: str = "fault", **more: Any) -> dict[str, Any]:
    found = [finding()] if status == "fault" else []
    return {
        "variant": "faulty", "lane": "emulator", "control": None, "point": {"k": 3},
        "expected": expected, "status": status, "as_expected": status == expected,
        "findings": found, "reason": "because", "seconds": 0.5, **more,
    }  # fmt: skip


def run(*trials: dict[str, Any], **more: Any) -> dict[str, Any]:
    case = {
        "id": "c", "verdict": "INCONCLUSIVE", "cause": "unknown", "named": {"k": 3},
        "trials": list(trials), **more,
    }  # fmt: skip
    return {"schema": "specrepro/run@1", "run": RUN, "cases": [case]}


def check(state: str, *, counted: bool = True, line: str = "vllm/a b.py:7") -> dict[str, Any]:
    standing = {"defect": "d", "state": state, "counted": counted, "reason": "why"}
    row = {"defect": "d", "probe": "p", "where": line}
    build = {"version": "0.28.0", "verdict": "AFFECTED", "defects": [standing], "evidence": [row],
             "reasons": []}  # fmt: skip
    return {"schema": "specrepro/check@1", "run": {**RUN, "command": "check"}, "case": "c",
            "cause": "confirmed", "builds": [build]}  # fmt: skip


def endings(record: dict[str, Any]) -> list[str]:
    """How each test of the XML ends."""
    root = ElementTree.fromstring(junit(record))  # noqa: S314 - written a moment ago
    return [next((child.tag for child in test), "pass") for test in root.iter("testcase")]


def test_a_trial_passes_only_where_it_came_out_as_the_case_says() -> None:
    trials = [
        trial("fault"), trial("clean"), trial("clean", "clean"), trial("unknown"),
        trial("timeout"), trial("error"), trial("skipped"),
    ]  # fmt: skip
    wanted = ["pass", "failure", "pass", "error", "error", "error", "skipped"]
    assert endings(run(*trials)) == wanted


def test_totals_agree_with_the_tests() -> None:
    root = ElementTree.fromstring(junit(run(trial("clean"), trial("unknown"), trial("skipped"))))  # noqa: S314
    totals = {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert totals == {"tests": "3", "failures": "1", "errors": "1", "skipped": "1"}


@pytest.mark.parametrize(
    ("state", "counted", "ending"),
    [
        ("present", True, "failure"),
        ("absent", True, "pass"),
        ("unknown", True, "error"),
        ("present", False, "skipped"),
    ],
)
def test_a_defect_passes_only_where_it_is_absent(state: str, counted: bool, ending: str) -> None:
    assert endings(check(state, counted=counted)) == [ending]


def test_a_build_that_cannot_be_tested_is_an_error() -> None:
    record = check("present")
    record["builds"][0].update(defects=[], reasons=["no wheel"])
    assert endings(record) == ["error"]


@given(st.text())
def test_any_text_is_xml(text: str) -> None:
    record = run(trial("unknown", reason=text, variant=text), verdict=text)
    root = ElementTree.fromstring(junit(record))  # noqa: S314
    assert len(list(root.iter("testcase"))) == 1


def results(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The results of the one run, by what the standard asks of each."""
    log = json.loads(sarif(record))
    assert log["version"] == "2.1.0"
    [one] = log["runs"]
    rules = [rule["id"] for rule in one["tool"]["driver"]["rules"]]
    assert len(set(rules)) == len(rules)
    for result in one["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        assert result["locations"][0]["physicalLocation"]["region"]["startLine"] >= 1
    return list(one["results"])


def test_a_finding_stands_on_its_line() -> None:
    [result] = results(run(trial("fault")))
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "kernels/kv_write/kernel.cu"
    assert place["region"] == {"startLine": 3}
    assert result["ruleId"] == "out_of_bounds_write"
    assert result["level"] == "note"


def test_a_finding_that_was_not_expected_is_an_error() -> None:
    assert [r["level"] for r in results(run(trial("fault", "clean")))] == ["error"]


def test_two_lanes_that_agree_are_one_result() -> None:
    assert len(results(run(trial("fault"), trial("fault", lane="reference")))) == 1


def test_only_a_defect_that_is_there_is_shown_and_its_path_is_an_address() -> None:
    [result] = results(check("present"))
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "vllm/a%20b.py"
    assert place["region"] == {"startLine": 7}
    assert results(check("absent")) == results(check("present", counted=False)) == []


def test_lines_that_move_keep_the_fingerprint() -> None:
    one, moved = trial("fault"), trial("fault", findings=[finding(9)])
    [first], [second] = results(run(one)), results(run(moved))
    assert first["partialFingerprints"] == second["partialFingerprints"]


@given(st.text(), st.text())
def test_any_text_is_sarif(text: str, where: str) -> None:
    record = run(trial("fault", variant=text))
    record["cases"][0]["trials"][0]["findings"][0]["source"]["file"] = where or "x"
    assert len(results(record)) == 1


@pytest.mark.parametrize("write", [junit, sarif])
def test_a_kind_of_run_that_has_neither_is_said(write: Any) -> None:
    with pytest.raises(UsageError):
        write({"schema": "specrepro/diagnose@1", "run": RUN})


def test_a_run_that_was_cut_off_is_neither_passed_nor_clean() -> None:
    record = {"schema": "specrepro/cut@1", "run": RUN, "at_work": False}
    assert endings(record) == ["error"]
    [told] = json.loads(sarif(record))["runs"]
    assert told["results"] == []
    [invocation] = told["invocations"]
    assert invocation["executionSuccessful"] is False
    assert "cut off" in invocation["toolExecutionNotifications"][0]["message"]["text"]


def test_both_are_written_of_a_stored_run(command: Any, runs: Path) -> None:
    xml = command("report", "--format", "junit", "--runs", runs)
    assert ElementTree.fromstring(xml.stdout).tag == "testsuites"  # noqa: S314
    log = command("report", "--format", "sarif", "--runs", runs)
    assert json.loads(log.stdout)["runs"][0]["results"]
