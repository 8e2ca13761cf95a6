"""The planted faults on a GPU: each in the lanes that see it, a process each, in what time there
is. What the driver itself shows is taken from the trials of lane `plain`."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import LaneError
from ..execution.cards import HELD, hold
from ..lanes.catalog import CATALOG
from ..lanes.gpu import choose, ill
from ..lanes.gpu_trial import Surroundings, play, usable
from ..lanes.process import Children
from ..records import Kind, Status, Trial, TrialResult
from ..sanitizer.tool import Tool
from ..watch.gpus import Gpu, gpus
from ..watch.watchers import LINGER
from .cells import XID, Cell, State, sees
from .device_cells import device_cell, xid_cell
from .faults import FAULTS, Fault

CHILD = "specrepro.repro.selftest.device_child"
# In this order, so that what is left out at the end is what others have shown already.
LANES = ("plain", "memcheck", "racecheck", "initcheck", "synccheck", "coredump", "blocking")
HANG = 10.0  # seconds of a child that must not end by itself
LEAST = 3.0  # seconds without which no child is started
NOT_ASKED = "it was not asked for"
Key = tuple[str, str]  # instrument, fault's name


@dataclass(frozen=True, slots=True)
class OnGpu:
    """device: a GPU as NVML counts, None: the first that may be used. force: although others
    compute there. timeout: seconds of a child. until: of time.monotonic, when all has to end.
    lanes: those that are asked for."""

    device: int | None
    force: bool
    timeout: float
    until: float
    lanes: Sequence[str] = LANES


@dataclass(slots=True)
class Looked:
    """cells: of what was planted. reasons: why an instrument was not run, by its name. gpu: the
    name of the one used, None where there was none."""

    cells: dict[Key, Cell] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    gpu: str | None = None


def plant(asked: OnGpu, children: Children, lines: Mapping[str, Sequence[int]]) -> Looked:
    """Plant what can be seen in every lane. lines: of planted.cu that are at fault, by fault."""
    looked = Looked()
    try:
        gpu, lock = _taken(asked)
    except (LaneError, OSError) as error:
        looked.reasons = dict.fromkeys((*LANES, XID), _said(error))
        return looked
    try:
        _plant(gpu, asked, children, lines, looked)
    finally:
        os.close(lock)
    return looked


def _taken(asked: OnGpu) -> tuple[Gpu, int]:
    """The GPU to use and the lock that keeps others of ours from it; LaneError, OSError."""
    gpu = choose(gpus(), asked.device, os.environ, asked.force)
    lock = hold(gpu)
    if lock is None:
        raise LaneError(f"GPU {gpu.index} is in use: {HELD}")
    return gpu, lock


def _plant(
    gpu: Gpu,
    asked: OnGpu,
    children: Children,
    lines: Mapping[str, Sequence[int]],
    looked: Looked,
) -> None:
    """The same on a GPU that is ours alone; `looked` grows."""
    looked.gpu = gpu.name or f"GPU {gpu.index}"
    with tempfile.TemporaryDirectory(prefix="specrepro-selftest-") as name:
        folder = Path(name)
        around = Surroundings(gpu, folder / "kernels", asked.timeout, children, module=CHILD)
        tools = _tools(asked.lanes, folder / "tool", looked.reasons)
        stopped = ""
        for number, (lane, fault) in enumerate(order(tools)):
            left = asked.until - time.monotonic()
            if stopped or left < LEAST or children.stopped:
                _left_out(looked, lane, fault, stopped)
                continue
            limit = min(asked.timeout, left, HANG if fault.kind is Kind.HANG else left)
            at = replace(around, timeout=limit, linger=LINGER if lane == "plain" else 0.0)
            result = _planted(fault, lane, at, tools[lane], folder / str(number), number)
            planted = fault.on_device()
            if result.status is Status.TIMEOUT and limit == left:
                _left_out(looked, lane, fault)  # it was not the child that took too long
                continue
            looked.cells[lane, fault.name] = device_cell(
                planted, lane, result, lines.get(fault.name, ())
            )
            if lane == "plain" and (cell := xid_cell(planted, result)) is not None:
                looked.cells[XID, fault.name] = cell
            if why := ill(gpu, gpus):
                stopped = f"stopped: after {fault.name} in lane {lane} {why}"


def order(tools: Mapping[str, Tool | None]) -> Iterator[tuple[str, Fault]]:
    """What is planted, lane by lane, the control first; the hang, which nothing may follow that
    matters, last and in one lane alone."""
    for lane in LANES:
        if lane in tools:
            for fault in FAULTS:
                if fault.kind is not Kind.HANG and (
                    fault.kind is None or sees(fault, CATALOG[lane])
                ):
                    yield lane, fault
    for fault in FAULTS:
        if fault.kind is Kind.HANG and "plain" in tools:
            yield "plain", fault


def _tools(lanes: Sequence[str], scratch: Path, reasons: dict[str, str]) -> dict[str, Tool | None]:
    """The lanes that can run, with the tool of each."""
    tools: dict[str, Tool | None] = {}
    for lane in LANES:
        if lane not in lanes:
            reasons[lane] = NOT_ASKED
            continue
        try:
            tools[lane] = usable(lane, os.environ, scratch)
        except LaneError as error:
            reasons[lane] = _said(error)
    if "plain" not in tools:
        reasons[XID] = reasons["plain"]
    return tools


def _planted(
    fault: Fault, lane: str, around: Surroundings, tool: Tool | None, folder: Path, number: int
) -> TrialResult:
    expected = Status.CLEAN if fault.kind is None else Status.FAULT
    trial = Trial("selftest", fault.name, lane, {}, expected)
    job = {"scenario": fault.name, "owners": {}, "settings": {}}
    return play(trial, job, folder, around, tool, number)


def _left_out(looked: Looked, lane: str, fault: Fault, stopped: str = "") -> None:
    """What was not planted because of time is no failure; because the GPU is ill it is one."""
    state = State.UNKNOWN if stopped else State.NOT_RUN
    why = stopped or "the time of the selftest was over"
    looked.cells[lane, fault.name] = Cell(lane, state, not stopped, why)


def _said(error: LaneError | OSError) -> str:
    hint = error.hint if isinstance(error, LaneError) else None
    return f"{error}" + (f" ({hint})" if hint else "")
