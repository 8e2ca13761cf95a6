"""The 35 releases: boundaries and timelines that were read in the wheels before any search."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.check.builds import Builds
from specrepro.repro.errors import UntestableError

pytestmark = pytest.mark.network

RANGE = "0.11.0..0.33.0"
# traffic with an empty cache
SEARCH = (60, 15_000_000)
SCAN_BYTES = 60_000_000


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    with Builds(cache=tmp_path_factory.mktemp("index")) as builds:
        try:
            return builds.versions(RANGE)
        except UntestableError as error:
            pytest.skip(f"no package index here: {error}")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that scans share."""
    return tmp_path_factory.mktemp("cache")


def bisect(folder: Path, *arguments: str, cache: Path | None = None) -> dict[str, Any]:
    code = "import sys; from specrepro.cli import main; main()"
    command = [sys.executable, "-c", code, "bisect", *arguments, "--json"]
    command += ["--cache", str(cache or folder / "cache"), "--runs", str(folder / "runs")]
    environment = os.environ | {"XDG_STATE_HOME": str(folder / "state")}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.stderr == ""
    record: dict[str, Any] = json.loads(ran.stdout)
    return record


@pytest.mark.parametrize(
    ("arguments", "kind", "build", "previous"),
    [
        (
            "stale-draft-metadata --find fix --bad 0.12.0 --good 0.33.0",
            "first_good", "0.21.0", "0.20.2",
        ),
        (
            "gdn-pipeline-state --defect batch-row-copy --bad 0.25.0 --good 0.33.0",
            "first_good", "0.32.0", "0.31.0",
        ),
        (
            "gdn-pipeline-state --defect batch-row-copy --good 0.11.0 --bad 0.31.0",
            "first_bad", "0.25.0", "0.24.0",
        ),
        (
            "draft-length-gate --defect dict-override --with async=on --good 0.11.0 --bad 0.33.0",
            "first_bad", "0.14.0", "0.13.0",
        ),
        (
            "draft-length-gate --defect dict-override --with async=off --good 0.11.0 --bad 0.33.0",
            "first_bad", "0.20.0", "0.19.1",
        ),
    ],
)  # fmt: skip
def test_a_search_finds_the_known_boundary_with_little_traffic(
    arguments: str, kind: str, build: str, previous: str, releases: list[str], tmp_path: Path
) -> None:
    assert {build, previous} <= set(releases)
    record = bisect(tmp_path, *arguments.split())
    result = record["result"]
    assert (result["kind"], result["build"], result["previous"]) == (kind, build, previous)
    assert record["traffic"]["requests"] <= SEARCH[0]
    assert record["traffic"]["bytes"] <= SEARCH[1]
    assert record["boundary"]["files"]


@pytest.mark.parametrize(
    ("arguments", "tables"),
    [
        (
            "gdn-pipeline-state",
            {
                "batch-row-copy": ("0.25.0", "0.31.0"),
                "zero-draft-rows": ("0.11.0", "0.31.0"),
                "one-token-chunk": ("0.11.0", "0.30.0"),
            },
        ),
        (
            "stale-draft-metadata",
            {
                "built-once-eager": ("0.12.0", "0.20.2"),
                "never-built-graphs": ("0.12.0", "0.18.1"),
                "built-once-graphs": ("0.19.0", "0.20.2"),
            },
        ),
        (
            "draft-length-gate --with async=on",
            {"dict-override": ("0.14.0", "0.33.0"), "callable-override": ("0.14.0", "0.24.0")},
        ),
        ("draft-length-gate --with async=off", {"dict-override": ("0.20.0", "0.33.0")}),
        ("mtp-plan-buffer-race", {"engine-buffers": ("0.11.0", "0.28.0")}),
    ],
)
def test_a_scan_of_all_releases_is_the_table_that_was_read_in_them(
    arguments: str,
    tables: dict[str, tuple[str, str]],
    releases: list[str],
    kept: Path,
    tmp_path: Path,
) -> None:
    sought = next(iter(tables))
    record = bisect(
        tmp_path, *arguments.split(), "--defect", sought, "--scan", "--vllm", RANGE, cache=kept
    )
    states: dict[str, dict[str, str]] = {name: {} for name in tables}
    for row in record["trials"]:
        answer = json.loads((Path(record["run"]["path"]) / row["log"]).read_text())
        for standing in answer["defects"]:
            if standing["defect"] in tables:
                states[standing["defect"]][row["build"]] = standing["state"]
    for defect, (first, last) in tables.items():
        inside = range(releases.index(first), releases.index(last) + 1)
        assert states[defect] == {
            version: "present" if at in inside else "absent" for at, version in enumerate(releases)
        }
    [stage] = record["stages"]
    assert {e["build"]: e["state"] for e in stage["timeline"]["builds"]} == {
        version: "bad" if state == "present" else "good"
        for version, state in states[sought].items()
    }
    assert record["traffic"]["bytes"] <= SCAN_BYTES


def test_what_else_changed_at_a_boundary_is_read_from_the_wheels(
    releases: list[str], kept: Path, tmp_path: Path
) -> None:
    assert releases
    record = bisect(
        tmp_path, "mtp-plan-buffer-race", "--defect", "engine-buffers", "--find", "fix",
        "--bad", "0.28.0", "--good", "0.29.0", cache=kept,
    )  # fmt: skip
    boundary = record["boundary"]
    moved = {need["name"]: (need["before"], need["after"]) for need in boundary["dependencies"]}
    assert moved["flashinfer-python"] == ("==0.6.16.post3", "==0.6.18")
    assert "torch" not in moved
    defaults = {(d["setting"], d["of"]): (d["before"], d["after"]) for d in boundary["defaults"]}
    assert defaults["runner", "hybrid pp1"] == ("v1", "v2")
    assert boundary["compare"].endswith("/v0.28.0...v0.29.0")


def test_the_python_that_a_release_requires_is_compared(
    releases: list[str], kept: Path, tmp_path: Path
) -> None:
    assert releases
    record = bisect(
        tmp_path, "gdn-pipeline-state", "--defect", "batch-row-copy", "--find", "fix",
        "--bad", "0.31.0", "--good", "0.32.0", cache=kept,
    )  # fmt: skip
    assert record["boundary"]["python"] == {"before": "<3.15,>=3.10", "after": "<3.15,>=3.11"}
