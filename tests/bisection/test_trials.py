"""What the record of a build says of the defects that are looked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from specrepro.repro.bisection.trials import row_of, verdict
from specrepro.repro.bisection.verdicts import Bad, Good, Infra, Observation, Other, Untestable


def row(said: str, **more: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {"verdict": said, "commit": None, "evidence": [], "exposure": []}
    return whole | {"reasons": []} | more


def test_defects_that_act_are_the_signature_each_once() -> None:
    acting = [{"defect": name} for name in ("late", "late", "early")]
    assert verdict(row("AFFECTED", exposure=acting), "0.1.0") == Bad("late + early")
    assert verdict(row("NOT AFFECTED"), "0.1.0") == Good()


def test_builds_that_fail_in_the_same_way_have_one_fingerprint() -> None:
    def told(text: str) -> Untestable:
        found = verdict(row("UNTESTABLE", reasons=[text]), "0.1.0")
        assert isinstance(found, Untestable)
        return found

    one = told("vllm-0.12.0+cu130: no file vllm/v1/a.py at line 12 of 0123456789abcdef")
    other = told("vllm-0.13.1: no file vllm/v2/b.py at line 7 of fedcba9876543210")
    assert one.fingerprint == other.fingerprint
    assert one.reason != other.reason
    assert told("the import failed").fingerprint != one.fingerprint


def test_a_failure_that_may_pass_is_the_machines_and_not_the_builds() -> None:
    waiting = row("UNTESTABLE", reasons=["no answer"], temporary=True)
    assert verdict(waiting, "0.1.0") == Infra("no answer")
    assert isinstance(verdict(waiting | {"temporary": False}, "0.1.0"), Untestable)


def test_an_engine_that_dies_of_something_else_is_another_fault() -> None:
    ended = {"probe": "engine_end", "value": "other", "detail": "another failure: KeyError"}
    assert verdict(row("UNTESTABLE", evidence=[ended]), "0.1.0") == Other(
        "another failure: KeyError"
    )


def test_a_wheel_of_another_commit_says_nothing_about_the_one_that_was_asked_for() -> None:
    asked = "a" * 40
    assert verdict(row("NOT AFFECTED", commit="a" * 9), asked) == Good()
    # the oldest wheels of commits do not say which they are of
    assert verdict(row("NOT AFFECTED", commit=None), asked) == Good()
    found = verdict(row("NOT AFFECTED", commit="b" * 9), asked)
    assert found == Untestable(
        "the wheel of commit aaaaaaaaaaaa was built from bbbbbbbbb", "wheel of another commit"
    )


def test_a_log_of_a_strangers_journal_is_read_in_the_folder_of_trials_only(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "trials").mkdir()
    (tmp_path / "trials" / "0.1.0-1.json").write_text('{"version": "0.1.0"}')
    (tmp_path / "trials" / "0.2.0-1.json").write_text("{")

    def read(log: str) -> Any:
        return row_of(tmp_path, Observation("0.1.0", 1, Good(), 1.0, log))

    assert read("trials/0.1.0-1.json") == {"version": "0.1.0"}
    for log in ("", "run.json", "trials/../run.json", "trials/0.2.0-1.json", "trials/none.json"):
        assert read(log) is None
