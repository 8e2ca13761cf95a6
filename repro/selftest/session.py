"""Plant every fault, look with every instrument that can run here, and say which saw which."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..emulation.argument_file import load_arguments
from ..emulation.parent import Request, emulate_file
from ..errors import KernelError, SpecreproError, UsageError
from ..escape import quoted
from ..lanes.catalog import CATALOG
from ..lanes.process import Children, run_child
from ..records import Finding, Kind
from .cells import INSTRUMENTS, Cell, Observed, State, all_seen, cell, cell_without_run, runs
from .device import LANES, NOT_ASKED, Looked, OnGpu, plant
from .faults import FAULTS, KERNELS, THREADS, Fault, marks

SCHEMA = "specrepro/selftest@1"
CHILD = "specrepro.repro.selftest.child"
TIMEOUT = 60.0  # seconds of one child
HANG = 10.0  # seconds of a child that must not end by itself
WITHIN = 115.0  # seconds of all of it, where a GPU is used
MEMORY_LIMIT = 4 << 30  # bytes of address space of a child
LONGEST_RESULT = 1 << 20  # bytes
REFERENCE, EMULATOR = "reference", "emulator"


@dataclass(frozen=True, slots=True)
class Asked:
    """timeout: seconds of a child. lanes: all if empty. device, force: as the lanes of `run` take
    them. within: seconds of all of it, where a GPU is used."""

    timeout: float = TIMEOUT
    lanes: tuple[str, ...] = ()
    device: int | None = None
    force: bool = False
    within: float = WITHIN


def selftest(version: str, no_device: str, asked: Asked) -> dict[str, Any]:
    """The record (`specrepro/selftest@1`). no_device: why there is no GPU here, "" where there is
    one. UsageError for a lane that is none.
    """
    started = time.monotonic()
    wanted = _wanted(asked.lanes)
    children = Children()
    looked = Looked(reasons=dict.fromkeys(INSTRUMENTS, no_device))
    try:
        lines = marks()
        seen = _look([name for name in (REFERENCE, EMULATOR) if name in wanted], asked, children)
        device_lanes = [name for name in LANES if name in wanted]
        if not no_device and device_lanes:
            on = OnGpu(
                asked.device, asked.force, asked.timeout, started + asked.within, device_lanes
            )
            looked = _interruptible(on, children, lines)
    except KernelError as error:
        lines, seen = {}, _unlooked(str(error))
        looked.reasons = looked.reasons | dict.fromkeys(INSTRUMENTS, str(error))
    looked.reasons |= {name: NOT_ASKED for name in CATALOG if name not in wanted}
    rows = [(fault, _cells(fault, seen, looked, lines)) for fault in FAULTS]
    ran = {name for name, _ in seen}
    ran |= {name for (name, _), one in looked.cells.items() if one.state is not State.NOT_RUN}
    return {
        "schema": SCHEMA,
        "version": version,
        "ok": all_seen(rows, some=bool(asked.lanes)),
        "seconds": round(time.monotonic() - started, 1),
        "gpu": looked.gpu,
        "instruments": [
            {"name": name, "ran": name in ran, "reason": "" if name in ran else _why(name, looked)}
            for name in INSTRUMENTS
        ],
        "faults": [
            {
                "name": fault.name,
                "about": fault.about,
                "kind": None if fault.kind is None else str(fault.kind),
                "cells": [{**asdict(one), "state": str(one.state)} for one in cells],
            }
            for fault, cells in rows
        ],
    }


def _wanted(lanes: Sequence[str]) -> Sequence[str]:
    for name in lanes:
        if name not in CATALOG:
            raise UsageError(f"no lane {quoted(name)}", hint=f"there is {', '.join(CATALOG)}")
    return lanes or tuple(CATALOG)


def _interruptible(
    asked: OnGpu, children: Children, lines: Mapping[str, tuple[int, ...]]
) -> Looked:
    try:
        return plant(asked, children, lines)
    except KeyboardInterrupt:
        children.stop()
        raise


def _why(name: str, looked: Looked) -> str:
    """Why an instrument was not run at all."""
    if name in looked.reasons:
        return looked.reasons[name]
    told = [one.detail for (mine, _), one in looked.cells.items() if mine == name and one.detail]
    return told[0] if told else "nothing was planted for it"


def _cells(
    fault: Fault,
    seen: Mapping[tuple[str, str], Observed],
    looked: Looked,
    lines: Mapping[str, tuple[int, ...]],
) -> list[Cell]:
    found = []
    for name in INSTRUMENTS:
        if (name, fault.name) in seen:
            one = cell(fault, name, seen[name, fault.name], lines.get(fault.name, ()))
        elif (name, fault.name) in looked.cells:
            one = looked.cells[name, fault.name]
        else:
            one = cell_without_run(fault, name, _why(name, looked))
        found.append(one)
    return found


def _look(
    wanted: Sequence[str], asked: Asked, children: Children
) -> dict[tuple[str, str], Observed]:
    """What each instrument that needs no GPU made of each fault, by their names."""
    timeout = asked.timeout
    mine = {name: [f for f in FAULTS if runs(f, name)] for name in wanted}
    # the one that takes longest first
    emulated = sorted(mine.get(EMULATOR, ()), key=lambda fault: fault.kind is not Kind.HANG)
    referred = mine.get(REFERENCE, [])
    # one worker more than there are cores: the hang keeps one waiting
    with ThreadPoolExecutor(1 + (os.cpu_count() or 1)) as pool:
        futures = {f.name: pool.submit(_emulated, f, children, timeout) for f in emulated}
        reference = pool.submit(_referred, referred, children, timeout)
        try:
            seen = {(EMULATOR, name): future.result() for name, future in futures.items()}
            seen |= {(REFERENCE, name): one for name, one in reference.result().items()}
        except KeyboardInterrupt:
            children.stop()
            raise
    return seen


def _unlooked(reason: str) -> dict[tuple[str, str], Observed]:
    """The same where nothing could be planted."""
    return {
        (name, fault.name): Observed(reason=reason)
        for name in (REFERENCE, EMULATOR)
        for fault in FAULTS
        if runs(fault, name)
    }


def _emulated(fault: Fault, children: Children, timeout: float) -> Observed:
    """The kernel of a fault in the emulator, by the job of `specrepro emulate`."""
    started = time.monotonic()
    limit = min(HANG, timeout) if fault.kind is Kind.HANG else timeout
    try:
        arguments, text = load_arguments(fault.arguments)
        request = Request(
            KERNELS,
            fault.name,
            grid=(1, 1, 1),
            block=(THREADS, 1, 1),
            shared=0,
            warps=None,
            arguments=arguments,
            text=text,
            timeout=limit,
            memory=MEMORY_LIMIT,
        )
        record = emulate_file(request, children).record
    except SpecreproError as error:
        return Observed(reason=str(error), seconds=_since(started))
    reason = str(record["unsupported"]["message"]) if record["unsupported"] else ""
    reason = reason.removeprefix("the process executing it: ")  # the cell says whose it is
    if not reason and record["unchecked"]:
        reason = f"not checked: {', '.join(record['unchecked'])}"
    found = tuple(Finding.from_json(one) for one in record["findings"])
    return Observed(found, len(record["warnings"]), reason, _since(started))


def _referred(faults: Sequence[Fault], children: Children, timeout: float) -> dict[str, Observed]:
    """The faults in the reference lane, all of them in one child."""
    if not faults:
        return {}
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="specrepro-selftest-") as name:
        directory = Path(name)
        job = {"memory_limit": MEMORY_LIMIT, "faults": [fault.name for fault in faults]}
        (directory / "job.json").write_text(json.dumps(job), encoding="utf-8")
        ending = run_child(directory, timeout, children, module=CHILD)
        seconds = _since(started)
        if ending.reason:
            return {f.name: Observed(reason=ending.reason, seconds=seconds) for f in faults}
        return {f.name: _read(directory / "result.json", f, seconds) for f in faults}


def _read(path: Path, fault: Fault, seconds: float) -> Observed:
    """What the child says of one fault; anything but findings is unknown."""
    try:
        if path.stat().st_size > LONGEST_RESULT:
            return Observed(reason="its process left too much", seconds=seconds)
        told = json.loads(path.read_bytes())[fault.name]
        found = tuple(Finding.from_json(one) for one in told)
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        reason = f"its process left no findings: {type(error).__name__}"
        return Observed(reason=reason, seconds=seconds)
    return Observed(found, seconds=seconds)


def _since(started: float) -> float:
    return round(time.monotonic() - started, 2)
