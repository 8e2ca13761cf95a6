"""A command with a limit of time; what it started ends with it, and with us."""

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
    """Run a command for `limit` seconds at most. What interrupts us ends it too."""
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
        out, err = _interrupted(child)
        status = None
    except BaseException:
        _interrupted(child)
        raise
    finally:
        _signal(child, signal.SIGKILL)
    if status is None:  # its last words would be about the interrupt
        return Ended(status, out, f"no end within {limit:.0f} s")
    last = (err.strip() or out.strip()).splitlines()[-1:]
    return Ended(status, out, ": ".join([f"status {status}", *last])[:300])


def _interrupted(child: subprocess.Popen[str]) -> tuple[str, str]:
    """End a command as Ctrl-C does, and by force where that is not enough; what it printed."""
    _signal(child, signal.SIGINT)
    try:
        return child.communicate(timeout=GRACE)
    except subprocess.TimeoutExpired:
        _signal(child, signal.SIGKILL)
        return child.communicate()


def _signal(child: subprocess.Popen[str], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)
