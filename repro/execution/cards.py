"""The GPUs of this machine that may be used, and one task a GPU.

A lock a GPU, held by the process that uses it, keeps two specrepro processes apart, of whichever
user.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import LaneError
from ..lanes.gpu import choose
from ..watch.gpus import Gpu, Gpus
from .fit import unmet_by_driver, unmet_by_gpu
from .task import HERE, Attempt, Needs, Place

HELD = "another specrepro process is at it"


@dataclass(slots=True)
class Cards:
    """GPUs, each held by a lock until `close`. reason: why there is none, or "" ."""

    gpus: tuple[Gpu, ...]
    driver: str | None
    locks: list[int] = field(default_factory=list)
    avoided: dict[str, str] = field(default_factory=dict)
    _free: set[str] = field(default_factory=set)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _closed: bool = False

    def unmet(self, needs: Needs) -> str:
        """Why no GPU here meets `needs`; "" if enough do."""
        meeting = [gpu for gpu in self.gpus if not self._problems(gpu, needs)]
        if len(meeting) >= needs.gpus:
            return ""
        said = [f"GPU {g.index} {p}" for g in self.gpus for p in self._problems(g, needs)]
        return "; ".join(said) or f"needs {needs.gpus} GPUs, {len(self.gpus)} may be used"

    def take(self, attempt: Attempt) -> Place:
        """Wait for GPUs that meet what a task needs, where it was not tried yet if there are such.

        LaneError where all that would do are avoided.
        """
        needs = attempt.task.needs
        with self._changed:
            while True:
                left = [gpu for gpu in self.gpus if self._usable(gpu, needs)]
                if len(left) < needs.gpus or self._closed:
                    raise LaneError(self._nothing(needs))
                fresh = [gpu for gpu in left if _key(gpu) not in attempt.not_at]
                wanted = fresh if len(fresh) >= needs.gpus else left
                free = [gpu for gpu in wanted if _name(gpu) in self._free]
                if len(free) >= needs.gpus:
                    taken = free[: needs.gpus]
                    self._free -= {_name(gpu) for gpu in taken}
                    names = tuple(_name(gpu) for gpu in taken)
                    return Place(HERE, names, taken[0].name, self.driver, platform.machine())
                self._changed.wait()

    def give(self, place: Place) -> None:
        """Take back what `take` gave."""
        with self._changed:
            self._free |= set(place.gpus)
            self._changed.notify_all()

    def avoid(self, key: str, reason: str) -> None:
        """Give a GPU to nobody any more. key: of its place."""
        with self._changed:
            self.avoided.setdefault(key, reason)
            self._changed.notify_all()

    def close(self) -> None:
        """Let the locks go; who waits for a GPU gets none."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            while self.locks:
                os.close(self.locks.pop())

    def _usable(self, gpu: Gpu, needs: Needs) -> bool:
        return _key(gpu) not in self.avoided and not self._problems(gpu, needs)

    def _problems(self, gpu: Gpu, needs: Needs) -> tuple[str, ...]:
        return unmet_by_driver(needs, self.driver) + unmet_by_gpu(needs, gpu.name, gpu.free)

    def _nothing(self, needs: Needs) -> str:
        if self._closed:
            return "the run was interrupted"
        return self.unmet(needs) or f"stopped: {'; '.join(self.avoided.values())}"


def open_cards(
    found: Gpus, index: int | None, environ: Mapping[str, str], force: bool, most: int = 1
) -> Cards:
    """Choose and lock GPUs: the one asked for, or up to `most` that this process may use.

    LaneError says why there is none: that of the first that was looked at.
    """
    if most == 1 or index is not None:
        gpu = choose(found, index, environ, force)
        lock = hold(gpu)
        if lock is None:
            raise LaneError(f"GPU {gpu.index} is in use: {HELD}")
        return _cards([gpu], found, [lock])
    chosen: list[Gpu] = []
    locks: list[int] = []
    reasons: list[str] = []
    for number in _visible(found, environ):
        if len(chosen) == most:
            break
        try:
            gpu = choose(found, number, environ, force)
        except LaneError as error:
            reasons.append(f"{error}" + (f" ({error.hint})" if error.hint else ""))
            continue
        lock = hold(gpu)
        if lock is None:
            reasons.append(f"GPU {gpu.index} is in use: {HELD}")
            continue
        chosen.append(gpu)
        locks.append(lock)
    if not chosen:
        raise LaneError(reasons[0] if reasons else found.reason or "the driver shows no GPU")
    return _cards(chosen, found, locks)


def hold(gpu: Gpu, folder: Path | None = None) -> int | None:
    """Lock a GPU for this process; None where another one holds it. The descriptor is the lock,
    which ends with it, or with this process. OSError where there can be no lock."""
    folder = folder or Path(tempfile.gettempdir())
    path = folder / f"specrepro-gpu-{re.sub(r'[^A-Za-z0-9-]', '-', _name(gpu))}.lock"
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        lock = os.open(path, flags)  # a lock needs no right to write: it may be of another user
    except FileNotFoundError:
        lock = os.open(path, flags | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def _cards(gpus: Sequence[Gpu], found: Gpus, locks: list[int]) -> Cards:
    return Cards(tuple(gpus), found.driver, locks, _free={_name(gpu) for gpu in gpus})


def _visible(found: Gpus, environ: Mapping[str, str]) -> list[int]:
    """The indexes of the GPUs that CUDA_VISIBLE_DEVICES lets this process use, in its order."""
    if "CUDA_VISIBLE_DEVICES" not in environ:
        return [gpu.index for gpu in found.gpus]
    chosen: list[int] = []
    for word in environ["CUDA_VISIBLE_DEVICES"].split(","):
        word = word.strip()
        for gpu in found.gpus:
            named = word.startswith("GPU-") and (gpu.uuid or "").startswith(word)
            if (named or word == str(gpu.index)) and gpu.index not in chosen:
                chosen.append(gpu.index)
    return chosen


def _name(gpu: Gpu) -> str:
    return gpu.uuid or str(gpu.index)


def _key(gpu: Gpu) -> str:
    return f"{HERE}/{_name(gpu)}"
