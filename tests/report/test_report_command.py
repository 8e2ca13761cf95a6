"""`specrepro report`: what a person gets who sends a stored run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

# made up, of the shape that the service documents
SECRET = "hf_" + "Zk3Qw9Lm2Xv7Bn4Tr8Yp1Hs6Jd5Fg0Ca3E"


def record(runs: Path) -> dict[str, Any]:
    return json.loads((runs / "latest" / "run.json").read_text())


def plant(runs: Path, text: str) -> None:
    """Have the run's record hold `text`, as a note of its first trial."""
    path = runs / "latest" / "run.json"
    changed = json.loads(path.read_text())
    changed["cases"][0]["claim"] = text
    path.write_text(json.dumps(changed))


def test_the_report_says_the_verdict_the_evidence_and_what_was_not_seen(
    command: Any, runs: Path
) -> None:
    done = command("report", "--runs", runs)
    assert (done.returncode, done.stderr) == (0, "")
    text = done.stdout
    assert text.startswith("### specrepro run: mtp-tail-overflow\n")
    assert "**INCONCLUSIVE**" in text
    assert "write of 2 bytes at element 1024 of key\\_cache" in text
    assert "specrepro run mtp-tail-overflow --variant faulty" in text
    assert "**Not observed**" in text
    assert record(runs)["run"]["id"] in text


def test_json_is_the_record(command: Any, runs: Path) -> None:
    done = command("report", "latest", "--format", "json", "--runs", runs, "--no-redact")
    assert json.loads(done.stdout) == record(runs)


@pytest.mark.parametrize("format_", ["markdown", "json"])
def test_no_format_lets_a_secret_out_and_it_is_said(command: Any, runs: Path, format_: str) -> None:
    plant(runs, f"started with HF_TOKEN={SECRET}")
    done = command("report", "--format", format_, "--runs", runs)
    assert SECRET not in done.stdout + done.stderr
    assert "Hugging Face token" in done.stderr
    kept = command("report", "--format", format_, "--runs", runs, "--no-redact")
    assert SECRET in kept.stdout.replace("\\_", "_")


def test_what_would_be_removed_can_be_looked_at_without_being_shown(
    command: Any, runs: Path
) -> None:
    plant(runs, f"started with HF_TOKEN={SECRET}")
    done = command("report", "--show-redactions", "--runs", runs)
    assert done.returncode == 0
    assert "cases[0].claim: started with HF_TOKEN=[removed Hugging Face token]" in done.stdout
    assert SECRET not in done.stdout


def test_a_file_is_written_whole(command: Any, runs: Path, tmp_path: Path) -> None:
    done = command("report", "--runs", runs, "-o", tmp_path / "report.md")
    assert done.stdout == ""
    written = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert written == command("report", "--runs", runs).stdout


def test_a_killed_run_has_a_report_that_claims_nothing(command: Any, runs: Path) -> None:
    (runs / "latest" / "run.json").unlink()
    name = (runs / "latest").resolve().name
    done = command("report", name, "--runs", runs)
    assert done.returncode == 0
    assert "nothing can be said from it" in done.stdout
    assert f"specrepro run --resume {name}" in done.stdout
    assert "REPRODUCED" not in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing",), "no run begins with `nothing`"),
        (("--format", "pdf"), "unknown format `pdf`"),
        (("-o", "missing/report.md"), "cannot write `missing/report.md`"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    command: Any, runs: Path, words: tuple[str, ...], said: str
) -> None:
    done = command("report", *words, "--runs", runs)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
