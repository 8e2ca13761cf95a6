"""Runs on the GPU of this machine; each test here skips where there is none."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).parent
SCRIPTS = ("commands", "compact", "offline", "page", "parts", "session")
SPECREPRO = [sys.executable, "-c", "from specrepro.cli import main; main()"]
# at another point than the file's own its other points are left out
TAIL = ("mtp-tail-overflow", "--variant", "faulty", "--variant", "fixed", "--set", "seq_len=63")
Trials = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="session")
def gpu() -> str:
    """The name of the GPU that is used; skips with the reason where none can be."""
    from specrepro.repro.device_lanes import no_device_lane
    from specrepro.repro.watch.nvml import devices

    if why := no_device_lane():
        pytest.skip(why)
    return devices().names[0]


@pytest.fixture(scope="session")
def lane_tools(gpu: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], None]:
    """Skips with the reason where a lane's tool is missing."""
    import os

    from specrepro.repro.errors import LaneError
    from specrepro.repro.lanes.gpu_trial import usable

    def needs(lane: str) -> None:
        try:
            usable(lane, os.environ, tmp_path_factory.mktemp("tool"))
        except LaneError as error:
            pytest.skip(str(error))

    return needs


@pytest.fixture(scope="session")
def ran(gpu: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Trials]:
    """`specrepro run WORDS…`: its trials at the case's own point; the same words run once."""
    known: dict[tuple[str, ...], Trials] = {}
    runs = tmp_path_factory.mktemp("runs")

    def run(*words: str) -> Trials:
        if words not in known:
            known[words] = played(runs, *words)
        return known[words]

    return run


def played(runs: Path, *words: str) -> Trials:
    command = [*SPECREPRO, "run", *words, "--json", "--runs", str(runs)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode in (0, 1, 125), done.stderr
    (case,) = json.loads(done.stdout)["cases"]
    return {(t["variant"], t["lane"]): t for t in case["trials"] if t["point"] == case["named"]}


def loaded(name: str, folder: Path = HERE) -> ModuleType:
    """A script of a folder; those of this one find each other by their folder."""
    sys.path.insert(0, str(HERE))
    try:
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(HERE))
        for other in SCRIPTS:  # names that others have too
            sys.modules.pop(other, None)
    return module
