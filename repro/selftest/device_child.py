"""The process of a planted fault on a GPU: that of the GPU lanes, with another scenario and other
kernels. Memory, launches, journal and result are theirs, so what is seen here is what they see."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compiled import CompiledKernel, Manifest, Parameter, sha256_of_source
from ..lanes import device_child
from ..ops import Argument, Launch
from ..records import Finding, Kind, Outcome, Service
from .faults import KERNELS, SOURCE, THREADS

SHIFT = 2  # bytes by which a read is misaligned


@dataclass(frozen=True, slots=True)
class Given:
    """What a kernel's parameter gets: the contents of a buffer, or a number. written: False leaves
    the buffer's memory as it is."""

    name: str
    type: str
    value: NDArray[np.int32] | int
    written: bool = True


def calls() -> dict[str, tuple[Given, ...]]:
    """The parameters by kernel. As the argument file of each says, but that a far access is at the
    first byte behind its buffer (`Fault.on_device`)."""
    out = Given("out", "*i32", np.zeros(THREADS, np.int32))
    read = Given("in", "*i32", np.arange(THREADS, dtype=np.int32))
    one_more = Given("in", "*i32", np.arange(THREADS + 1, dtype=np.int32))
    past = Given("distance", "i64", THREADS)
    return {
        "clean": (out, read, _flag(1), Given("limit", "i32", THREADS)),
        "far_write": (out, past),
        "far_read": (out, read, past),
        "misaligned": (out, one_more, Given("shift", "i64", SHIFT)),
        "unwritten_read": (out, Given("in", "*i32", np.zeros(THREADS, np.int32), written=False)),
        "shared_bounds": (out, Given("shift", "i32", THREADS // 2)),
        "shared_race": (out, read),
        "barrier": (out,),
        "assertion": (out, Given("limit", "i32", THREADS - 1)),
        "hang": (out, _flag(0)),
    }


@dataclass(frozen=True, slots=True)
class Planted:
    """A planted fault as the lanes' process plays a scenario."""

    name: str

    def run(self, ops: Any, point: Any, settings: Any, owners: Any) -> Outcome:
        """Launch its kernel once. What the control computes is looked at."""
        device = ops.device
        given = calls()[self.name]
        arguments: dict[str, Argument] = {
            one.name: one.value
            if isinstance(one.value, int)
            else device.tensor(one.name, one.value, written=one.written)
            for one in given
        }
        device.launch(Launch(0, self.name, arguments, (1, 1, 1), None, None))
        wrong = _wrong(device.read(arguments["out"])) if self.name == "clean" else ()
        return Outcome(Service(True, True, 0, 0, speculated=False), findings=wrong)


def shipped(name: str, target: str) -> CompiledKernel:
    """A planted kernel as its shipped PTX, to be compiled for a target by the driver."""
    manifest = Manifest(
        op=name,
        language="cuda",
        source=SOURCE.name,
        source_sha256=sha256_of_source(SOURCE.read_bytes()),
        compiler="nvrtc",
        compiler_version="",
        target=target,
        entry=name,
        threads=(THREADS, 1, 1),
        shared_bytes=0,
        parameters=tuple(Parameter(one.name, one.type) for one in calls()[name]),
    )
    return CompiledKernel(manifest, KERNELS.read_text("utf-8"), shipped=True)


def kernel(name: str, target: str, kept: Path) -> CompiledKernel:
    """A planted kernel for a target: machine code where NVRTC is installed, else the shipped PTX.

    kept: a file for the machine code, for the next process of the same selftest.
    """
    found = shipped(name, target)
    cubin = _machine_code(target, kept)
    return found if cubin is None else replace(found, shipped=False, cubin=cubin)


def _machine_code(target: str, kept: Path) -> bytes | None:
    from ..compilation import CompilerMissingError, nvrtc

    if kept.is_file():
        return kept.read_bytes()
    try:
        made = nvrtc(SOURCE.read_bytes(), SOURCE.name, target=target, machine_code=True).cubin
    except CompilerMissingError:
        return None
    if made is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(".part")
        part.write_bytes(made)
        os.replace(part, kept)
    return made


def _flag(value: int) -> Given:
    return Given("flag", "*i32", np.full(1, value, np.int32))


def _wrong(out: NDArray[Any]) -> tuple[Finding, ...]:
    """The elements in which the control came out otherwise than it must: reversed."""
    wrong = np.flatnonzero(out != np.arange(THREADS, dtype=np.int32)[::-1])
    if not wrong.size:
        return ()
    first, last = int(wrong[0]), int(wrong[-1])
    return (Finding(Kind.WRONG_VALUE, tensor="out", elements=(first, last), count=wrong.size),)


def main(arguments: Sequence[str]) -> int:
    """Plant the fault that the job in directory `arguments[0]` names; 0 once it has its line."""
    job = json.loads((Path(arguments[0]) / "job.json").read_text(encoding="utf-8"))
    kept = Path(job["kernels"])
    return device_child.main(
        list(arguments),
        load=Planted,
        kernels=lambda name, target: kernel(name, target, kept / f"planted-{target}.cubin"),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
