"""Runs under a compute-sanitizer made up, found on PATH as the real one would be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.sanitizer import options, tool, weigh
from specrepro.repro.sanitizer.journal import read as read_journal
from specrepro.repro.sanitizer.reading import read

HERE = Path(__file__).parent


def put(path: Path, mode: int = 0o755) -> Path:
    """The made-up tool, at a path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{HERE / "fake_tool.py"}" "$@"\n')
    path.chmod(mode)
    return path


@dataclass
class Run:
    """A target under the tool, as a lane would run it."""

    folder: Path
    said: dict[str, Any] = field(default_factory=dict)
    status: int = 0

    def weighed(self, how: str = "well", check: str = "memcheck", **said: Any) -> weigh.Weighed:
        self.folder.mkdir(exist_ok=True)
        journal = self.folder / "journal.ndjson"
        self.said = {"journal": str(journal), **said}
        path = put(self.folder.parent / "bin" / "compute-sanitizer").parent
        environ = os.environ | {
            "FAKE_SANITIZER": json.dumps(self.said),
            "PATH": f"{path}:{os.environ['PATH']}",
        }
        os.environ["FAKE_SANITIZER"] = environ["FAKE_SANITIZER"]
        found = tool.find(environ, self.folder, [])
        files = options.Files.of(self.folder)
        target = [sys.executable, str(HERE / "target.py"), str(journal), how]
        words = options.command(found, check, files, target, 49152)
        done = subprocess.run(words, env=environ, capture_output=True, timeout=60, check=False)
        self.status = done.returncode
        return weigh.weigh(check, found.version, read(files), read_journal(journal))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("FAKE_SANITIZER", "{}")
    return Run(tmp_path / "trial")
