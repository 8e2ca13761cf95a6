"""A lane's child process: start it, wait for it, end it, and read what it left.

The child is a fresh interpreter in a process group and a scratch directory of its own. How it ends
is evidence: a signal, a time-out, a missing or cut result file make its trials unknown, never
clean.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..records import Evidence, Finding, Seen, Service, Status, Trial, TrialResult
from .child import MARK

LANE_CHILD = "specrepro.repro.lanes.child"
PULSE = 0.5  # seconds between two signs of life of a child that is waited for
LONGEST_LINE = 64 << 20  # bytes of one result line; more is not a result of ours
# What a lane needs of the environment. Secrets of the caller are not for a child that runs a case.
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "SYSTEMROOT")


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child ended. `reason` is "" for a child that ended well."""

    reason: str
    timed_out: bool
    seconds: float


@dataclass(slots=True)
class Children:
    """The children now running, so that an interrupt can end them all."""

    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    stopped: bool = False

    def stop(self) -> None:
        """End every child and its group, now and for those that would start later."""
        with self.lock:
            self.stopped = True
            for child in self.running.values():
                end_group(child)


def run_child(
    directory: Path,
    timeout: float,
    children: Children,
    *,
    module: str = LANE_CHILD,
    told: Callable[[], None] | None = None,
    before: Sequence[str] = (),
    more: Mapping[str, str] | None = None,
) -> Ending:
    """Run the job in `directory` (job.json) by `module` and wait; its output goes to files beside
    it. `told` is called every half second meanwhile. before: words of a tool that starts the child.
    more: of the child's environment.
    """
    scratch = directory / "scratch"
    scratch.mkdir(exist_ok=True)
    environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
    environment |= {
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        # one thread a child: lanes run side by side, and the numbers must not depend on it
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        if name in os.environ:
            environment[name] = os.environ[name]
    environment |= more or {}
    command = [*before, sys.executable, "-m", module, str(directory)]
    started = time.monotonic()
    with (directory / "stdout").open("wb") as out, (directory / "stderr").open("wb") as err:
        with children.lock:
            if children.stopped:
                return Ending("not started: the run was interrupted", False, 0.0)
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=scratch,
                env=environment,
                start_new_session=True,
            )
            children.running[child.pid] = child
        timed_out = False
        try:
            timed_out = not _ended(child, timeout, told)
        finally:
            end_group(child)
            child.wait()
            with children.lock:
                del children.running[child.pid]
    seconds = time.monotonic() - started
    if timed_out:
        return Ending(f"no end within {timeout:g} s", True, seconds)
    if child.returncode < 0:
        return Ending(f"ended by {signal_name(-child.returncode)}", False, seconds)
    if child.returncode:
        return Ending(f"ended with status {child.returncode}", False, seconds)
    return Ending("", False, seconds)


def _ended(child: subprocess.Popen[bytes], timeout: float, told: Callable[[], None] | None) -> bool:
    """Wait for a child; whether it ended within `timeout` seconds."""
    last = time.monotonic() + timeout
    while True:
        left = last - time.monotonic()
        try:
            child.wait(min(left, PULSE) if told else left)
        except subprocess.TimeoutExpired:
            if time.monotonic() >= last:
                return False
            if told:
                told()
        else:
            return True


def end_group(child: subprocess.Popen[bytes]) -> None:
    """Kill the child's process group; what it started ends with it."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # all of it has ended
    except PermissionError:  # a zombie that was not waited for yet, on some systems
        child.kill()


def signal_name(number: int) -> str:
    """SIGKILL for 9; the number where it has no name here."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def read_results(
    directory: Path, trials: Sequence[Trial], ending: Ending
) -> tuple[TrialResult, ...]:
    """One result a trial, in order. What the file does not hold whole stays unknown."""
    lines, complaint = read_lines(directory / "result.ndjson")
    ended = ending.reason or complaint
    if not ended and (not lines or lines[-1].get(MARK) != len(trials)):
        ended = "the result file has no completion mark"
    by_number = {line["trial"]: line for line in lines if isinstance(line.get("trial"), int)}
    running = max(by_number, default=-1) + 1  # the trial in which a child ended early
    return tuple(
        _result(trial, by_number[number], ended)
        if number in by_number
        else _unknown(trial, ending, ended, number == running)
        for number, trial in enumerate(trials)
    )


def mark(count: int) -> dict[str, int]:
    """The last record of a result file that is whole."""
    return {MARK: count}


def complete(directory: Path, count: int) -> bool:
    """Whether a child left a whole result file for `count` trials."""
    lines, complaint = read_lines(directory / "result.ndjson")
    return not complaint and len(lines) == count + 1 and lines[-1].get(MARK) == count


def played(directory: Path) -> int:
    """How many trials a child that is at work has ended; 0 where it has written nothing yet."""
    try:
        with (directory / "result.ndjson").open("rb") as file:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    except OSError:
        return 0


def read_lines(path: Path) -> tuple[list[dict[str, Any]], str]:
    """The records of a result file as far as they are whole, and what is wrong with it or ""."""
    lines: list[dict[str, Any]] = []
    try:
        with path.open("rb") as file:
            while raw := file.readline(LONGEST_LINE):
                if not raw.endswith(b"\n"):
                    return lines, "the result file is cut"
                record = json.loads(raw)
                if not isinstance(record, dict):
                    return lines, "the result file holds something else"
                lines.append(record)
    except OSError as error:
        return lines, f"no result file ({error.strerror})"
    except (ValueError, RecursionError):
        return lines, "the result file cannot be read"
    return lines, ""


def _unknown(trial: Trial, ending: Ending, reason: str, running: bool) -> TrialResult:
    status = Status.TIMEOUT if ending.timed_out and running else Status.UNKNOWN
    said = reason or "its result is missing"
    seen = Seen.SEEN if ending.reason and running else Seen.UNOBSERVABLE
    return TrialResult(trial, status, evidence=(Evidence("process", seen, said),), reason=said)


def result_from(trial: Trial, line: Mapping[str, Any]) -> TrialResult:
    """A result from its JSON; ValueError where that is none."""
    try:
        service = line["service"]
        return TrialResult(
            trial,
            Status(line["status"]),
            findings=tuple(Finding.from_json(f) for f in line["findings"]),
            evidence=tuple(Evidence.from_json(e) for e in line["evidence"]),
            service=None if service is None else Service(**service),
            metrics=dict(line["metrics"]),
            notes=tuple(str(note) for note in line["notes"]),
            who=str(line["who"]),
            tensors={str(k): str(v) for k, v in line["tensors"].items()},
            reason=str(line["reason"]),
            stopped=bool(line["stopped"]),
            seconds=float(line["seconds"]),
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(str(error)) from error


def _result(trial: Trial, line: Mapping[str, Any], ended: str) -> TrialResult:
    try:
        result = result_from(trial, line)
    except ValueError as error:
        said = f"the result cannot be read: {error}"
        return TrialResult(
            trial,
            Status.UNKNOWN,
            evidence=(Evidence("process", Seen.UNOBSERVABLE, said),),
            reason=said,
        )
    state = Seen.SEEN if ended else Seen.NONE
    process = Evidence("process", state, ended or "ended with its completion mark")
    evidence = (*result.evidence, process)
    if ended:  # a line of a file that is not whole may be the wrong one of two
        return TrialResult(
            trial,
            Status.UNKNOWN,
            findings=result.findings,
            evidence=evidence,
            reason=ended,
            seconds=result.seconds,
        )
    return replace(result, evidence=evidence)
