"""What changed between two runs is told, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.errors import UsageError
from specrepro.repro.report.compare_document import compare_document
from specrepro.repro.report.markdown import markdown


def check(states: dict[str, str], python: str = "3.11", run: str = "a") -> dict[str, Any]:
    builds = [
        {
            "version": version,
            "verdict": "AFFECTED" if state == "present" else "NOT AFFECTED",
            "defects": [{"defect": "d", "state": state}],
        }
        for version, state in states.items()
    ]
    return {
        "schema": "specrepro/check@1",
        "run": {"id": run, "version": "1", "started": "then", "command": "check"},
        "environment": {"python": python, "packages": {"numpy": "2"}},
        "builds": builds,
    }


def compared(old: dict[str, Any], new: dict[str, Any]) -> str:
    return markdown(compare_document(old, new))


def test_a_defect_that_went_is_told_with_both_states() -> None:
    text = compared(check({"1": "present", "2": "absent"}), check({"1": "absent", "2": "absent"}))
    assert "**2 of 4 outcomes that both have** changed." in text
    assert "| 1 | d | present | **absent** |" in text
    assert "| 1 |  | AFFECTED | **NOT AFFECTED** |" in text
    assert "| 2 |" not in text


def test_what_only_one_has_is_not_called_a_change() -> None:
    text = compared(check({"1": "absent"}), check({"2": "absent"}))
    assert "**0 of 0 outcomes that both have** changed." in text
    assert "only before: 1, d" in text
    assert "only after: 2, d" in text


def test_another_machine_is_told() -> None:
    text = compared(check({"1": "absent"}), check({"1": "absent"}, python="3.12"))
    assert "machine or packages changed too" in text
    assert "| `python` | 3.11 | 3.12 |" in text
    assert "numpy" not in text


def test_runs_of_two_kinds_are_refused() -> None:
    with pytest.raises(UsageError, match="not alike"):
        compare_document(check({}), {**check({}), "schema": "specrepro/run@1"})


def test_a_finding_at_another_place_is_a_change(command: Any, runs: Path) -> None:
    first = (runs / "latest").resolve()
    record = json.loads((first / "run.json").read_text())
    for trial in record["cases"][0]["trials"]:
        for finding in trial["findings"][:1]:
            finding["elements"] = [7, 8]
    other = runs / "other"
    other.mkdir()
    (other / "request.json").write_text((first / "request.json").read_text())
    (other / "run.json").write_text(json.dumps(record))
    done = command("report", "other", "--compare", first.name, "--runs", runs)
    assert done.returncode == 0
    assert "out\\_of\\_bounds\\_write of key\\_cache at 7" in done.stdout
    same = command("report", first.name, "--compare", first.name, "--runs", runs)
    assert "**0 of" in same.stdout


def test_the_bug_form_has_its_two_fields(command: Any, runs: Path) -> None:
    done = command("report", "--template", "vllm-bug", "--runs", runs)
    assert done.stdout.startswith("### Your current environment\n")
    assert "### 🐛 Describe the bug\n\n### specrepro run" in done.stdout
    refused = command("report", "--template", "vllm-bug", "--format", "html", "--runs", runs)
    assert (refused.returncode, refused.stdout) == (2, "")
