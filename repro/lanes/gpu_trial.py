"""One trial in a GPU lane, from the outside: start its process as the lane asks, watch the driver
meanwhile, and put together what process, tool, dump and driver say."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..coredump import Dump, progress, together
from ..coredump import environment as dump_environment
from ..cuda_gdb import files as dumps
from ..cuda_gdb import inspect, remove
from ..errors import LaneError
from ..records import Evidence, Place, Seen, Status, Trial, TrialResult
from ..sanitizer.journal import NAME as JOURNAL
from ..sanitizer.journal import Placed
from ..sanitizer.journal import read as read_journal
from ..sanitizer.options import CHECKS, Files, command, free_port
from ..sanitizer.reading import read as read_output
from ..sanitizer.tool import INSTALL, Tool, find
from ..sanitizer.weigh import Weighed, weigh
from ..watch.gpus import Gpu
from ..watch.incidents import Incident
from ..watch.watchers import LINGER, Watchers
from ..watch.watchers import Seen as Watched
from .process import Children, Ending, read_results, run_child

CHILD = "specrepro.repro.lanes.device_child"
LARGEST_FILE = 1 << 30  # bytes of one file of a trial: a core dump that is not light is cut
# Of torch, under compute-sanitizer: what it allocates for itself comes from the driver, piece by
# piece, and not by the virtual memory calls, of which the tool takes a segment for one allocation.
# c10/cuda/CUDAAllocatorConfig.h of torch 2.13.0 reads the second name, and the third without it.
NO_CACHING = {
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",
    "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:False",
    "PYTORCH_ALLOC_CONF": "expandable_segments:False",
}
PAGE = 4096  # bytes: the driver tells the page of a fault, not the byte
SHOWN = 3  # incidents that a line of evidence names


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the trials of a run share. kernels: folder of machine code compiled by earlier ones.
    keep: core dumps stay. module: the process of a trial. linger: seconds of watching behind one
    that did not come out clean, or go no further on purpose."""

    gpu: Gpu
    kernels: Path
    timeout: float
    children: Children
    keep: bool = False
    module: str = CHILD
    linger: float = LINGER


def usable(lane: str, environ: Mapping[str, str], scratch: Path) -> Tool | None:
    """The tool that a lane needs, None for one that needs none. LaneError says what is missing."""
    from importlib.util import find_spec

    try:
        bindings = find_spec("cuda.bindings")
    except ModuleNotFoundError:
        bindings = None
    if bindings is None:
        raise LaneError("cuda-bindings is not installed", hint=INSTALL)
    if lane not in CHECKS:
        return None
    scratch.mkdir(parents=True, exist_ok=True)
    return find(environ, scratch)


def play(
    trial: Trial,
    job: Mapping[str, Any],
    directory: Path,
    around: Surroundings,
    used: Tool | None = None,
    number: int = 0,
    told: Callable[[], None] | None = None,
) -> TrialResult:
    """Play one trial and say what was seen. job: `scenario`, `owners`, and the trial's `settings`.

    used: the tool of a sanitizer lane. number: of the trial, for a port of its own.
    """
    if directory.exists():
        shutil.rmtree(directory)
    directory.mkdir(parents=True)
    files = Files.of(directory)
    text = json.dumps(
        {
            "lane": trial.lane,
            "scenario": job["scenario"],
            "owners": job["owners"],
            "waiting": used is not None,
            "kernels": str(around.kernels),
            "largest_file": LARGEST_FILE,
            "trial": {"point": dict(trial.point), "settings": dict(job["settings"])},
        }
    )
    (directory / "job.json").write_text(text, encoding="utf-8")
    before: list[str] = []
    if used is not None:
        before = command(used, trial.lane, files, [], free_port(number))
    with Watchers(linger=0) as watchers:
        ending = run_child(
            directory,
            around.timeout,
            around.children,
            module=around.module,
            told=told,
            before=before,
            more=environment(trial.lane, around.gpu, directory),
        )
        own = ending if used is None else Ending("", ending.timed_out, ending.seconds)
        (result,) = read_results(directory, [trial], own)
        if result.status not in (Status.CLEAN, Status.SKIPPED):
            time.sleep(around.linger)
    if used is not None:
        said = weigh(
            trial.lane,
            used.version,
            read_output(files),
            read_journal(directory / JOURNAL),
        )
        result = with_tool(result, said, ending)
    if trial.lane == "coredump":
        result = with_dump(result, *_dumped(directory))
        if not around.keep:
            remove(directory)
    placed = read_journal(directory / JOURNAL).placed
    driver = xids(watchers.seen(), around.gpu, placed)
    return replace(result, evidence=(*result.evidence, *driver))


def environment(lane: str, gpu: Gpu, directory: Path) -> dict[str, str]:
    """The variables of a lane's process. Of the caller's none that changes CUDA comes through."""
    words = {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": gpu.uuid or str(gpu.index),
    }
    words |= {n: os.environ[n] for n in ("CUDA_HOME", "CUDA_PATH") if n in os.environ}
    if lane == "blocking":
        words["CUDA_LAUNCH_BLOCKING"] = "1"
    if lane in CHECKS:
        words |= NO_CACHING
    if lane == "coredump":
        words |= dump_environment(directory)
    return words


def with_tool(result: TrialResult, said: Weighed, ending: Ending) -> TrialResult:
    """A trial's result with what compute-sanitizer says of it. Pure.

    The tool's word on accesses, the process's own on what came out; where one of them cannot be
    relied upon, the trial is unknown.
    """
    evidence = (*result.evidence, said.evidence)
    findings = (*said.findings, *result.findings)
    status, reason = said.status, said.reason
    if ending.timed_out:
        status, reason = Status.TIMEOUT, ending.reason
    elif result.status is Status.SKIPPED and said.status is not Status.FAULT:
        status, reason = result.status, result.reason  # the process went no further on purpose
    elif said.status is Status.CLEAN:
        status, reason = result.status, result.reason
        if result.stopped:  # the device faulted, and the tool says nothing of it
            status, reason = Status.UNKNOWN, f"the tool found nothing, but {result.reason}"
    elif said.status is Status.UNKNOWN and result.status in (Status.UNKNOWN, Status.ERROR):
        reason = f"{result.reason}; {said.reason}"
    return replace(
        result,
        status=status,
        findings=findings,
        evidence=evidence,
        reason=reason,
        stopped=said.stopped or result.stopped,
    )


def with_dump(result: TrialResult, dump: Dump | None, note: str) -> TrialResult:
    """A trial's result with what its core dump says. Pure. note: what it does not say, or ""."""
    source = "core dump"
    if dump is None:
        state = Seen.NONE if result.status is Status.CLEAN else Seen.UNOBSERVABLE
        said = note or "no exception was reported"
        return replace(result, evidence=(*result.evidence, Evidence(source, state, said)))
    words = [dump.exception or "an exception"]
    words += [f"kernel {dump.kernel}"] if dump.kernel else []
    words += [f"block {dump.block}, thread {dump.thread}"] if dump.block and dump.thread else []
    words += [f"{dump.file}:{dump.file_line}"] if dump.file and dump.file_line else []
    words += [note] if note else []
    kernel = re.match(r"\w+", dump.kernel or "")  # without arguments or the shape of a launch
    place = Place(op=kernel[0] if kernel else None)
    evidence = Evidence(source, Seen.SEEN, " · ".join(words), place)
    return replace(
        result,
        status=Status.FAULT,  # the driver ends the process when it has written the dump
        evidence=(*result.evidence, evidence),
        reason="",
        stopped=True,
    )


def _dumped(directory: Path) -> tuple[Dump | None, str]:
    try:
        with (directory / "stderr").open("rb") as file:
            lines = file.read(4 << 20).decode(errors="replace").splitlines()
    except OSError as error:
        return None, f"what the driver printed cannot be read ({error.strerror})"
    told = progress(lines)
    kept = dumps(directory)
    if not kept:
        return (told[0], "no dump was written") if told else (None, "")
    said = inspect(kept[0], os.environ)
    return together(told[0] if told else Dump(), said.dump), said.complaint


def xids(seen: Watched, gpu: Gpu, placed: Sequence[Placed] = ()) -> list[Evidence]:
    """What NVML and the kernel log showed of this GPU meanwhile, a line of evidence each source.

    placed: the tensors of the trial, in whose ranges an address is looked for.
    """
    mine = [i for i in seen.incidents if i.bus is None or gpu.bus is None or i.bus == gpu.bus]
    found = []
    for watched in seen.watched:
        codes = [i for i in mine if watched.source in i.sources]
        source = f"Xid by {watched.source}"
        if codes:
            said = ", ".join(f"Xid {_code(i)}" for i in codes[:SHOWN])
            said += f" and {len(codes) - SHOWN} more" if len(codes) > SHOWN else ""
            place = _place(codes[0], watched.source, placed)
            found.append(Evidence(source, Seen.SEEN, said, place))
        elif watched.observable:
            found.append(Evidence(source, Seen.NONE, "no Xid"))
        else:
            found.append(Evidence(source, Seen.UNOBSERVABLE, watched.reason))
    return found


def _code(incident: Incident) -> str:
    """The code; of one that no program brings about, that it is of the hardware."""
    row = incident.entry
    hardware = row is not None and row.kind == "hardware"
    return f"{incident.first.code} (hardware)" if hardware else str(incident.first.code)


def _place(incident: Incident, source: str, placed: Sequence[Placed]) -> Place:
    """Where the first event of a source says the fault is: in whose range the page lies that it
    names by its address."""
    event = next(one for one in incident.events if one.source == source)
    xid = event.xid
    if xid is None or xid.address is None:
        return Place(pid=xid.pid if xid else None)
    address = int(xid.address, 16)
    last = address + PAGE - 1
    held = {one.name: None for one in placed if one.reach[0] <= last and address <= one.reach[1]}
    access = next((word for word in ("read", "write") if word in (xid.access or "").lower()), None)
    return Place(tensors=tuple(held), access=access, pid=xid.pid)
