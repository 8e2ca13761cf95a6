"""Releases of an engine in the shape of vLLM's, on a local server, and the command on them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

Ran = subprocess.CompletedProcess[str]

FILES = {
    "envs.py": """
        VLLM_USE_V2_MODEL_RUNNER: bool = False
        environment_variables = {'VLLM_USE_V2_MODEL_RUNNER': 0}
    """,
    "config/scheduler.py": """
        class SchedulerConfig:
            async_scheduling: bool = False
    """,
    "v1/worker/gpu_model_runner.py": """
        class GPUModelRunner:
            def _input_fits_in_drafter(self, metadata):
                return metadata.max_seq_len + self.num_spec_tokens <= (
                    self.effective_drafter_max_model_len)

            def propose(self, metadata):
                if not self._input_fits_in_drafter(metadata):
                    self._draft_token_ids = torch.zeros(1).expand(2, 3)
    """,
}
SPECULATIVE = """
    class SpeculativeConfig:
        def compose_draft_hf_overrides(overrides):
            return {override}

        def _maybe_override_draft_max_model_len(own, draft, target):
            return min(draft, target)
"""
# what the draft model's overrides become: lost, carried over, or in a shape no probe knows
OVERRIDES = {
    "b": "overrides if callable(overrides) else lambda config: config",
    "g": "lambda config: (config.__dict__.update(overrides), config)[1]",
    "?": None,
}


def sources(state: str) -> dict[str, bytes]:
    """The files of a release that is bad, good or unknown to the probes: b, g or ?."""
    override = OVERRIDES[state]
    speculative = SPECULATIVE.format(override=override) if override else "VERSION = 1\n"
    files = FILES | {"config/speculative.py": speculative}
    return {f"vllm/{name}": textwrap.dedent(text).encode() for name, text in files.items()}


class Engine:
    """An index of releases that a test writes; `specrepro` runs the command against it."""

    sources = staticmethod(sources)
    CASE = ("draft-length-gate", "--defect", "dict-override")

    def __init__(self, server: Any, wheels: Any, environ: dict[str, str], folder: Path) -> None:
        self.server = server
        self.wheels = wheels
        self.folder = folder
        self.names: dict[str, str] = {}
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_"))}
        self.environment = kept | environ | {
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "COLUMNS": "100",
        }  # fmt: skip

    def release(
        self,
        version: str,
        state: str,
        *,
        needs: str = "torch==2.9.0",
        commit: str = "",
        more: Mapping[str, bytes] | None = None,
    ) -> str:
        """Serve a release; its path on the server. more: files in place of those of its state."""
        about = f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\nRequires-Dist: {needs}\n\n"
        about_name = f"vllm-{version}.dist-info/METADATA"
        commit = commit or f"{version.replace('.', 'a'):0>9}"
        told = f"__version__ = '{version}'\n__commit_id__ = 'g{commit}'\n"
        files = (
            sources(state)
            | dict(more or {})
            | {"vllm/_version.py": told.encode(), about_name: about.encode()}
        )
        name = self.wheels.name(version)
        self.server.add_release(self.wheels.make(files, version), name)
        self.names[version] = name
        self.server.add_index(*self.names.values())
        return f"/files/{name}"

    def releases(self, states: str) -> list[str]:
        """A release a letter, 0.1.0, 0.2.0 …; their versions."""
        versions = [f"0.{number}.0" for number in range(1, len(states) + 1)]
        for version, state in zip(versions, states, strict=True):
            self.release(version, state)
        return versions

    def start(self, *arguments: str | Path, command: str = "bisect") -> subprocess.Popen[str]:
        words = [command, *(self.CASE if command == "bisect" else ()), *map(str, arguments)]
        code = "import sys; from specrepro.cli import main; main()"
        return subprocess.Popen(
            [sys.executable, "-c", code, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environment,
        )

    def run(self, *arguments: str | Path, command: str = "bisect") -> Ran:
        started = self.start(*arguments, command=command)
        out, err = started.communicate(timeout=120)
        return subprocess.CompletedProcess(started.args, started.returncode, out, err)

    def record(self, *arguments: str | Path) -> dict[str, Any]:
        """The record of a bisection with these arguments, which must print nothing else."""
        ran = self.run(*arguments, "--json")
        assert ran.stderr == "", ran.stderr
        record: dict[str, Any] = json.loads(ran.stdout)
        assert record["schema"] == "specrepro/bisect@1"
        return record | {"status": ran.returncode}

    def tried(self, record: dict[str, Any]) -> list[str]:
        return [row["build"] for row in record["trials"]]


@pytest.fixture
def engine(server: Any, wheels: Any, environ: dict[str, str], tmp_path: Path) -> Engine:
    return Engine(server, wheels, environ, tmp_path)


@pytest.fixture
def searched() -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    """(kind, build, previous, status) of a record."""

    def told(record: dict[str, Any]) -> tuple[Any, ...]:
        result = record["result"]
        return result["kind"], result["build"], result["previous"], record["status"]

    return told
