"""What a launch did wrong, as findings."""

from __future__ import annotations

from collections.abc import Mapping

from ..emulator.launch import LaunchReport, WrongAccess
from ..findings import bytes_past_end, ranges
from ..records import Finding, Source

# Checks that every launch has; ownership comes with an argument file that declares it.
CHECKS = ("bounds", "alignment", "null pointers", "shared memory bounds", "traps")


def findings(
    report: LaunchReport, kernel: str, number: int, sizes: Mapping[str, tuple[int, int]]
) -> list[Finding]:
    """The findings of launch `number`. sizes: buffer → its elements and bytes of one."""
    return [
        found for access in report.accesses for found in _findings(access, kernel, number, sizes)
    ]


def _findings(
    access: WrongAccess, kernel: str, number: int, sizes: Mapping[str, tuple[int, int]]
) -> list[Finding]:
    found = []
    stretches: list[tuple[int, int] | None] = list(ranges(access.elements))
    for stretch in stretches or [None]:
        past, count = access.bytes_past_end, None
        if stretch is not None:
            count = stretch[1] - stretch[0] + 1
            if access.buffer is not None and access.buffer in sizes:
                past = bytes_past_end(stretch[0], *sizes[access.buffer])
        found.append(
            Finding(
                access.kind,
                launch=number,
                op=kernel,
                tensor=access.buffer,
                elements=stretch,
                count=count,
                bytes_past_end=past,
                width=access.width,
                block=access.block,
                thread=access.thread,
                threads=access.threads,
                source=Source(access.file, access.line) if access.line else None,
                request=access.request,
                lands_in=access.lands_in or None,
            )
        )
    return found
