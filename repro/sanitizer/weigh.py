"""What a run under compute-sanitizer came to. Pure, and fail closed.

An exit status proves nothing here: the tool ends with 255 where the target never used CUDA, can end
with 0 where it never ran, and its own error status counts only for a target that succeeded. Clean
takes three witnesses: the tool's header, a summary that counts nothing, and the mark that the
target left when it was done.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..escape import printable
from ..records import Evidence, Finding, Seen, Status
from .journal import Journal
from .located import FATAL, Located, locate
from .reading import Reading

SHOWN = 3  # first lines that a reason quotes
LONGEST = 120  # characters of one of them


@dataclass(frozen=True, slots=True)
class Weighed:
    """status: `fault`, `clean` or `unknown`. stopped: the context was destroyed at the first fault,
    so nothing after that launch was observed."""

    status: Status
    findings: tuple[Finding, ...]
    evidence: Evidence
    reason: str
    stopped: bool = False


def weigh(check: str, version: str, reading: Reading, journal: Journal) -> Weighed:
    """Judge one run of `check`. version: of the tool, for the record."""
    located = locate(reading.records, journal)
    source = f"compute-sanitizer {version}, {check}"
    fatal = [code for code in located.codes if code in FATAL]
    stopped = bool(located.findings or fatal) and not journal.complete
    unknown = _doubt(reading, journal, located, fatal)
    if unknown:
        seen = Seen.SEEN if located.findings or fatal else Seen.UNOBSERVABLE
        evidence = Evidence(source, seen, unknown)
        return Weighed(Status.UNKNOWN, located.findings, evidence, unknown, stopped)
    if located.findings:
        said = f"{len(located.findings)} finding{'s'[: len(located.findings) != 1]}"
        said += "".join(f"; {note}" for note in reading.notes)
        if stopped:
            said += "; the context was destroyed at the first, nothing after it was observed"
        evidence = Evidence(source, Seen.SEEN, said)
        return Weighed(Status.FAULT, located.findings, evidence, "", stopped)
    if fatal:
        said = f"fault, site unknown: CUDA error {fatal[0]} and no record of an access; coredump"
        evidence = Evidence(source, Seen.SEEN, f"{said} is the lane that names the kernel")
        return Weighed(Status.FAULT, (), evidence, said, stopped)
    return Weighed(Status.CLEAN, (), Evidence(source, Seen.NONE, reading.outcome.reason), "")


def same_error(one: int, other: int, check: str) -> bool:
    """Whether two CUDA errors are of one class. A plain run's illegal access (700) is 719 under
    memcheck, which destroys the context itself."""
    if check == "memcheck" and {one, other} <= {700, 719}:
        return True
    return one == other


def _doubt(reading: Reading, journal: Journal, located: Located, fatal: list[int]) -> str:
    """Why the run cannot be told; "" if it can."""
    if located.unread:
        shown = "; ".join(printable(line[:LONGEST]) for line in located.unread[:SHOWN])
        return f"{len(located.unread)} records of no known kind, or cut: {shown}"
    outcome = reading.outcome
    if outcome.verdict == "unknown":
        return outcome.reason
    if not outcome.header:
        return "no header of the tool"
    if outcome.not_printed or outcome.skipped:
        return f"{outcome.not_printed + outcome.skipped} records were left out"
    if outcome.verdict == "errors" and not located.findings and not fatal:
        if located.codes:
            return f"calls returned CUDA errors {', '.join(map(str, sorted(set(located.codes))))}"
        return f"{outcome.reason}, and no record says what"
    if outcome.verdict == "errors" and outcome.summary is None:
        return "records, but no summary: the tool did not come to its end"
    if outcome.verdict == "clean" and not journal.complete:
        return f"the tool found nothing, but {journal.complaint}"
    return ""
