"""A command with a limit of time; what it started ends with it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

GRACE = 3.0  # seconds that an interrupted command has to write what it has


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. status: None where its time was over. said: its last words, for a
    reader."""

    status: int | None
    out: str
    said: str

    def json(self) -> dict[str, Any] | None:
        """The object that it printed; None where it printed none, or was cut."""
        if self.status is None:
            return None
        try:
            record = json.loads(self.out)
        except ValueError:
            return None
        return record if isinstance(record, dict) else None


def ended(words: Sequence[str], limit: float) -> Ended:
    """Run a command for `limit` seconds at most."""
    child = subprocess.Popen(
        list(words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    status: int | None
    try:
        out, err = child.communicate(timeout=max(0.1, limit))
        status = child.returncode
    except subprocess.TimeoutExpired:
        _signal(child, signal.SIGINT)
        try:
            out, err = child.communicate(timeout=GRACE)
        except subprocess.TimeoutExpired:
            _signal(child, signal.SIGKILL)
            out, err = child.communicate()
        status = None
    _signal(child, signal.SIGKILL)
    last = (err.strip() or out.strip()).splitlines()[-1:]
    said = f"no end within {limit:.0f} s" if status is None else f"status {status}"
    return Ended(status, out, ": ".join([said, *last])[:300])


def _signal(child: subprocess.Popen[str], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)
