"""compute-sanitizer's output inside a log; its parser is `repro/sanitizer/text.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..facts import Value
from .line import Following, Found, Line, Parser, State

if TYPE_CHECKING:
    from ...sanitizer.text import Outcome, Record

_TOOLS = {
    "access": "memcheck",
    "leak": "memcheck",
    "heap": "memcheck",
    "stream_order": "memcheck",
    "race": "racecheck",
    "uninitialised": "initcheck",
    "unused": "initcheck",
    "barrier": "synccheck",
}
_COPIED = (
    "space", "direction", "bytes", "kernel", "offset", "file", "file_line", "thread", "block",
    "address", "reason", "distance", "side", "allocation", "allocation_bytes",
)  # fmt: skip
# Under memcheck a wrong access ends the context, so the program sees 719 for it.
_CODES = {
    700: "illegal_access",
    716: "misaligned_access",
    719: "launch_failure",
    710: "device_assert",
}


def _read(line: Line, _: Following, state: State) -> Iterator[Found]:
    if state.sanitizer is None:
        from ...sanitizer.text import Parser as Sanitizer

        state.sanitizer = Sanitizer()
    for record in state.sanitizer.feed(line.text, line.number):
        yield _found(record)


def ended(state: State) -> Iterator[Found]:
    """What the end of the source leaves: a cut record, and how the tool's run came out."""
    if state.sanitizer is None:
        return
    for record in state.sanitizer.finish():
        yield _found(record)
    outcome = state.sanitizer.outcome()
    if outcome.header or outcome.summary is not None or state.sanitizer.records:
        yield _run(outcome)


def _found(record: Record) -> Found:
    values: dict[str, Value] = {name: getattr(record, name) for name in _COPIED}
    if record.kind == "api":
        values["reason"] = record.message or record.error
    values |= {
        "tool": _TOOLS.get(record.kind),
        "record": record.kind,
        "fault": _fault(record),
    }
    return Found("sanitizer_error", values, line=Line(record.first, record.line))


def _fault(record: Record) -> str | None:
    if record.kind == "access":
        return "misaligned_access" if record.reason == "misaligned" else "illegal_access"
    if record.kind == "api" and record.error_code is not None:
        return _CODES.get(record.error_code, "other")
    return None


def _run(outcome: Outcome) -> Found:
    return Found(
        "sanitizer_run",
        {
            "header": outcome.header,
            "summary": outcome.summary,
            "outcome": outcome.verdict,
            "reason": outcome.reason,
        },
        text="",
    )


PARSERS = (Parser(("=========",), _read),)
