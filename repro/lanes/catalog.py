"""The lanes: what each executes, which kinds it can see, and which it can locate.

*See* means: the fault shows itself somehow. *Locate* means: the lane names tensor and elements, so
that it can be compared with another. Silence of a lane about a kind it cannot see is no evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..records import Kind

BOUNDS = frozenset({Kind.OUT_OF_BOUNDS_READ, Kind.OUT_OF_BOUNDS_WRITE})
OWNERSHIP = frozenset({Kind.FOREIGN_READ, Kind.FOREIGN_WRITE})
IN_KERNEL = frozenset(
    {
        Kind.MISALIGNED_ACCESS,
        Kind.UNINITIALISED_READ,
        Kind.SHARED_OUT_OF_BOUNDS,
        Kind.SHARED_RACE,
        Kind.DIVERGENT_BARRIER,
        Kind.TRAP,
    }
)
OUTCOMES = frozenset({Kind.WRONG_VALUE, Kind.ACCEPTANCE_LOSS, Kind.OVERSIZED_ALLOCATION})


@dataclass(frozen=True, slots=True)
class Lane:
    """One way to execute a variant. `kernels`: it executes device kernels, not references."""

    name: str
    kernels: bool
    device: bool
    sees: frozenset[Kind]
    locates: frozenset[Kind]
    doc: str


CATALOG: dict[str, Lane] = {
    lane.name: lane
    for lane in (
        Lane(
            "reference",
            kernels=False,
            device=False,
            sees=BOUNDS | OWNERSHIP | OUTCOMES,
            locates=BOUNDS | OWNERSHIP | OUTCOMES,
            doc="the pure-Python references",
        ),
        Lane(
            "emulator",
            kernels=True,
            device=False,
            sees=BOUNDS | OWNERSHIP | OUTCOMES | IN_KERNEL,
            locates=BOUNDS | OWNERSHIP | OUTCOMES | IN_KERNEL,
            doc="the kernels' PTX, all threads of a launch at once, on numpy",
        ),
        Lane(
            "plain",
            kernels=True,
            device=True,
            sees=BOUNDS | OUTCOMES | {Kind.MISALIGNED_ACCESS, Kind.TRAP},
            locates=OUTCOMES,
            doc="the kernels on the device as they are",
        ),
        Lane(
            "blocking",
            kernels=True,
            device=True,
            sees=BOUNDS | OUTCOMES | {Kind.MISALIGNED_ACCESS, Kind.TRAP},
            locates=OUTCOMES,
            doc="the same under CUDA_LAUNCH_BLOCKING=1",
        ),
        Lane(
            "memcheck",
            kernels=True,
            device=True,
            sees=BOUNDS | OUTCOMES | {Kind.MISALIGNED_ACCESS, Kind.SHARED_OUT_OF_BOUNDS},
            locates=BOUNDS | OUTCOMES | {Kind.MISALIGNED_ACCESS},
            doc="the same under compute-sanitizer's memcheck",
        ),
        Lane(
            "racecheck",
            kernels=True,
            device=True,
            sees=OUTCOMES | {Kind.SHARED_RACE},
            locates=OUTCOMES,
            doc="the same under compute-sanitizer's racecheck",
        ),
        Lane(
            "initcheck",
            kernels=True,
            device=True,
            sees=OUTCOMES | {Kind.UNINITIALISED_READ},
            locates=OUTCOMES | {Kind.UNINITIALISED_READ},
            doc="the same under compute-sanitizer's initcheck",
        ),
        Lane(
            "synccheck",
            kernels=True,
            device=True,
            sees=OUTCOMES | {Kind.DIVERGENT_BARRIER},
            locates=OUTCOMES,
            doc="the same under compute-sanitizer's synccheck",
        ),
        Lane(
            "coredump",
            kernels=True,
            device=True,
            sees=BOUNDS | {Kind.MISALIGNED_ACCESS, Kind.TRAP},
            locates=frozenset(),
            doc="the same with a GPU core dump on exception",
        ),
    )
}
