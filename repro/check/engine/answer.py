"""What an oracle says of an experiment, and what all ask first: is there anything to judge?

Pure. A sign is *seen* only where everything that the case describes was there. What is wrong in
another way is *other*: it is named, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ...records import Scalar
from ..exposure import Value
from .observe import Observed, Raised
from .process import Ending
from .start import described


class Sign(StrEnum):
    """Whether the signature of a case was there."""

    SEEN = "seen"
    NOT_SEEN = "not seen"
    OTHER = "other"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Row:
    """One measured value. `at`: (start, number of a line there), of its observations, or of its log
    where `logged`; None where no single line says it."""

    probe: str
    question: str
    value: Scalar | tuple[int, ...] | None
    detail: str
    at: tuple[str, int] | None = None
    logged: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of an experiment, in a sentence, and what was measured. tail: of a log, where an
    engine ended in a way that is not the case's."""

    sign: Sign
    reason: str
    rows: tuple[Row, ...] = ()
    tail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Played:
    """A start as it went. settings: as they were asked for. tail: last lines of the log. said:
    (number, text) of the lines of the log that tell lengths. raised: the last exception in the log.
    """

    observed: Observed
    ending: Ending
    settings: Mapping[str, Value] = field(default_factory=dict)
    tail: Sequence[str] = ()
    said: Sequence[tuple[int, str]] = ()
    raised: Raised | None = None


def trouble(played: Played) -> Answer | None:
    """Why a start says nothing about its case; None for one that can be judged."""
    observed, ending, raised = played.observed, played.ending, played.raised
    tail = tuple(played.tail)
    failure = observed.failure
    if failure is not None and failure.phase == "change":
        return Answer(Sign.UNKNOWN, f"the change could not be made: {failure.message}", tail=tail)
    if failure is not None:
        when = "at start-up" if failure.phase == "start" else "while it served"
        last = failure.message.strip().splitlines()[0] if failure.message.strip() else ""
        what = f"{failure.type}: {last}" if last else failure.type
        if raised is not None and raised.exception not in failure.message:
            what += f"; the log's last error is {_told(raised)}"
        trace = tuple(failure.trace.rstrip().splitlines()[-8:])
        return Answer(Sign.OTHER, f"another failure, {when}: {what}", tail=trace)
    if ending.timed_out and raised is not None:
        return Answer(
            Sign.OTHER,
            f"another failure, in the engine: {_told(raised)}; {ending.reason}",
            tail=tail,
        )
    if ending.timed_out:
        where = "the engine was not ready" if observed.engine is None else "it served"
        return Answer(Sign.UNKNOWN, f"{ending.reason}; {where}", tail=tail)
    if ending.reason:
        when = "at start-up" if observed.engine is None else "while it served"
        return Answer(Sign.OTHER, f"the engine {ending.reason} {when}", tail=tail)
    if observed.complaint:
        return Answer(Sign.UNKNOWN, observed.complaint, tail=tail)
    if observed.engine is None:
        return Answer(Sign.UNKNOWN, "the engine did not say what it is", tail=tail)
    stuck = [batch.name for batch in observed.batches.values() if batch.stuck]
    if stuck:
        return Answer(Sign.OTHER, f"requests of {stuck[0]} did not end", tail=tail)
    odd = described(played.settings, observed.engine)
    return Answer(Sign.UNKNOWN, odd) if odd else None


def _told(raised: Raised) -> str:
    return f"{raised.exception} at {raised.at}" if raised.at else raised.exception
