"""Environments that will be wanted, made by a process beside the one that uses others meanwhile.

The process is told by lines on its standard input which builds to hold: it makes those that are
not there, in that order, keeps all of them from being removed, and lets go of the others. It ends
when its input does, so with whoever started it, however that ends; what uv was doing ends then.
"""

from __future__ import annotations

import _thread
import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, cast

from ...errors import UntestableError, UsageError
from .environment import Environment, Package
from .session import Environments

GRACE = 10.0  # seconds for the process to end uv and what is half-made


class Ahead:
    """Holds environments by a process of its own, which is started when the first is asked for.

    root, package: as those of `Environments`.
    """

    def __init__(self, root: Path | None = None, package: Package | None = None) -> None:
        self._options = json.dumps({"root": str(root) if root else None, "package": package})
        self._child: subprocess.Popen[bytes] | None = None
        self._told: list[str] = []

    def __enter__(self) -> Ahead:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def hold(self, words: Sequence[str]) -> None:
        """Have these builds made and kept, the first ones first, and no others. One that cannot be
        made is left out: whoever wants to use it is told why."""
        if list(words) == self._told or (not words and self._child is None):
            return
        if self._child is None or self._child.poll() is not None:
            code = f"from {__name__} import main; main()"
            self._child = subprocess.Popen(
                [sys.executable, "-c", code, self._options],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # an interrupt of the terminal is for who started this, who closes it
                start_new_session=True,
            )
        self._told = list(words)
        words_to = cast(IO[bytes], self._child.stdin)
        try:
            words_to.write(json.dumps(self._told).encode() + b"\n")
            words_to.flush()
        except BrokenPipeError:
            self._told = []  # it has ended, and the next call starts another

    def close(self) -> None:
        """End the process, and what it does."""
        child, self._child, self._told = self._child, None, []
        if child is None:
            return
        try:
            cast(IO[bytes], child.stdin).close()
        except BrokenPipeError:
            self._told = []  # it has ended by itself
        try:
            child.wait(GRACE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


class _Wanted:
    """The latest list that was told. `None` once there will be no other."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._words: list[str] | None = []
        self._number = 0

    def listen(self) -> None:
        for line in sys.stdin:
            self._tell(list(map(str, json.loads(line))))
        self._tell(None)
        # wherever the other thread is; it ends uv on its way out
        _thread.interrupt_main()

    def _tell(self, words: list[str] | None) -> None:
        with self._changed:
            self._words, self._number = words, self._number + 1
            self._changed.notify_all()

    def after(self, number: int) -> tuple[list[str] | None, int]:
        """The list behind the one of this number, when there is one."""
        with self._changed:
            self._changed.wait_for(lambda: self._number > number)
            return self._words, self._number

    def newer(self, number: int) -> bool:
        return self._number > number


def main() -> None:
    """The process: hold what is told on standard input."""
    options = json.loads(sys.argv[1])
    root = Path(options["root"]) if options["root"] else None
    wanted = _Wanted()
    threading.Thread(target=wanted.listen, daemon=True).start()
    held: dict[str, Environment] = {}
    failed: set[str] = set()
    number = 0
    try:
        with Environments(root, package=options["package"]) as environments:
            while True:
                words, number = wanted.after(number)
                if words is None:
                    return
                for word in held.keys() - set(words):
                    environments.release(held.pop(word))
                for word in words:
                    if wanted.newer(number):
                        break
                    if word not in held and word not in failed:
                        try:
                            held[word] = environments.of(word)
                        except (UntestableError, UsageError):
                            failed.add(word)  # the log of uv lies with those of others
    except KeyboardInterrupt:
        return
