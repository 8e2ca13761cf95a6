"""The process a lane runs in: reads a job, plays its trials, writes a result line each.

The last line is the completion mark. Whatever ends the process before that leaves the file without
it, and the trials without a line stay unknown. Nothing here is trusted by the parent beyond JSON.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from ..errors import SpecreproError, UnsupportedError
from ..records import Evidence, Finding, Outcome, Seen, Status, to_json

MARK = "complete"
OWNED = "ownership"  # told apart, with whose it is


def main(arguments: list[str]) -> int:
    """Run the job in directory `arguments[0]`; 0 once every trial has its line."""
    directory = Path(arguments[0])
    end_with_parent()
    job = json.loads((directory / "job.json").read_text(encoding="utf-8"))
    limit_memory(int(job["memory_limit"]))
    with (directory / "result.ndjson").open("w", encoding="utf-8") as out:
        for number, trial in enumerate(job["trials"]):
            line(out, {"trial": number, **play(job, trial)})
        line(out, {MARK: len(job["trials"])})
    return 0


def play(job: Mapping[str, Any], trial: Mapping[str, Any]) -> dict[str, Any]:
    """One trial on the job's lane, as the JSON of its result."""
    from ..ops import Ops, StoppedError
    from ..scenarios import registry

    if trial.get("left_to"):
        return _left(str(trial["left_to"]))
    started = time.perf_counter()
    status, reason, outcome, stopped = Status.ERROR, "", None, False
    device = _device(job, trial)
    try:
        scenario = registry.load(job["scenario"])
        outcome = scenario.run(Ops(device), trial["point"], trial["settings"], job["owners"])
        status = Status.FAULT if device.findings or outcome.findings else Status.CLEAN
    except UnsupportedError as error:
        status, reason = Status.UNKNOWN, str(error)
    except SpecreproError as error:
        status, reason = Status.UNKNOWN, f"{error}" + (f" ({error.hint})" if error.hint else "")
    except MemoryError:
        status, reason = Status.UNKNOWN, "the lane's memory limit was reached"
    except StoppedError:
        status, reason, stopped = Status.FAULT, "stopped at the first finding, as asked", True
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        traceback.print_exc()
    findings = [*device.findings, *(outcome.findings if outcome else ())]
    return {
        "status": str(status),
        "reason": reason,
        "stopped": stopped,
        "findings": to_json(findings),
        "tensors": device.tensors,
        "evidence": to_json(_evidence(job, findings)),
        **told(outcome),
        "seconds": round(time.perf_counter() - started, 4),
    }


def _left(reason: str) -> dict[str, Any]:
    """The result of a trial that the plan leaves to another lane."""
    return {
        "status": str(Status.SKIPPED),
        "reason": reason,
        "stopped": False,
        "findings": [],
        "tensors": {},
        "evidence": [],
        **told(None),
        "seconds": 0.0,
    }


def told(outcome: Outcome | None) -> dict[str, Any]:
    """What a scenario said of a trial, as part of its result; empty where it did not end."""
    if outcome is None:
        return {"service": None, "metrics": {}, "notes": [], "who": ""}
    return {
        "service": to_json(outcome.service),
        "metrics": to_json(outcome.metrics),
        "notes": list(outcome.notes),
        "who": outcome.who,
    }


def _evidence(job: Mapping[str, Any], findings: list[Finding]) -> list[Evidence]:
    owned = ", ".join(f"{tensor} by {unit}" for tensor, unit in sorted(job["owners"].items()))
    checks = "bounds"
    if job["lane"] == "emulator":
        from .emulator import CHECKS

        checks = ", ".join([checks, *(one.replace("_", " ") for one in sorted(CHECKS - {OWNED}))])
    checks += f", ownership of {owned}" if owned else ", no ownership declared"
    return [Evidence("access checks", Seen.SEEN if findings else Seen.NONE, checks)]


def _device(job: Mapping[str, Any], trial: Mapping[str, Any]) -> Any:
    memory = int(trial["point"].get("device_gib", 80)) << 30
    if job["lane"] == "reference":
        from .reference import ReferenceDevice

        return ReferenceDevice(memory)
    from .emulator import EmulatorDevice

    return EmulatorDevice(memory, stop_at_first=bool(job["stop_at_first"]))


def end_with_parent() -> None:
    """On Linux, have the kernel end this process when the one that started it is gone.

    The child has a process group of its own, so nothing else ends it when specrepro is killed.
    """
    if sys.platform != "linux":
        return
    import ctypes
    import os
    import signal

    parent_death_signal = 1  # PR_SET_PDEATHSIG of linux/prctl.h
    ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == 1:  # it went before the kernel was told
        os.kill(os.getpid(), signal.SIGKILL)


def limit_memory(size: int) -> None:
    """Bound the address space of this process to `size` bytes; no core dumps."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def line(out: TextIO, record: Mapping[str, Any]) -> None:
    """Write one line of a result file, at once."""
    out.write(json.dumps(record) + "\n")
    out.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
