"""Which GPU faults are planted on, and whether it is well again afterwards. Judged from what NVML
says; nothing here starts CUDA."""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ..errors import LaneError
from ..watch.gpus import Gpu, Gpus

MPS = Path("/", "tmp", "nvidia-mps")  # where NVIDIA's own daemon keeps its pipe
SLACK = 64 << 20  # bytes that may be missing afterwards: what the driver itself keeps
PATIENCE = 10.0  # seconds in which memory comes back
FORCE = "--force does it all the same; a fault ends what others run there"


def choose(found: Gpus, index: int | None, environ: Mapping[str, str], force: bool) -> Gpu:
    """The GPU to plant faults on: `index` as NVML counts, else the first that this process may use.

    LaneError where there is none, it cannot be used, or others would be hurt without `force`.
    """
    if not found.gpus:
        raise LaneError(found.reason or "the driver shows no GPU")
    gpu = _asked(found, index) if index is not None else _allowed(found, environ)
    said = f"GPU {gpu.index}"
    if gpu.mig:
        raise LaneError(f"{said} is partitioned (MIG), which no lane uses")
    if gpu.recovery not in (None, "none"):
        raise LaneError(f"{said} is not well: the driver asks to {gpu.recovery}")
    if force:
        return gpu
    if mps(environ):
        raise LaneError(f"{said} is under MPS, where a fault ends every client", hint=FORCE)
    if gpu.processes is None:
        raise LaneError(f"the driver does not say who else computes on {said}", hint=FORCE)
    if gpu.processes:
        pids = ", ".join(str(one.pid) for one in gpu.processes)
        raise LaneError(f"others compute on {said} (process {pids})", hint=FORCE)
    return gpu


def mps(environ: Mapping[str, str]) -> bool:
    """Whether a control daemon of MPS listens where this process would find it."""
    control = Path(environ.get("CUDA_MPS_PIPE_DIRECTORY") or MPS, "control")
    try:
        return stat.S_ISFIFO(control.stat().st_mode) or control.is_socket()
    except OSError:
        return False


def ill(
    before: Gpu,
    look: Callable[[], Gpus],
    *,
    patience: float = PATIENCE,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Why a GPU is not as it was before; "" once it is. Memory may take `patience` seconds."""
    waited, pause = 0.0, 0.25
    while why := _unlike(before, look()):
        if waited >= patience:
            return why
        sleep(pause)
        waited, pause = waited + pause, min(2 * pause, 2.0)
    return ""


def _unlike(before: Gpu, found: Gpus) -> str:
    gpu = next((one for one in found.gpus if one.index == before.index), None)
    if gpu is None or (before.uuid is not None and gpu.uuid != before.uuid):
        return f"the driver does not show GPU {before.index} any more" + (
            f" ({found.reason})" if found.reason else ""
        )
    if gpu.recovery not in (None, "none"):
        return f"the driver asks to {gpu.recovery}"
    if before.recovery is not None and gpu.recovery is None:
        return "the driver does not say any more whether it must recover"
    if before.free is not None and (gpu.free is None or gpu.free < before.free - SLACK):
        left = "an unknown amount" if gpu.free is None else f"{before.free - gpu.free:,} bytes"
        return f"{left} of its memory did not come back"
    return ""


def _asked(found: Gpus, index: int) -> Gpu:
    gpu = next((one for one in found.gpus if one.index == index), None)
    if gpu is None:
        count = len(found.gpus)
        raise LaneError(f"there is no GPU {index}; the driver shows {count}, counted from 0")
    return gpu


def _allowed(found: Gpus, environ: Mapping[str, str]) -> Gpu:
    """The first that CUDA_VISIBLE_DEVICES names, the first of all where it says nothing."""
    if "CUDA_VISIBLE_DEVICES" not in environ:
        return found.gpus[0]
    word = environ["CUDA_VISIBLE_DEVICES"].split(",")[0].strip()
    for gpu in found.gpus:
        named = word.startswith("GPU-") and (gpu.uuid or "").startswith(word)
        if named or word == str(gpu.index):
            return gpu
    raise LaneError("CUDA_VISIBLE_DEVICES hides every GPU from this process")
