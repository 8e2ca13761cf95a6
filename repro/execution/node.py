"""What runs in a Ray worker on a node: looking at the node, and carrying a task out.

No case runs here. The worker lays the task out, starts a process of its own for it, and sends home
what that left.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ... import __version__
from ..errors import LaneError
from ..lanes.process import Children
from .apart import perform_apart
from .digest import code_digest
from .entries import Work
from .fit import unmet_by_driver, unmet_by_gpu
from .laying_out import lay_out
from .nodes import SHORT
from .parcel import pack
from .task import Needs

# Seconds that a task which was declined stays on its GPUs, so that the cluster gives others to
# those that come next: on one that is avoided until it is cancelled, on one in use for a while.
PAUSE, AVOIDED = 30.0, 7 * 24 * 3600.0
KEPT = "kept"  # files that were too large to go home


class AvoidedError(LaneError):
    """The cluster gave a task a GPU that is avoided."""


def survey() -> dict[str, Any]:
    """What this node is: version and digest of specrepro, its GPUs and their driver."""
    from ..watch.gpus import gpus

    found = gpus()
    return {
        "version": __version__,
        "digest": code_digest(),
        "python": platform.python_version(),
        "host": socket.gethostname(),
        "driver": found.driver,
        "gpus": [(gpu.uuid or str(gpu.index), gpu.name, gpu.free) for gpu in found.gpus],
    }


def folder_of(play: str) -> Path:
    """Where a play keeps what it needs on this node; nobody else can look into it."""
    folder = Path(tempfile.gettempdir()) / f"specrepro-{os.getuid()}-{play}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise LaneError(f"{folder} is not ours")
    return folder


def clear(play: str) -> None:
    """Remove what a play left on this node, but for files that were too large to go home."""
    folder = folder_of(play)
    for path in folder.iterdir():
        if path.name != KEPT:
            shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


def on_ray(parcel: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """`carry`, in a worker of Ray, which says where that is; each word with the node's id."""
    import ray

    node = ray.get_runtime_context().get_node_id()
    held = tuple(str(gpu) for gpu in ray.get_gpu_ids())
    for said in carry(parcel, node[:SHORT], held):
        yield {"node": node, **said}


def carry(parcel: Mapping[str, Any], node: str, held: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Carry a task out. node: this one's id. held: the GPUs that the cluster gave to the task, as
    the node counts them.

    Says first where it is, or that it is declined; then what came of it.
    """
    with contextlib.ExitStack() as locks:
        try:
            place = _place(parcel, node, held, locks)
        except LaneError as error:
            yield {"declined": str(error) + (f" ({error.hint})" if error.hint else "")}
            if held:
                time.sleep(AVOIDED if isinstance(error, AvoidedError) else PAUSE)
            return
        yield {"place": place}
        yield _carried(parcel, tuple(place["gpus"]))


def _carried(parcel: Mapping[str, Any], gpus: tuple[str, ...]) -> dict[str, Any]:
    folder = folder_of(parcel["play"])
    own = folder / f"task-{os.urandom(6).hex()}"
    back = folder / f"{own.name}.back"
    try:
        lay_out(own / "work", parcel["job"], parcel["files"])
        shared = folder / "shared"
        shared.mkdir(exist_ok=True)
        work = Work(own / "work", parcel["timeout"], shared, Children(), gpus)
        ended = perform_apart(parcel["entry"], work, own, back)
        if not back.is_dir():
            return {"ended": asdict(ended), "files": {}, "folders": (), "left": {}, "kept": ""}
        packed = pack(back, parcel["limit"])
        kept = ""
        if packed.left:
            kept = str(folder / KEPT / own.name)
            (folder / KEPT).mkdir(exist_ok=True)
            os.rename(back, kept)
        return {"ended": asdict(ended), **asdict(packed), "kept": kept}
    finally:
        shutil.rmtree(own, ignore_errors=True)
        shutil.rmtree(back, ignore_errors=True)


def _place(
    parcel: Mapping[str, Any], node: str, held: tuple[str, ...], locks: contextlib.ExitStack
) -> dict[str, Any]:
    """Where this is; LaneError where the task must not run here."""
    from ..lanes.gpu import choose
    from ..watch.gpus import gpus
    from .cards import hold

    if parcel["digest"] != code_digest():
        raise LaneError(f"specrepro there is {__version__} of other code")
    place: dict[str, Any] = {"pid": os.getpid(), "machine": platform.machine()}
    if not held:
        return place | {"gpus": (), "gpu_type": None, "driver": None}
    needs, found = Needs(**parcel["needs"]), gpus()
    known = {str(gpu.index): gpu for gpu in found.gpus}
    known |= {gpu.uuid: gpu for gpu in found.gpus if gpu.uuid}
    kind: str | None = None
    names = tuple(known[one].uuid or one if one in known else one for one in held)
    for one, name in zip(held, names, strict=True):
        if f"{node}/{name}" in parcel["avoid"]:
            raise AvoidedError(f"GPU {name} is avoided")
        if one not in known:  # the cluster counts it, NVML does not show it
            continue
        gpu = known[one]
        kind = gpu.name
        if problems := unmet_by_driver(needs, found.driver) + unmet_by_gpu(needs, kind, gpu.free):
            raise LaneError(f"GPU {name} {'; '.join(problems)}")
        choose(found, gpu.index, os.environ, needs.force)
        lock = hold(gpu)
        if lock is None:
            raise LaneError(f"another specrepro process is at GPU {gpu.index}")
        locks.callback(os.close, lock)
    return place | {"gpus": names, "gpu_type": kind, "driver": found.driver}
