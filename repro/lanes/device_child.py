"""The process of one trial on a GPU. A fresh interpreter each, never forked, with no limit of
address space: the driver reserves more than any, and a context that a fault has poisoned goes with
the process.

It reads job.json and writes result.ndjson as the CPU lanes' child does, and the journal beside it.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import SpecreproError, UnsupportedError
from ..records import Evidence, Outcome, Place, Seen, Status, to_json
from ..sanitizer.journal import NAME, Writer
from .child import MARK, end_with_parent, line, told

if TYPE_CHECKING:
    from .machine_code import Kernels

SOURCE = "CUDA"
Load = Callable[[str], Any]  # of a scenario's module, by name


def main(arguments: list[str], load: Load | None = None, kernels: Kernels | None = None) -> int:
    """Run the one trial of the job in directory `arguments[0]`; 0 once it has its line.

    load: the scenario of a name, with its `run`; those of scenarios/ unless others are given.
    kernels: likewise, the kernel of an op for a target.
    """
    directory = Path(arguments[0])
    end_with_parent()
    job = json.loads((directory / "job.json").read_text(encoding="utf-8"))
    limit_files(int(job["largest_file"]))
    with (
        (directory / NAME).open("w", encoding="utf-8") as journal,
        (directory / "result.ndjson").open("w", encoding="utf-8") as out,
    ):
        result = play(job, job["trial"], Writer(journal), load, kernels)
        line(out, {"trial": 0, **result})
        line(out, {MARK: 1})
    if result["stopped"] and "torch" in sys.modules and not job["waiting"]:
        leave()
    return 0


def leave() -> NoReturn:
    """End at once. What torch takes down at the end lies in a context that a fault has poisoned,
    and an abort there would take back what this process has written. Not under compute-sanitizer,
    which reads how its target ends."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def play(
    job: Mapping[str, Any],
    trial: Mapping[str, Any],
    journal: Writer,
    load: Load | None = None,
    kernels: Kernels | None = None,
) -> dict[str, Any]:
    """One trial on device 0 of those that this process sees, as the JSON of its result."""
    from ..ops import Ops
    from ..scenarios import registry
    from .cuda_device import CudaDevice, NoGraphsError
    from .cuda_driver import FAULTS, CudaError, Driver
    from .machine_code import shipped
    from .triton_launch import TritonLaunches

    started = time.perf_counter()
    device: CudaDevice | None = None
    outcome: Outcome | None = None
    status, reason, seen, faulted = Status.ERROR, "", Seen.UNOBSERVABLE, False
    try:
        memory = int(trial["point"].get("device_gib", 80)) << 30
        kept = Path(job["kernels"])
        device = CudaDevice(
            Driver(),
            memory,
            journal,
            waiting=bool(job["waiting"]),
            blocking=job["lane"] == "blocking",
            placement=str(trial["point"].get("placement", "")),
            kernels=kernels or (lambda op, target: shipped(op, target, kept)),
            own=None if kernels else lambda: TritonLaunches(kept / "triton"),
        )
        scenario = (load or registry.load)(job["scenario"])
        outcome = scenario.run(Ops(device), trial["point"], trial["settings"], job["owners"])
        device.finish()
        status = Status.FAULT if outcome.findings else Status.CLEAN
        seen, said = Seen.NONE, "no call of the driver reported an error"
    except CudaError as error:
        outcome = None  # what was counted before the fault is not the trial's
        faulted = error.code in FAULTS
        status, seen = (Status.FAULT, Seen.SEEN) if faulted else (Status.UNKNOWN, seen)
        said = reason = f"{error}{_under_way(device)}"
    except NoGraphsError as error:
        status, said = Status.SKIPPED, str(error)
        reason = said
    except UnsupportedError as error:
        status, said = Status.UNKNOWN, str(error)
        reason = said
    except SpecreproError as error:
        status, said = Status.UNKNOWN, f"{error}" + (f" ({error.hint})" if error.hint else "")
        reason = said
    except Exception as error:
        said = reason = f"{type(error).__name__}: {error}"
        traceback.print_exc()
    said += f"; {how}" if device and (how := device.how()) else ""
    return {
        "status": str(status),
        "reason": reason,
        "stopped": faulted,
        "findings": to_json(outcome.findings if outcome else ()),
        "tensors": device.tensors if device else {},
        "evidence": to_json([Evidence(SOURCE, seen, said, _place(device) if faulted else None)]),
        **told(outcome),
        "seconds": round(time.perf_counter() - started, 4),
    }


def _under_way(device: Any) -> str:
    """The launches one of which is to blame: those that had not been waited for."""
    launches = device.under_way if device else []
    if not launches:
        return ""
    if len(launches) == 1:
        return f", in launch {launches[0].index} ({launches[0].op})"
    first, last = launches[0].index, launches[-1].index
    return f", in one of the launches {first} to {last}, which were not waited for one by one"


def _place(device: Any) -> Place:
    """The same as a place."""
    launches = device.under_way if device else []
    if not launches:
        return Place(pid=os.getpid())
    op = launches[0].op if len(launches) == 1 else None
    return Place((launches[0].index, launches[-1].index), op, pid=os.getpid())


def limit_files(largest: int) -> None:
    """Bound the files that this process writes, a GPU core dump among them, to `largest` bytes."""
    import resource
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write beyond it fails instead
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
