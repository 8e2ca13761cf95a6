"""The parent's side of the process in which kernels are launched: compiled kernels in, what the
probes saw out. What the process says is checked for its form before it is believed."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...lanes.process import Children, run_child
from ...records import Finding, to_json
from .compiler import Compiled
from .lifted import Lifted
from .probe import KernelProbe
from .subject import Binding

CHILD = "specrepro.repro.check.kernel.child"
MEMORY_LIMIT = 2 << 30  # bytes of address space
PROBE_SECONDS = 20.0
LONGEST = 16 << 20  # bytes of all answers


@dataclass(frozen=True, slots=True)
class Ready:
    """A probe with the kernel it is to launch."""

    probe: KernelProbe
    lifted: Lifted
    binding: Binding
    compiled: Compiled


@dataclass(frozen=True, slots=True)
class Saw:
    """What a probe saw. value: None for unknown, with the reason in `detail`. more: findings that
    were left out."""

    value: str | None
    detail: str
    findings: tuple[Mapping[str, Any], ...] = ()
    more: int = 0


def launched(ready: Sequence[Ready], seconds: float) -> dict[str, Saw]:
    """Run probes on their kernels in one process; by probe. `seconds` is for all of them."""
    if not ready:
        return {}
    with tempfile.TemporaryDirectory(prefix="specrepro-launch-") as name:
        folder = Path(name)
        job = {
            "probes": [_job(one) for one in ready],
            "probe_seconds": min(PROBE_SECONDS, seconds / 2),
            "memory_limit": MEMORY_LIMIT,
        }
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        ending = run_child(folder, seconds, Children(), module=CHILD)
        answers, ended = _answers(folder / "result.ndjson")
        why = ending.reason or ("" if ended else "it ended before its last answer")
        if why:
            said = (folder / "stderr").read_text(encoding="utf-8", errors="replace").strip()
            why = f"the process that launches it: {why}" + (f": {said[-200:]}" if said else "")
    return {one.probe.id: _saw(one.probe, answers.get(one.probe.id), why) for one in ready}


def _job(one: Ready) -> dict[str, Any]:
    return {
        "id": one.probe.id,
        "ptx": one.compiled.ptx,
        "entry": one.compiled.entry,
        "warps": one.compiled.warps,
        "shared": one.compiled.shared,
        "order": list(one.binding.order),
        "places": [list(place) for place in one.lifted.places],
    }


def _answers(path: Path) -> tuple[dict[str, Mapping[str, Any]], bool]:
    """(answers by probe, whether the last line is there)."""
    found: dict[str, Mapping[str, Any]] = {}
    if not path.is_file() or path.stat().st_size > LONGEST:
        return found, False
    done = False
    for raw in path.read_bytes().split(b"\n")[:-1]:
        try:
            line = json.loads(raw)
        except ValueError:
            return found, False
        if "done" in line:
            done = True
        else:
            found[str(line["probe"])] = line
    return found, done


def _saw(probe: KernelProbe, said: Mapping[str, Any] | None, why: str) -> Saw:
    if said is None:
        return Saw(None, why or "it was not answered")
    if "unknown" in said:
        return Saw(None, str(said["unknown"]))
    value = said.get("value")
    if value not in probe.values:
        return Saw(None, f"{str(value)[:80]!r} is no answer to it")
    try:
        found = tuple(to_json(Finding.from_json(one)) for one in said["findings"])
        return Saw(str(value), str(said["detail"]), found, int(said["more"]))
    except (KeyError, TypeError, ValueError) as error:
        return Saw(None, f"its findings are none: {error}")
