"""What a launch did wrong, as the findings of whoever launched it."""

from __future__ import annotations

from collections.abc import Mapping

from ..findings import bytes_past_end, ranges
from ..records import Finding, Source
from .report import LaunchReport, WrongAccess


def findings(
    report: LaunchReport,
    op: str,
    launch: int,
    sizes: Mapping[str, tuple[int, int]],
    *,
    step: int | None = None,
) -> list[Finding]:
    """One finding for each contiguous range of each wrong access.

    op, launch, step: what was launched, its number and when in the scenario. sizes: buffer -> its
    elements and bytes of one; of a buffer without them what the launch itself says counts.
    """
    return [
        _finding(access, stretch, (op, launch, step), sizes)
        for access in report.accesses
        for stretch in _stretches(access)
    ]


def _stretches(access: WrongAccess) -> list[tuple[int, int] | None]:
    """Its contiguous ranges of elements; a trap or a barrier has one that is none."""
    return [*ranges(access.elements)] or [None]


def _finding(
    access: WrongAccess,
    stretch: tuple[int, int] | None,
    of: tuple[str, int, int | None],
    sizes: Mapping[str, tuple[int, int]],
) -> Finding:
    past, count = access.bytes_past_end, None
    if stretch is not None:
        count = stretch[1] - stretch[0] + 1
        if access.buffer is not None and access.buffer in sizes:
            past = bytes_past_end(stretch[0], *sizes[access.buffer])
    op, launch, step = of
    return Finding(
        access.kind,
        launch=launch,
        op=op,
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
        step=step,
        lands_in=access.lands_in or None,
        got=access.message or None,
    )
