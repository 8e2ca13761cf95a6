"""Builds looked at apart, each a task: the record of one after the other, whatever is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.check.apart import ANSWER, LEFT, How, answered, keep, only_of_an_index
from specrepro.repro.errors import UsageError
from specrepro.repro.execution.task import Done, Ended, Task

CODE = "import sys; from specrepro.cli import main; main()"
CASE = "draft-length-gate"
ROW = {
    "version": "0.28.0", "verdict": "AFFECTED", "exposure": [], "evidence": [], "reasons": [],
    "defects": [], "isolation": {}, "notes": [],
}  # fmt: skip


@pytest.fixture
def check(server: Any, wheels: Any, environ: dict[str, str], tmp_path: Path) -> Any:
    """Runs `specrepro check` on an index of four releases, of which the third is broken."""
    names = []
    for version in ("0.28.0", "0.28.1", "0.28.2", "0.29.0"):
        name = wheels.name(version)
        server.add_release(wheels.make(version=version), name)
        names.append(name)
    server.add_index(*names)
    server.paths[f"/files/{names[2]}"].behaviour = "shifted"
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_"))}
    environment = kept | environ | {
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }  # fmt: skip

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", CODE, "check", CASE, *options]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment, timeout=300
        )

    return run


def test_the_record_is_that_of_one_after_the_other_but_for_times_and_places(check: Any) -> None:
    words = ("--vllm", "0.28.0..0.29.0", "--json")
    alone, apart = check(*words), check(*words, "--jobs", "3")
    assert apart.returncode == alone.returncode
    one, other = (json.loads(ran.stdout) for ran in (alone, apart))
    for row in other["builds"]:
        assert row.pop("place")["node"] == "here"
    for row in (*one["builds"], *other["builds"]):
        del row["seconds"]
    assert other["builds"] == one["builds"]
    assert len({json.dumps(row["reasons"]) for row in one["builds"]}) >= 2  # one cannot be read
    assert {p.name for p in Path(other["run"]["path"]).iterdir()} == {"request.json", "run.json"}


def test_what_cannot_be_asked_is_said_once_and_leaves_no_run(
    check: Any, wheels: Any, tmp_path: Path
) -> None:
    paths = [tmp_path / wheels.name(version) for version in ("0.28.0", "0.29.0")]
    for path in paths:
        path.write_bytes(wheels.make())
    builds = ",".join(map(str, paths))
    ran = check("--vllm", builds, "--jobs", "2", "--depth", "engine", "--default-only")
    assert (ran.returncode, ran.stdout) == (2, ""), ran.stderr
    assert ran.stderr.count("cannot tell what a build does by default") == 1
    assert list(tmp_path.glob("state/specrepro/runs/*-check-*")) == []


@pytest.mark.parametrize("spec", ["installed", "/nowhere/vllm", "./vllm-0.28.0-py3-none-any.whl"])
def test_a_build_of_this_machine_is_not_for_a_cluster(spec: str) -> None:
    with pytest.raises(UsageError, match="is of this machine"):
        only_of_an_index(spec)


def test_a_release_and_an_address_are_for_a_cluster() -> None:
    only_of_an_index("0.28.0")
    only_of_an_index("https://host.example/vllm-0.28.0-cp38-abi3-manylinux1_x86_64.whl")


def ended(folder: Path, answer: object = None, **more: Any) -> Done:
    if answer is not None:
        (folder / ANSWER).write_text(answer if isinstance(answer, str) else json.dumps(answer))
    job = {"spec": "https://secret@host.example/x.whl", "called": "0.28.0"}
    return Done(Task("1", "build", job, folder, 1.0), None, Ended(), **more)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "No such file"),
        ("{", "cannot be read"),
        ({}, "row"),
        ({"row": ROW | {"verdict": "FINE"}, "traffic": [0, 0]}, "FINE"),
        ({"row": ROW | {"evidence": None}, "traffic": [0, 0]}, "evidence is no list"),
        ({"row": ROW, "traffic": None}, "cannot be read"),
    ],
)
def test_what_is_no_answer_makes_a_build_untestable_for_now(
    answer: object, words: str, tmp_path: Path
) -> None:
    row = answered(ended(tmp_path, answer)).row
    assert (row["version"], row["verdict"], row["temporary"]) == ("0.28.0", "UNTESTABLE", True)
    assert words in " ".join(row["reasons"])
    assert "secret" not in json.dumps(row)


def test_a_lost_task_says_why_and_evidence_that_stayed_is_named(tmp_path: Path) -> None:
    lost = answered(ended(tmp_path, lost="lost 4 times: its node was lost")).row
    assert lost["reasons"] == ["lost 4 times: its node was lost"]
    assert lost["temporary"]
    row = answered(ended(tmp_path, {"row": ROW, "traffic": [7, 9]}, left="core: node 1a2b")).row
    assert row["verdict"] == "AFFECTED"
    assert row["notes"] == ["evidence too large to be sent stayed at core: node 1a2b"]


def test_what_was_refused_is_raised_at_home(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such thing") as raised:
        answered(ended(tmp_path, {"refused": "no such thing", "hint": "another"}))
    assert raised.value.hint == "another"


def test_what_two_builds_leave_under_one_name_is_kept_twice(tmp_path: Path) -> None:
    for number in (1, 2):
        folder = tmp_path / str(number)
        (folder / LEFT / "0.28.0").mkdir(parents=True)
        (folder / LEFT / "0.28.0" / "engine.log").write_text(str(number))
        keep(answered(ended(folder, {"row": ROW, "traffic": [0, 0]})), tmp_path / "run")
    kept = sorted((tmp_path / "run").rglob("engine.log"))
    assert [path.read_text() for path in kept] == ["1", "2"]


def test_how_builds_are_looked_at_goes_as_plain_values() -> None:
    record = How("source", cache=Path("cache"), offline=True).record()
    assert json.loads(json.dumps(record)) == record
    assert record["cache"] == str(Path("cache").absolute())
