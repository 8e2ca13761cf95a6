"""What a launch did wrong, as the findings of whoever launched it."""

from __future__ import annotations

from collections.abc import Mapping

from ..findings import bytes_past_end, ranges
from ..records import Finding, Kind, Source
from .report import LaunchReport, WrongAccess


def findings(
    report: LaunchReport,
    op: str,
    launch: int,
    sizes: Mapping[str, tuple[int, int]],
    *,
    step: int | None = None,
    most: int | None = None,
) -> list[Finding]:
    """One finding for each contiguous range of each wrong access, for a race only one.

    most: of a wrong access with more ranges than that there is one finding too. Where one covers
    several ranges, `count` is less than from the first to the last.

    op, launch, step: what was launched, its number and when in the scenario. sizes: buffer -> its
    elements and bytes of one; of a buffer without them what the launch itself says counts.
    """
    return [
        _finding(access, stretch, (op, launch, step), sizes)
        for access in report.accesses
        for stretch in _stretches(access, most)
    ]


def _stretches(access: WrongAccess, most: int | None) -> list[tuple[int, int, int] | None]:
    """First and last of its elements and their number, range by range or of all.

    A trap or a barrier has one that is none.
    """
    elements = access.elements
    if not elements.size:
        return [None]
    found = ranges(elements)
    if access.kind is Kind.SHARED_RACE or (most is not None and len(found) > most):
        return [(found[0][0], found[-1][1], int(elements.size))]
    return [(first, last, last - first + 1) for first, last in found]


def _finding(
    access: WrongAccess,
    stretch: tuple[int, int, int] | None,
    of: tuple[str, int, int | None],
    sizes: Mapping[str, tuple[int, int]],
) -> Finding:
    past = access.bytes_past_end
    if stretch is not None and access.buffer is not None and access.buffer in sizes:
        past = bytes_past_end(stretch[0], *sizes[access.buffer])
    op, launch, step = of
    return Finding(
        access.kind,
        launch=launch,
        op=op,
        tensor=access.buffer,
        elements=None if stretch is None else stretch[:2],
        count=None if stretch is None else stretch[2],
        bytes_past_end=past,
        width=access.width,
        block=access.block,
        thread=access.thread,
        threads=access.threads,
        source=Source(access.file, access.line) if access.line else None,
        request=access.request,
        step=step,
        lands_in=access.lands_in or None,
        got=access.message or None,
    )
