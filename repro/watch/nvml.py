"""Which NVIDIA devices the driver shows, through NVML."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Devices:
    """Names of the devices, the driver's version; `reason` why there are none."""

    names: tuple[str, ...]
    driver: str | None
    reason: str


def devices() -> Devices:
    """Ask the driver once. Never raises: a machine without one is an answer."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return Devices((), None, f"no CUDA device (NVML: {error})")
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        names = tuple(text(pynvml.nvmlDeviceGetName(handle)) for handle in handles)
        driver = text(pynvml.nvmlSystemGetDriverVersion())
    except pynvml.NVMLError as error:
        return Devices((), None, f"NVML answers, but not about devices: {error}")
    finally:
        pynvml.nvmlShutdown()
    return Devices(names, driver, "" if names else "the driver shows no CUDA device")


def text(value: str | bytes) -> str:
    """What NVML calls a name, whichever version of its binding said it."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value
