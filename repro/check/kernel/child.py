"""The process in which compiled kernels are launched: reads a job, writes one line a probe.

No code of a build runs here: PTX is parsed and emulated. It can be endless, or ask for much, so
this is a process with limits, and each probe has its own time.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from ...errors import SpecreproError
from ...lanes.child import end_with_parent, limit_memory
from .bench import EmulatorBench, Machine
from .probe import UnclearError
from .probes import load

MOST_FINDINGS = 40  # of a probe
DETAIL = 600


class OutOfTimeError(BaseException):
    """A probe took longer than it may. Not an Exception, so that nothing takes it for one."""


def main(arguments: list[str]) -> int:
    """Run the probes of the job in directory `arguments[0]`; result.ndjson grows line by line."""
    directory = Path(arguments[0])
    end_with_parent()
    job = json.loads((directory / "job.json").read_text(encoding="utf-8"))
    limit_memory(int(job["memory_limit"]))
    signal.signal(signal.SIGALRM, _out_of_time)
    with (directory / "result.ndjson").open("w", encoding="utf-8") as out:
        for asked in job["probes"]:
            said = _said(asked, float(job["probe_seconds"]))
            out.write(json.dumps({"probe": asked["id"], **said}) + "\n")
            out.flush()
        out.write(json.dumps({"done": len(job["probes"])}) + "\n")
    return 0


def _said(asked: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return _answer(asked)
    except OutOfTimeError:
        return {"unknown": f"the kernel did not end within {seconds:g} s in the emulator"}
    except UnclearError as error:
        return {"unknown": f"it does what the probe does not know: {error}"[:DETAIL]}
    except SpecreproError as error:
        return {"unknown": f"the emulator: {error}"[:DETAIL]}
    except MemoryError:
        return {"unknown": "the memory limit was reached"}
    except Exception as error:
        # PTX of a build may be anything: what the emulator trips over is not known, never clean
        return {"unknown": f"the emulator: {type(error).__name__}: {error}"[:DETAIL]}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _answer(asked: Mapping[str, Any]) -> dict[str, Any]:
    probe = load(asked["id"])
    machine = Machine(
        asked["ptx"],
        asked["entry"],
        32 * int(asked["warps"]),
        int(asked["shared"]),
        tuple(asked["order"]),
        tuple((str(file), int(line)) for file, line in asked["places"]),
    )
    outcome = probe.run(EmulatorBench(probe.subject, machine))
    return {
        "value": outcome.value,
        "detail": outcome.detail[:DETAIL],
        "findings": [dict(one) for one in outcome.findings[:MOST_FINDINGS]],
        "more": max(0, len(outcome.findings) - MOST_FINDINGS),
    }


def _out_of_time(_signal: int, _frame: FrameType | None) -> None:
    raise OutOfTimeError


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
