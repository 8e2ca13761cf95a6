"""A case with hypotheses as a shell sees it: both lanes, the record, the statuses."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

CODE = "import sys; from specrepro.cli import main; main()"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "FORCE_COLOR"}
    return subprocess.run(
        [sys.executable, "-c", CODE, "run", "gdn-pipeline-state", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=folder,
        env=environment | {"XDG_STATE_HOME": str(folder), "COLUMNS": "100"},
    )


def test_survivors_and_the_right_pipeline_run_in_both_lanes_and_agree(tmp_path: Path) -> None:
    done = run(tmp_path, "--variant", "correct", "--variant", "h6", "--variant", "h7", "--json")
    assert done.returncode == 0, done.stderr
    [case] = json.loads(done.stdout)["cases"]
    assert case["verdict"] == "REPRODUCED"
    assert case["cause"] == "unknown"
    said = case["hypotheses"]
    assert said["survive"] == ["h6"]
    assert said["out"] == [{"variant": "h7", "by": ["a", "b"]}]
    assert said["next"] == []  # a single survivor has nobody to be told from

    def trials(**wanted: Any) -> list[dict[str, Any]]:
        return [t for t in case["trials"] if all(t[k] == v for k, v in wanted.items())]

    reported = ("a", "b", "c", "d", "e")
    for control in reported:
        [ours] = trials(variant="h6", control=control, lane="reference")
        [theirs] = trials(variant="h6", control=control, lane="emulator")
        assert ours["status"] == theirs["status"]
        assert theirs["agrees_with_reference"]
        assert theirs["expected"] == "unknown"
    [untried] = trials(variant="h6", control="eager", lane="emulator")
    assert untried["status"] == "skipped"
    [right] = trials(variant="correct", lane="emulator")
    assert (right["status"], right["expected"], right["control"]) == ("clean", "clean", None)


def test_without_a_survivor_the_status_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, "--variant", "h9", "--lane", "emulator", "-q")
    assert done.returncode == 1
    assert done.stdout.startswith("gdn-pipeline-state   NOT REPRODUCED")


def test_what_a_control_contradicts_is_a_mistake_of_usage(tmp_path: Path) -> None:
    done = run(tmp_path, "--set", "layers=4", "--set", "partition=single")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "control a of case gdn-pipeline-state" in done.stderr
