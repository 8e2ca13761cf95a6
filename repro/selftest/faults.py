"""The planted faults: which kernel of planted.cu has each, and what must be found of it.

The kernel called `NAME` is launched with the arguments of `ptx/NAME.yaml`. The PTX is shipped,
so that no compiler is needed; a test compiles planted.cu again and compares.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import KernelError
from ..records import Kind

FOLDER = Path(__file__).with_name("ptx")
KERNELS = FOLDER / "planted.ptx"
SOURCE = FOLDER / "planted.cu"
THREADS = 64  # of the one block of each launch
FAR = 1 << 36  # elements of 4 bytes: 256 GiB behind a buffer of 256 bytes
VALID = "the address is valid memory"
_MARK = re.compile(r"//! (\w+)$")


@dataclass(frozen=True, slots=True)
class Fault:
    """One planted fault, or the control.

    about: what it does. kind: of the findings that are right; None for the control, which must have
    none. tensor, elements: where they lie, first and last; None where a kind has none. past: bytes
    from the end to the first wrong one, None where it is not past an end. hidden: why no lane on a
    device can see it although it sees the kind, "" where one can.
    """

    name: str
    about: str
    kind: Kind | None
    tensor: str | None = None
    elements: tuple[int, int] | None = None
    past: int | None = None
    hidden: str = ""

    @property
    def arguments(self) -> Path:
        """The argument file of its launch."""
        return FOLDER / f"{self.name}.yaml"

    def on_device(self) -> Fault:
        """The same as it is planted on a device: not far away, where something of the process may
        lie, but at the first byte behind the buffer, where a lane maps nothing."""
        if self.past in (None, 0):
            return self
        return replace(self, elements=(THREADS, 2 * THREADS - 1), past=0)


CONTROL = Fault("clean", "all of it done right", None)
FAULTS: tuple[Fault, ...] = (
    CONTROL,
    Fault(
        "far_write",
        "write to unmapped memory",
        Kind.OUT_OF_BOUNDS_WRITE,
        "out",
        (FAR, FAR + 63),
        past=4 * (FAR - THREADS),
    ),
    Fault(
        "far_read",
        "read of unmapped memory",
        Kind.OUT_OF_BOUNDS_READ,
        "in",
        (FAR, FAR + 63),
        past=4 * (FAR - THREADS),
    ),
    Fault(
        "next_write",
        "write into another allocation",
        Kind.OUT_OF_BOUNDS_WRITE,
        "out",
        (64, 127),
        past=0,
        hidden=VALID,
    ),
    Fault(
        "pool_write",
        "write inside a pool",
        Kind.FOREIGN_WRITE,
        "pool",
        (64, 95),
        hidden=VALID,
    ),
    Fault("misaligned", "misaligned read", Kind.MISALIGNED_ACCESS, "in", (0, 64)),
    Fault("unwritten_read", "uninitialised read", Kind.UNINITIALISED_READ, "in", (0, 63)),
    Fault(
        "shared_unwritten",
        "uninitialised shared memory",
        Kind.UNINITIALISED_READ,
        None,
        (128, 255),
        hidden="global memory alone is looked at",
    ),
    Fault(
        "shared_bounds",
        "read past shared memory",
        Kind.SHARED_OUT_OF_BOUNDS,
        None,
        (256, 383),
        past=0,
    ),
    Fault("shared_race", "shared-memory race", Kind.SHARED_RACE, None, (0, 255)),
    Fault("barrier", "divergent barrier", Kind.DIVERGENT_BARRIER),
    Fault("assertion", "device assert", Kind.TRAP),
    Fault("hang", "hang", Kind.HANG),
)


def marks() -> dict[str, tuple[int, ...]]:
    """The lines of planted.cu that are at fault, by name of the kernel; KernelError without it."""
    try:
        lines = SOURCE.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise KernelError(
            f"the source of the planted kernels cannot be read: {error.strerror}",
            where=SOURCE.name,
            hint="install specrepro again",
        ) from error
    found: dict[str, tuple[int, ...]] = {}
    for number, line in enumerate(lines, 1):
        if match := _MARK.search(line):
            found[match[1]] = (*found.get(match[1], ()), number)
    return found
