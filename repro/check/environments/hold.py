"""A lock on an environment, shared by those who use it."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path


class Hold:
    """A lock on one environment; ends with `close`, or with the process and what it started."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def take(self, *, exclusive: bool, seconds: float = 0.0) -> bool:
        """Whether the lock was had within `seconds`. What was held before may be lost meanwhile."""
        deadline = time.monotonic() + seconds
        kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        while True:
            try:
                fcntl.flock(self.descriptor, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    return False
                time.sleep(0.2)
            else:
                return True

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
