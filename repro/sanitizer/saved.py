"""The XML that compute-sanitizer saves, as the same records its text gives.

There is no published schema: element names are from the tool's manual and from its own binary. What
is not known is passed over, and a file that declares a document type or an entity, is cut or is no
XML is refused whole. Nearest allocations have no element; the text has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from .text import KEPT, Record

ROOT = "ComputeSanitizerOutput"
LARGEST = 64 << 20  # bytes
MOST_RECORDS = 100_000
DEEPEST = 16
LONGEST = 4000  # characters of one field that are kept
KINDS = {
    "Precise": "access",
    "Imprecise": "access",
    "Api": "api",
    "Initcheck": "uninitialised",
    "InitcheckApi": "uninitialised",
    "UnusedMemory": "unused",
    "Synccheck": "barrier",
    "RacecheckHazard": "race",
    "RacecheckAnalysis": "race",
    "Leakcheck": "leak",
    "StreamOrdered": "stream_order",
}


@dataclass(frozen=True, slots=True)
class Saved:
    """What the file holds. complaint: why it cannot be relied upon, "" if it can. missing: there is
    no file, which the tool leaves out where the target never used CUDA."""

    records: tuple[Record, ...] = ()
    complaint: str = ""
    missing: bool = False


class _RefusedError(Exception):
    """The file is not what the tool writes; the message says why."""


def read(path: Path) -> Saved:
    """Read a saved file. Never raises: what cannot be read is a complaint."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except FileNotFoundError:
        return Saved(complaint="no XML was written", missing=True)
    except OSError as error:
        return Saved(complaint=f"the XML cannot be read: {error.strerror}")
    if len(content) > LARGEST:
        return Saved(complaint=f"the XML is larger than {LARGEST >> 20} MiB")
    return parse(content)


def parse(content: bytes) -> Saved:
    """The records of a file's bytes, those before the place where it cannot be read included."""
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = reader.refuse
    parser.EntityDeclHandler = reader.refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        said = f"the XML cannot be read (line {error.lineno})"
        return Saved(tuple(reader.records), said)
    except _RefusedError as error:
        return Saved(tuple(reader.records), f"the XML is refused: {error}")
    return Saved(tuple(reader.records))


@dataclass(slots=True)
class _Reader:
    """Gathers the fields of each record by the path of their elements."""

    records: list[Record] = field(default_factory=list)
    path: list[str] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)
    frames: list[dict[str, str]] = field(default_factory=list)

    def refuse(self, *_: object) -> None:
        raise _RefusedError("it declares a document type")

    def start(self, name: str, _: object) -> None:
        if not self.path and name != ROOT:
            raise _RefusedError("it is no output of the tool")
        if len(self.path) >= DEEPEST:
            raise _RefusedError("it is too deep")
        self.path.append(name)
        if len(self.path) == 2:
            self.fields, self.frames = {}, []
            if len(self.records) >= MOST_RECORDS:
                raise _RefusedError(f"it has more than {MOST_RECORDS} records")
        elif name == "frame":
            self.frames.append({})

    def text(self, characters: str) -> None:
        if len(self.path) < 3:
            return
        known, key = self.fields, "/".join(self.path[2:])
        if "frame" in self.path and self.frames:
            known, key = self.frames[-1], self.path[-1]
        before = known.get(key, "")
        if len(before) < LONGEST:
            known[key] = (before + characters)[:LONGEST]

    def end(self, _: str) -> None:
        name = self.path.pop()
        if len(self.path) == 1 and name == "record":
            self.records.append(_record(self.fields, self.frames, len(self.records) + 1))


def _record(fields: Mapping[str, str], frames: list[dict[str, str]], number: int) -> Record:
    said = {name: text.strip() for name, text in fields.items() if text.strip()}

    def first(*names: str) -> str | None:
        return next((said[name] for name in names if name in said), None)

    named = first("kind") or ""
    space, direction = first("what/space"), first("what/direction")
    return Record(
        KINDS.get(named, "other"),
        first("what/text") or named,
        number,
        level=first("level"),
        space=space.strip("_").lower() if space else None,
        direction=direction.lower() if direction else None,
        bytes=_number(first("what/accessSize", "what/size")),
        kernel=first("where/func"),
        offset=_address(first("where/offset", "where/pc")),
        file=first("where/path", "where/file"),
        file_line=_number(first("where/line")),
        thread=_triple(said, "who/threadIdx"),
        block=_triple(said, "who/blockIdx"),
        address=_address(first("what/accessAddress", "what/address")),
        api=first("what/api"),
        error=first("what/error"),
        error_code=_number(first("what/result")),
        message=first("what/message"),
        frames=tuple(_frame(one) for one in frames[:KEPT]),
        dropped=max(0, len(frames) - KEPT),
    )


def _triple(said: Mapping[str, str], name: str) -> str | None:
    parts = [said.get(f"{name}/{axis}", "") for axis in "xyz"]
    return ",".join(parts) if all(_number(part) is not None for part in parts) else None


def _number(text: str | None) -> int | None:
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > 18:
        return None
    return int(text)


def _address(text: str | None) -> str | None:
    """`0x…`, of hexadecimal or decimal text; None for anything else."""
    if text is None or len(text) > 20:
        return None
    try:
        value = int(text, 16) if text.lower().startswith("0x") else int(text)
    except ValueError:
        return None
    return f"{value:#x}" if value >= 0 else None


def _frame(fields: Mapping[str, str]) -> str:
    said = {name: text.strip() for name, text in fields.items()}
    where = said.get("path") or said.get("file") or said.get("module") or ""
    line = f":{said['line']}" if said.get("line") else ""
    return f"Frame: {said.get('func', '?')}" + (f" in {where}{line}" if where else "")
