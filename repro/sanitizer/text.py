"""The text that compute-sanitizer prints, all tools, versions 2020 to 2026, line by line.

Every line of the tool begins with its prefix (`=========`, or what `--prefix` said); all else is
the program's own output and is passed over. Forms are from the tool's manual and from the strings
of 12.9 and 13.5 (the three wordings of an address line, both forms of a location). A record whose
first line is not known is kept as `other`: new tools bring new records.

`clean` needs the header, a summary that counts no error, and no sign that the tool or the program
ended early. Silence is never clean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from .lines import FIRST_LINES, TOOL_FAILURES, Detail, detail_of, number

PREFIX = "========="
# A record keeps this many frames and unknown lines; the rest is counted in `dropped`.
KEPT = 64

_ANSI = re.compile(r"\x1b\[[0-9;?]{0,16}[A-Za-z]")
_SUMMARY = re.compile(r"(ERROR|LEAK|RACECHECK) SUMMARY: (.*)")
_COUNT = re.compile(r"([\d,]{1,20}) (?:errors?|hazards? displayed)")
_LEAKED = re.compile(r"([\d,]{1,20}) bytes leaked")
_NOT_PRINTED = re.compile(r"([\d,]{1,20}) errors? (?:was|were) not printed")
_SKIPPED = re.compile(r"([\d,]{1,20}) errors? (?:was|were) skipped")


@dataclass(frozen=True, slots=True)
class Record:
    """One record of the tool.

    kind: access, api, race, uninitialised, unused, barrier, leak, heap, stream_order, other.
    first: its first line, without prefix. line: number of that line. Numbers in bytes; addresses
    as "0x…"; block and thread as "x,y,z". `frames` are host and device frames as printed.
    complete: False where the input ended inside the record.
    """

    kind: str
    first: str
    line: int
    level: str | None = None
    space: str | None = None
    direction: str | None = None
    bytes: int | None = None
    kernel: str | None = None
    offset: str | None = None
    file: str | None = None
    file_line: int | None = None
    thread: str | None = None
    block: str | None = None
    address: str | None = None
    reason: str | None = None
    distance: int | None = None
    side: str | None = None
    allocation: str | None = None
    allocation_bytes: int | None = None
    api: str | None = None
    error: str | None = None
    error_code: int | None = None
    message: str | None = None
    frames: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()
    dropped: int = 0
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run of the tool came out: `clean`, `errors` or `unknown`, and why."""

    verdict: str
    reason: str
    header: bool
    summary: int | None
    not_printed: int = 0
    skipped: int = 0
    failures: tuple[str, ...] = ()


@dataclass(slots=True)
class Parser:
    """Fed one line at a time, in order; gives records as they end. Never raises on any text."""

    prefix: str = PREFIX
    header: bool = False
    summary: int | None = None
    not_printed: int = 0
    skipped: int = 0
    records: int = 0
    failures: list[str] = field(default_factory=list)
    _open: Record | None = None
    _of_run: bool = False  # the line before spoke of the run, and may go on

    def feed(self, text: str, line: int) -> Iterator[Record]:
        """Take one line (without its line end); yield the record that it ended, if it ended one."""
        if "\x1b" in text:
            text = _ANSI.sub("", text)
        start = text.find(self.prefix)
        if start < 0 or text[:start].strip():
            return
        body = text[start + len(self.prefix) :].rstrip()
        if body.startswith("="):
            return  # a rule of somebody else's
        stripped = body.strip()
        if not stripped:
            self._of_run = False
            yield from self._end()
        elif self._of_the_run(stripped):
            self._of_run = True
            yield from self._end()
        elif self._of_run and _indented(body) and _opened(stripped, line).kind == "other":
            return  # advice under a line that says how the run ended
        elif self._open is not None and _continues(body, stripped):
            self._open = _extended(self._open, stripped)
        else:
            self._of_run = False
            yield from self._end()
            self._open = _opened(stripped, line)

    def finish(self) -> Iterator[Record]:
        """The record that the end of the input cut off, if one was open."""
        if self._open is not None:
            self._open = replace(self._open, complete=False)
        yield from self._end()

    def outcome(self) -> Outcome:
        """The verdict on what was fed so far."""
        errors = self.summary if self.summary is not None else self.records
        verdict, reason = "unknown", ""
        if errors or self.records:
            verdict, reason = "errors", f"{max(errors, self.records)} reported"
        elif not self.header:
            reason = "no header of the tool"
        elif self.failures:
            reason = "; ".join(self.failures[:2])
        elif self.summary is None:
            reason = "no summary: the tool did not come to its end"
        elif self.not_printed or self.skipped:
            reason = "records were left out"
        else:
            verdict, reason = "clean", "header and summary are there, no error was counted"
        return Outcome(
            verdict,
            reason,
            self.header,
            self.summary,
            self.not_printed,
            self.skipped,
            tuple(self.failures),
        )

    def _end(self) -> Iterator[Record]:
        record, self._open = self._open, None
        if record is not None:
            if (record.level or "").lower() != "info":
                self.records += 1
            yield record

    def _of_the_run(self, text: str) -> bool:
        """Whether the line speaks of the run as a whole; if so it is taken note of."""
        if text.startswith("COMPUTE-SANITIZER"):
            self.header = True
        elif found := _SUMMARY.match(text):
            self._sum_up(found[1], found[2])
        elif found := _NOT_PRINTED.match(text):
            self.not_printed += number(found[1])
        elif found := _SKIPPED.match(text):
            self.skipped += number(found[1])
        elif text.startswith(TOOL_FAILURES):
            if len(self.failures) < KEPT:
                self.failures.append(text[:200])
        else:
            return False
        return True

    def _sum_up(self, of: str, text: str) -> None:
        found = (_LEAKED if of == "LEAK" else _COUNT).match(text)
        if found is None:
            self.failures.append(f"summary not understood: {text[:100]}")
        elif of == "LEAK":
            # leaks count in the error summary too, where there is one
            self.summary = max(self.summary or 0, int(number(found[1]) > 0))
        else:
            # one summary a process: several children of one run add up
            self.summary = (self.summary or 0) + number(found[1])


def parse(text: str, prefix: str = PREFIX) -> tuple[list[Record], Outcome]:
    """All records of a text and how the run came out."""
    parser = Parser(prefix)
    lines = enumerate(text.splitlines(), start=1)
    records = [record for number_, line in lines for record in parser.feed(line, number_)]
    records += parser.finish()
    return records, parser.outcome()


def _opened(text: str, line: int) -> Record:
    for kind, pattern in FIRST_LINES:
        if found := pattern.match(text):
            values = {name: value for name, value in found.groupdict().items() if value is not None}
            detail = Detail(values)
            return detail.onto(Record(kind, text[:400], line))
    return Record("other", text[:400], line)


def _indented(body: str) -> bool:
    return len(body) - len(body.lstrip()) > 1


def _continues(body: str, text: str) -> bool:
    """Whether the line belongs to the record before it: they are indented further."""
    if _indented(body):
        return True
    # pasted text may have lost its indentation
    known = text.startswith(("Saved host", "and ", "Not written")) or "Frame:" in text
    return known or detail_of(text) is not None


def _extended(record: Record, text: str) -> Record:
    detail = detail_of(text)
    if detail is not None:
        return detail.onto(record)
    if text.startswith("Saved host backtrace"):
        return record
    if "Frame:" in text and len(record.frames) < KEPT:
        return replace(record, frames=(*record.frames, text[:400]))
    if "Frame:" not in text and len(record.rest) < KEPT:
        return replace(record, rest=(*record.rest, text[:400]))
    return replace(record, dropped=record.dropped + 1)
