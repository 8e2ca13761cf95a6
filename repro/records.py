"""The records that flow from plan to report. Frozen, standard library only.

`to_json` turns any of them into plain JSON values; the `from_json` class methods read back what a
lane or a run directory holds and raise ValueError on anything that is not such a record.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

# A parameter value of a case: what YAML scalars can be.
Scalar = bool | int | float | str

# Ways to execute a variant; the first two need no device.
LANES = (
    "reference",
    "emulator",
    "plain",
    "blocking",
    "memcheck",
    "racecheck",
    "initcheck",
    "synccheck",
    "coredump",
)


class Kind(StrEnum):
    """Kinds of finding (docs/lanes.md says which lane can see and locate which)."""

    OUT_OF_BOUNDS_READ = "out_of_bounds_read"
    OUT_OF_BOUNDS_WRITE = "out_of_bounds_write"
    MISALIGNED_ACCESS = "misaligned_access"
    FOREIGN_READ = "foreign_read"
    FOREIGN_WRITE = "foreign_write"
    UNINITIALISED_READ = "uninitialised_read"
    SHARED_OUT_OF_BOUNDS = "shared_out_of_bounds"
    SHARED_RACE = "shared_race"
    DIVERGENT_BARRIER = "divergent_barrier"
    TRAP = "trap"
    WRONG_VALUE = "wrong_value"
    ACCEPTANCE_LOSS = "acceptance_loss"
    OVERSIZED_ALLOCATION = "oversized_allocation"
    HANG = "hang"


class Status(StrEnum):
    """What became of one trial."""

    FAULT = "fault"
    CLEAN = "clean"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"
    ERROR = "error"
    TIMEOUT = "timeout"


class Seen(StrEnum):
    """State of one source of evidence."""

    SEEN = "seen"
    NONE = "none while observable"
    UNOBSERVABLE = "unobservable"


class Cause(StrEnum):
    """How far the cause of the upstream report is settled."""

    CONFIRMED = "confirmed"
    CONTESTED = "contested"
    UNKNOWN = "unknown"


class RunVerdict(StrEnum):
    """Verdict of `run` over one case."""

    REPRODUCED = "REPRODUCED"
    NOT_REPRODUCED = "NOT REPRODUCED"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True, slots=True)
class Source:
    """A line of a kernel or scenario. `file` is relative to the package root."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One located wrong access or wrong value: kind x launch x source line x tensor x range.

    `launch` counts the launches of a trial from 0, -1 where no launch is to blame. `elements` are
    the first and last flat element of `tensor`, negative before its start. `bytes_past_end` is the
    distance of the first wrong byte from the first byte past the end, `width` the bytes of one
    access. `block`, `thread` and `threads` (how many took part) are a lane's own detail and no part
    of agreement between lanes.
    """

    kind: Kind
    launch: int = -1
    op: str | None = None
    tensor: str | None = None
    elements: tuple[int, int] | None = None
    count: int | None = None
    bytes_past_end: int | None = None
    width: int | None = None
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    threads: int | None = None
    source: Source | None = None
    request: int | None = None
    step: int | None = None
    lands_in: str | None = None
    expected: Scalar | None = None
    got: Scalar | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Finding:
        """Read what `to_json` wrote; ValueError on anything else."""
        values = dict(data)
        known = {f.name for f in dataclasses.fields(cls)}
        if not values.keys() <= known:
            raise ValueError(f"not a finding: unknown keys {sorted(values.keys() - known)}")
        try:
            values["kind"] = Kind(values["kind"])
            for key, length in (("elements", 2), ("block", 3), ("thread", 3)):
                if values.get(key) is not None:
                    numbers = tuple(int(n) for n in values[key])
                    if len(numbers) != length:
                        raise ValueError(f"not a finding: {key} has {len(numbers)} numbers")
                    values[key] = numbers
            if values.get("source") is not None:
                values["source"] = Source(
                    str(values["source"]["file"]), int(values["source"]["line"])
                )
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a finding: {error!r}") from error
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the closed form of a scenario says must be found, from the parameters alone.

    The findings of this kind, op and tensor (and of `request`, if it is named) cover exactly
    `elements`, all predictions of the key together; None: anything. at_least: they begin there and
    may go on, because how far depends on tokens.
    """

    kind: Kind
    op: str
    tensor: str
    elements: tuple[int, int] | None = None
    request: int | None = None
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a source says a fault is; None and () for what it cannot say.

    launches: first and last of those of which one is to blame. op: of the kernel. tensors: in whose
    range of addresses. access: "read" or "write". pid: of the process as the source sees it, which
    for the driver is that of the host.
    """

    launches: tuple[int, int] | None = None
    op: str | None = None
    tensors: tuple[str, ...] = ()
    access: str | None = None
    pid: int | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Place:
        """Read what `to_json` wrote; KeyError, TypeError or ValueError on anything else."""
        launches, op, access, pid = (data[k] for k in ("launches", "op", "access", "pid"))
        if launches is not None:
            first, last = launches
            launches = int(first), int(last)
        return cls(
            launches,
            None if op is None else str(op),
            tuple(str(one) for one in data["tensors"]),
            None if access is None else str(access),
            None if pid is None else int(pid),
        )


# Source of the evidence that a GPU was not well behind a trial: a fault that nothing located there
# may be the loss of the GPU itself.
AFTERWARDS = "GPU afterwards"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one source (a lane's checks, a process's end, NVML...) showed. place: of a fault, as far
    as the source tells."""

    source: str
    state: Seen
    detail: str = ""
    place: Place | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Evidence:
        """Read what `to_json` wrote; ValueError on anything else."""
        try:
            told = data.get("place")
            place = None if told is None else Place.from_json(told)
            return cls(str(data["source"]), Seen(data["state"]), str(data["detail"]), place)
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"not evidence: {error!r}") from error


@dataclass(frozen=True, slots=True)
class Service:
    """Whether a variant still does its work; counted by the scenario.

    `finished`: every request reached its length. `tokens_right`: with the tokens of a run without
    speculation. `drafted`: draft tokens verified. `speculated`: speculation happened where it fits.
    """

    finished: bool
    tokens_right: bool
    drafted: int
    accepted: int
    speculated: bool

    @property
    def ok(self) -> bool:
        return self.finished and self.tokens_right and self.speculated


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a scenario saw of one trial, besides what the lane found.

    `findings` are of the scenario's own kinds (wrong_value, acceptance_loss...). `metrics` holds
    plain JSON values for the report. `who` says whose access it is and why it was let through,
    `notes` what came of it: sentences for a reader.
    """

    service: Service
    findings: tuple[Finding, ...] = ()
    metrics: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    who: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """case x variant x lane x point. `point` holds every parameter, overrides applied."""

    case: str
    variant: str
    lane: str
    point: Mapping[str, Scalar]
    expected: Status


@dataclass(frozen=True, slots=True)
class TrialResult:
    """A trial and what its lane made of it. `status` is what was seen, not whether it was right.

    tensors: name -> "key_cache fp16[64, 2, 8]" of those the findings name. stopped: the lane ended
    the trial at its first finding, as asked, so that nothing after it was observed.
    """

    trial: Trial
    status: Status
    findings: tuple[Finding, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    service: Service | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    who: str = ""
    tensors: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    stopped: bool = False
    seconds: float = 0.0


def to_json(record: Any) -> Any:
    """A record as plain JSON values (dict, list, str, int, float, bool, None)."""
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return {f.name: to_json(getattr(record, f.name)) for f in dataclasses.fields(record)}
    if isinstance(record, StrEnum):
        return str(record)
    if isinstance(record, Mapping):
        return {str(key): to_json(value) for key, value in record.items()}
    if isinstance(record, (list, tuple)):
        return [to_json(value) for value in record]
    return record
