"""An environment from a folder of wheels, without a network: what run.sh --fetch put into it."""

from __future__ import annotations

import platform
import sys
import zipfile
from pathlib import Path

from commands import ended

ROOT = Path(__file__).parents[2]
AT_MOST = 300.0  # seconds of a step; all of it took 15 to 49 on two cores


class OfflineError(Exception):
    """The wheels cannot be installed; the message says what pip said."""


def installed(wheels: Path, folder: Path) -> Path:
    """The interpreter of a new environment in `folder`, with the wheels and this checkout."""
    found = sorted(str(path) for path in wheels.glob("*.whl"))
    if not found:
        raise OfflineError(f"the wheels cannot be installed: there are none in {wheels}")
    if cut := [path for path in found if not zipfile.is_zipfile(path)]:
        raise OfflineError(f"the wheels cannot be installed: {Path(cut[0]).name} is cut, or none")
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
    for words in (
        [sys.executable, "-m", "venv", str(folder)],
        [*pip, "--no-compile", *found],
        [*pip, "--no-build-isolation", "-e", str(ROOT)],
    ):
        done = ended(words, AT_MOST)
        if done.status != 0:
            mine = f"Python {platform.python_version()}, {platform.machine()}"
            raise OfflineError(f"the wheels cannot be installed for {mine}: {done.said}")
    return python
