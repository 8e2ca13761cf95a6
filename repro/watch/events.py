"""What a watcher saw of the driver, and whether it could have seen anything at all."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .xid import Xid

NVML, KERNEL_LOG = "NVML", "kernel log"
_BUS = re.compile(r"(?:([0-9a-fA-F]{1,8}):)?([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})(?:\.[0-7])?")


@dataclass(frozen=True, slots=True)
class Event:
    """One Xid as one source told it.

    at: seconds since 1970 when it was read, or as the source stamps it. bus: PCI address as
    `pci` writes it, None where the source does not say. xid: the message, of the kernel log only;
    NVML gives a number and nothing else. instance: MIG instance ids (GPU, compute) where told.
    """

    source: str
    at: float
    code: int
    bus: str | None = None
    xid: Xid | None = None
    instance: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Watched:
    """A source and what its silence is worth. reason: why it saw nothing or not all, "" for a
    source that was observable throughout; hint: the command that would make it so."""

    source: str
    observable: bool
    reason: str = ""
    hint: str = ""


def pci(text: str) -> str | None:
    """`0000:3b:00` for all ways a PCI address is written: domain of 0, 4 or 8 digits, with or
    without function, in either case. None for what is none."""
    match = _BUS.fullmatch(text.strip())
    if match is None:
        return None
    domain = int(match[1] or "0", 16)
    return f"{domain:04x}:{int(match[2], 16):02x}:{int(match[3], 16):02x}"
