"""What `specrepro check` says when a build cannot be had: one message, a hint, and the status."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CASE = "draft-length-gate"
OTHER = "vllm-0.27.0-cp38-abi3-macosx_11_0_arm64.whl"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def specrepro(environ: dict[str, str], tmp_path: Path) -> Run:
    """The command, whose only index is the local server."""
    folders = {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("STATE", "CACHE")}
    code = "import sys; from specrepro.cli import main; main()"

    def run(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, "check", CASE, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "COLUMNS": "400", **environ, **folders},
            **options,
        )

    return run


@pytest.fixture
def index(server: Any, wheels: Any) -> Any:
    """Two releases, a pre-release, one that was yanked, one with an sdist only, one for another
    platform, and one that is served without ranges."""
    names = [wheels.name(v) for v in ("0.28.0", "0.29.0", "0.30.0rc1", "0.26.0")] + [OTHER]
    for name in names:
        server.add_release(wheels.make(version=name.split("-")[1]), name)
    server.add_release(wheels.make(version="0.31.0"), wheels.name("0.31.0"), behaviour="whole")
    files = [
        {"filename": name, "url": f"{server.url}/files/{name}", "hashes": {}}
        for name in (*names, wheels.name("0.31.0"), "vllm-0.25.0.tar.gz")
    ]
    next(f for f in files if "0.26.0" in f["filename"])["yanked"] = "broken \x1b[31mmetadata"
    page = {"meta": {"api-version": "1.1"}, "name": "vllm", "files": files}
    kind = "application/vnd.pypi.simple.v1+json"
    server.add_page("/simple/vllm/", json.dumps(page), kind)
    return server


@pytest.mark.parametrize(
    ("arguments", "status", "words", "hint"),
    [
        (["0.28.5"], 2, "vllm 0.28.5 is not in the index", "the nearest are 0.27.0, 0.28.0, 0.29"),
        (["0.9.0..0.10.0"], 2, "no release lies in `0.9.0..0.10.0`", "the newest is 0.31.0"),
        (["0.30.0..0.28.0"], 2, "runs backwards", "0.28.0..0.30.0 has the older end first"),
        (["nothing"], 2, "`nothing` names no build", "one of: a version"),
        (["./nowhere"], 2, "`nowhere` does not exist", ""),
        (["0.26.0"], 125, "0.26.0 was yanked: `broken \\x1b[31mmetadata`", "--yanked looks at it"),
        (["0.25.0"], 125, "0.25.0 has no wheel, only an sdist", "--allow-full-download takes it"),
        (["0.31.0"], 125, "does not serve ranges", "--allow-full-download"),
        (["0.28.0", "--offline"], 125, "offline, and", "the same command without --offline"),
        (["0.28.0", "--python", "x"], 2, "both say which build", "leave one of them out"),
        (["installed", "--python", "x"], 125, "no such interpreter", "--python PATH is"),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_a_build_that_cannot_be_had_is_one_message_with_a_hint(
    arguments: list[str], status: int, words: str, hint: str, specrepro: Run, index: Any
) -> None:
    ran = specrepro("--vllm", *arguments)
    said = " ".join((ran.stdout + ran.stderr).split())
    assert ran.returncode == status, said
    assert words in said
    assert hint in said
    assert "Traceback" not in said
    assert "\x1b" not in ran.stdout + ran.stderr
    assert status != 2 or ran.stdout == ""


def reasons(ran: subprocess.CompletedProcess[str]) -> dict[str, str]:
    return {b["version"]: " ".join(b["reasons"]) for b in json.loads(ran.stdout)["builds"]}


def test_a_yanked_release_is_looked_at_when_that_is_asked_for(specrepro: Run, index: Any) -> None:
    assert "yanked" in reasons(specrepro("--vllm", "0.26.0", "--json"))["0.26.0"]
    assert "yanked" not in reasons(specrepro("--vllm", "0.26.0", "--yanked", "--json"))["0.26.0"]


def test_ranges_hold_what_was_yanked_and_pre_releases_when_that_is_asked_for(
    specrepro: Run, index: Any
) -> None:
    asked = ("--vllm", "0.26.0..0.30.0", "--json")
    plain = ["0.27.0", "0.28.0", "0.29.0"]
    assert list(reasons(specrepro(*asked))) == plain
    assert list(reasons(specrepro(*asked, "--pre"))) == [*plain, "0.30.0rc1"]
    assert list(reasons(specrepro(*asked, "--yanked"))) == ["0.26.0", *plain]


def test_a_wheel_of_another_platform_is_read_all_the_same(specrepro: Run, index: Any) -> None:
    [build] = json.loads(specrepro("--vllm", "0.27.0", "--json").stdout)["builds"]
    assert build["file"] == OTHER
    assert any("dict_override" in reason for reason in build["reasons"])


def test_an_index_that_is_down_says_nothing_of_a_version(
    specrepro: Run, index: Any, environ: dict[str, str], tmp_path: Path
) -> None:
    links = tmp_path / "links"
    links.mkdir()
    (links / "other-1.0-py3-none-any.whl").touch()
    closed = f"http://localhost:{1}/simple"  # nobody listens there
    environ |= {"PIP_FIND_LINKS": str(links), "PIP_EXTRA_INDEX_URL": closed}
    known = specrepro("--vllm", "0.28.0", "--json")
    assert list(reasons(known)) == ["0.28.0"]
    missing = specrepro("--vllm", "0.28.5")
    assert missing.returncode == 125
    assert "0.28.5 is not in the index, as far as that can be read" in missing.stderr
    environ["PIP_INDEX_URL"] = closed
    none = specrepro("--vllm", "0.28.0", "--cache", tmp_path / "empty")
    assert (none.returncode, none.stdout) == (125, "")
    assert "tried 3 times" in none.stderr


def test_a_run_that_cannot_be_kept_is_said_so(specrepro: Run, index: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ran = specrepro("--vllm", "0.28.0", "--runs", tmp_path / "file" / "runs")
    assert ran.returncode == 2
    assert "cannot keep runs in" in ran.stderr
    assert "--runs DIR names another folder" in ran.stderr


def no_more_bytes() -> None:
    """Every file is as full as a disk can be; Python ignores the signal, and write() fails."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def test_a_full_disk_is_one_message_and_no_verdict(specrepro: Run, index: Any) -> None:
    ran = specrepro("--vllm", "0.28.0", preexec_fn=no_more_bytes)
    assert (ran.returncode, ran.stdout) == (125, "")
    assert "error: request.json cannot be written to " in ran.stderr
    assert ": File too large" in ran.stderr
    assert "--runs DIR names another folder" in ran.stderr


def test_a_cache_that_cannot_be_written_is_done_without(
    specrepro: Run, index: Any, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    ran = specrepro("--vllm", "0.28.0", "--json", "--cache", tmp_path / "file")
    assert list(reasons(ran)) == ["0.28.0"]
