"""The state of every GPU by NVML, field by field: what one cannot tell does not hide the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .events import pci
from .nvml import text


@dataclass(frozen=True, slots=True)
class Process:
    """A process that computes on a GPU. memory: bytes, None where it is not told."""

    pid: int
    memory: int | None


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. None where the driver does not tell. memory: bytes. capability: `9.0`. mig: whether
    it is partitioned. recovery: the action that the driver asks for, `none` if none."""

    index: int
    name: str | None
    uuid: str | None
    bus: str | None
    capability: str | None
    memory: int | None
    free: int | None
    mig: bool | None
    recovery: str | None
    processes: tuple[Process, ...] | None


@dataclass(frozen=True, slots=True)
class Gpus:
    """All GPUs, and the driver. reason: why there are none, or why not all of those that the driver
    counts; "" where nothing is missing."""

    gpus: tuple[Gpu, ...]
    driver: str | None
    cuda: str | None
    reason: str


# nvmlDeviceGetGpuRecoveryAction's values in nvml.h
ACTIONS = {0: "none", 1: "reset the GPU", 2: "reboot the node", 3: "drain peers", 4: "drain, reset"}
RECOVERY_FIELD = "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION"


def gpus() -> Gpus:
    """Ask the driver once. Never raises: a machine without one is an answer."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return Gpus((), None, None, f"NVML: {error}")
    try:
        driver = _told(lambda: text(pynvml.nvmlSystemGetDriverVersion()))
        version = _told(pynvml.nvmlSystemGetCudaDriverVersion_v2)
        cuda = f"{version // 1000}.{version % 1000 // 10}" if version else None
        count = _told(pynvml.nvmlDeviceGetCount)
        if count is None:
            return Gpus((), driver, cuda, "the driver does not tell how many GPUs there are")
        found, missing = [], []
        for index in range(count):
            try:
                found.append(_gpu(index))
            except pynvml.NVMLError as error:  # one that is lost is counted, and has no handle
                missing.append(f"GPU {index}: {error}")
        reason = "; ".join(missing) or ("" if found else "the driver shows no GPU")
        return Gpus(tuple(found), driver, cuda, reason)
    finally:
        _told(pynvml.nvmlShutdown)


def _gpu(index: int) -> Gpu:
    import pynvml

    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = _told(lambda: pynvml.nvmlDeviceGetMemoryInfo(handle))
    capability = _told(lambda: pynvml.nvmlDeviceGetCudaComputeCapability(handle))
    mig = _told(lambda: pynvml.nvmlDeviceGetMigMode(handle)[0])
    running = _told(lambda: pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle))
    return Gpu(
        index=index,
        name=_told(lambda: text(pynvml.nvmlDeviceGetName(handle))),
        uuid=_told(lambda: text(pynvml.nvmlDeviceGetUUID(handle))),
        bus=_told(lambda: pci(text(pynvml.nvmlDeviceGetPciInfo_v3(handle).busId))),
        capability=f"{capability[0]}.{capability[1]}" if capability else None,
        memory=None if memory is None else int(memory.total),
        free=None if memory is None else int(memory.free),
        mig=None if mig is None else mig == pynvml.NVML_DEVICE_MIG_ENABLE,
        recovery=_recovery(handle),
        processes=None if running is None else tuple(_process(one) for one in running),
    )


def _process(one: Any) -> Process:
    return Process(int(one.pid), None if one.usedGpuMemory is None else int(one.usedGpuMemory))


def _recovery(handle: Any) -> str | None:
    """What the driver asks for; None where this driver or binding does not know the field."""
    import pynvml

    field = getattr(pynvml, RECOVERY_FIELD, None)
    if field is None:
        return None
    values = _told(lambda: pynvml.nvmlDeviceGetFieldValues(handle, [field]))
    if not values or values[0].nvmlReturn != pynvml.NVML_SUCCESS:
        return None
    action = int(values[0].value.uiVal)
    return ACTIONS.get(action, f"action {action}")


def _told(ask: Callable[[], Any]) -> Any:
    """What the driver says, None where it does not or its library is too old to be asked."""
    import pynvml

    try:
        return ask()
    except pynvml.NVMLError:
        return None
