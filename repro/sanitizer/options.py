"""How compute-sanitizer is started: every option that decides is said, none is left to a default
that has changed between versions. Pure, but for the search of a port."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import LaneError
from .tool import Tool

CHECKS = ("memcheck", "racecheck", "initcheck", "synccheck")
LAUNCH_TIMEOUT = 120  # seconds until the target must have connected; 10 is less than imports take
FRAMES = 16  # of the host in a backtrace
FIRST_PORT, LAST_PORT, CONNECTIONS = 49152, 65535, 10


@dataclass(frozen=True, slots=True)
class Files:
    """What the tool writes: its text and its XML."""

    log: Path
    xml: Path

    @classmethod
    def of(cls, directory: Path) -> Files:
        return cls(directory / "sanitizer.log", directory / "sanitizer.xml")


def command(tool: Tool, check: str, files: Files, target: Sequence[str], port: int) -> list[str]:
    """The words that run `target` under `check`. ValueError for a check that the tool has not.

    A precise error destroys the context: then the launch that was under way is the one to blame,
    because nothing after it runs. Errors of calls are reported where the program asked for the call
    (newer versions also report those that a library made and expected).
    """
    if check not in CHECKS:
        raise ValueError(f"{check} is no check of compute-sanitizer")
    words = [
        *tool.command,
        *("--tool", check),
        *("--target-processes", "all"),
        *("--log-file", str(files.log)),
        *("--save", str(files.xml), "--xml"),
        *("--print-limit", "0"),
        *("--check-exit-code", "yes"),
        *("--require-cuda-init", "yes"),
        *("--destroy-on-device-error", "context"),
        *("--launch-timeout", str(LAUNCH_TIMEOUT)),
        *("--port", str(port), "--max-connections", str(CONNECTIONS)),
        *("--show-backtrace", "yes", "--num-callers-host", str(FRAMES)),
        *("--strip-paths", "no"),
    ]
    if check == "memcheck":
        words += ["--report-api-errors", "explicit", "--padding", "0", "--leak-check", "no"]
    if check == "racecheck":
        words += ["--racecheck-report", "analysis"]
    return [*words, *target]


def free_port(number: int) -> int:
    """A base port for trial `number` of this process, with the ports behind it that the tool may
    take. LaneError if none is free.

    Two trials at once must not share one; the search begins elsewhere for each of them.
    """
    spaces = (LAST_PORT - FIRST_PORT) // CONNECTIONS
    for attempt in range(spaces):
        base = FIRST_PORT + (number * 97 + attempt) % spaces * CONNECTIONS
        if all(_free(base + port) for port in range(CONNECTIONS)):
            return base
    raise LaneError("no free port between 49152 and 65535 for compute-sanitizer")


def _free(port: int) -> bool:
    with socket.socket() as one:
        try:
            one.bind(("localhost", port))
        except OSError:
            return False
    return True
