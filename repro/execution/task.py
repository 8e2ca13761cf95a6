"""A task, the place it runs in, and what came of it. Frozen, standard library only.

A task is data: the name of an entry of ours, its job, and files. Where it runs is no part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

HERE = "here"  # the node that a task of this process tree runs on
GRACE = 120.0  # seconds beyond its time-out after which a task is given up from the outside


@dataclass(frozen=True, slots=True)
class Needs:
    """What a place must have. gpus: that the task holds for itself. gpu_types: one of them, as a
    word of the device's name (`H100`); () for any. free_memory: bytes on each of its GPUs.
    driver: `>=570`; "" for any. cpus: that it keeps busy. force: a GPU that others compute on will
    do."""

    gpus: int = 0
    gpu_types: tuple[str, ...] = ()
    free_memory: int = 0
    driver: str = ""
    cpus: int = 1
    force: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work. id: unique in a play. entry: a name in `entries.ENTRIES`.

    job: becomes job.json. directory: at home, where what the task leaves will lie; an earlier
    one's is removed. files: further files at home by their relative name, laid out beside job.json.
    timeout: seconds, of the child that the entry starts. label: for a reader, what it is about.
    """

    id: str
    entry: str
    job: Mapping[str, Any]
    directory: Path
    timeout: float
    needs: Needs = Needs()
    files: Mapping[str, Path] = field(default_factory=dict)
    label: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a task ran. node: `here`, or the beginning of a node's id; no name of a machine.

    gpus: by NVML's uuid, or as their node counts them where NVML does not tell. gpu_type: the
    device's name. driver: of its GPUs. machine: the processor's architecture. said: the node for a
    person who looks at the terminal; not kept.
    """

    node: str = HERE
    gpus: tuple[str, ...] = ()
    gpu_type: str | None = None
    driver: str | None = None
    machine: str = ""
    pid: int | None = None
    said: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """By what it is remembered: each of its GPUs, else the node."""
        return tuple(f"{self.node}/{gpu}" for gpu in self.gpus) or (self.node,)

    @property
    def group(self) -> tuple[str, str]:
        """Device and driver, or the processor's architecture and "": results of two groups are not
        put into one posterior unasked."""
        return self.gpu_type or self.machine, self.driver or ""


@dataclass(frozen=True, slots=True)
class Ended:
    """How an entry ended at its place.

    reason: why its child did not end well, "" if it did: evidence about the task itself.
    infra: why this says nothing about the task, which is tried again elsewhere. declined: why this
    place cannot take the task, which another place may. unwell: why nothing more may run on the
    GPUs that it held (on its node where it held none); what it found still counts.
    """

    reason: str = ""
    timed_out: bool = False
    seconds: float = 0.0
    infra: str = ""
    declined: str = ""
    unwell: str = ""


class Fate(StrEnum):
    """What became of one attempt."""

    WHOLE = "whole"  # the entry ended, and all that it left is at home
    INFRA = "infra"  # worker, node or GPU lost, result cut: nothing is known
    REFUSED = "refused"  # the place did not begin it
    NOWHERE = "nowhere"  # no place is left that could take it


@dataclass(frozen=True, slots=True)
class Attempt:
    """A task on its way. number: from 1. not_at: keys of places where it was already tried; others
    are preferred."""

    task: Task
    number: int = 1
    not_at: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a place says of an attempt. left: where evidence stayed that was too large to come."""

    attempt: Attempt
    fate: Fate
    place: Place | None = None
    reason: str = ""
    ended: Ended = Ended()
    left: str = ""


@dataclass(frozen=True, slots=True)
class Tried:
    """An attempt that decided nothing."""

    place: Place | None
    fate: Fate
    reason: str
    ended: Ended = Ended()


@dataclass(frozen=True, slots=True)
class Done:
    """The one result of a task. `lost`: why there is none ("" if there is): it was tried as often
    as is allowed, or nowhere is left to try it. tried: the attempts before the one that counts.
    """

    task: Task
    place: Place | None
    ended: Ended
    lost: str = ""
    tried: tuple[Tried, ...] = ()
    left: str = ""


@dataclass(frozen=True, slots=True)
class Moment:
    """Progress for a reader. state: `started`, `working`, `again`, `ended`, `avoided`, `node`."""

    state: str
    task: Task | None = None
    place: Place | None = None
    detail: str = ""
