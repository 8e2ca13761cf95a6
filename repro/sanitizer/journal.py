"""What the process under the tool says of itself: where its tensors lie, what it launched.

One JSON object a line, written before the thing happens and flushed, so that a process that ends in
the middle of a launch has named it. The last line is the completion mark; a journal without it is
of a process that did not come to its end, whatever else says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

LARGEST = 64 << 20  # bytes
NAME = "journal.ndjson"


@dataclass(frozen=True, slots=True)
class Placed:
    """A tensor in device memory. address: of element 0, in bytes. reach: first and last address
    that belong to it and to nothing else, mapped or not; an access there is charged to it."""

    name: str
    address: int
    elements: int
    itemsize: int
    reach: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Launched:
    """A launch. entry: name of the kernel's function. requests: of each row (block x), or empty.
    ended: the device was waited for behind it, and reported no error."""

    index: int
    op: str
    entry: str
    step: int | None
    requests: tuple[int, ...]
    ended: bool


@dataclass(frozen=True, slots=True)
class Journal:
    """What a process wrote. complaint: why it is not whole, "" if it is."""

    placed: tuple[Placed, ...] = ()
    launched: tuple[Launched, ...] = ()
    complete: bool = False
    complaint: str = ""


class Writer:
    """Writes a journal, line by line."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._launches = 0

    def tensor(
        self, name: str, address: int, elements: int, itemsize: int, reach: tuple[int, int]
    ) -> None:
        """A tensor of this name lies here from now on."""
        self._line(
            tensor=name, address=address, elements=elements, itemsize=itemsize, reach=list(reach)
        )

    def launch(
        self, index: int, op: str, entry: str, step: int | None, requests: list[int]
    ) -> None:
        """A launch is about to happen."""
        self._launches += 1
        self._line(launch=index, op=op, entry=entry, step=step, requests=requests)

    def ended(self, index: int) -> None:
        """The device was waited for behind a launch, without an error."""
        self._line(ended=index)

    def complete(self) -> None:
        """The process has done all that it was to do."""
        self._line(complete=self._launches)

    def _line(self, **values: Any) -> None:
        self._out.write(json.dumps(values) + "\n")
        self._out.flush()


def read(path: Path) -> Journal:
    """Read a journal. Never raises: what is missing or cannot be read is a complaint."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        return Journal(complaint=f"the process left no journal ({error.strerror})")
    if len(content) > LARGEST:
        return Journal(complaint=f"its journal is larger than {LARGEST >> 20} MiB")
    return parse(content)


def parse(content: bytes) -> Journal:
    """The journal of these bytes, as far as they can be read."""
    placed: list[Placed] = []
    launched: dict[int, Launched] = {}
    marked: int | None = None
    complaint = ""
    for raw in content.splitlines():
        try:
            if marked is not None:
                complaint = "its journal goes on behind its mark"
                break
            marked = _take(json.loads(raw), placed, launched)
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            complaint = "its journal holds a line that cannot be read"
            break
    launches = tuple(launched.values())
    if not complaint and content and not content.endswith(b"\n"):
        complaint = "its journal is cut"
    if not complaint and marked is None:
        complaint = "its journal has no completion mark"
    if not complaint and marked != len(launches):
        complaint = f"its mark counts {marked} launches, the journal has {len(launches)}"
    return Journal(tuple(placed), launches, not complaint, complaint)


def _take(
    line: Mapping[str, Any], placed: list[Placed], launched: dict[int, Launched]
) -> int | None:
    """Take in one line; the count of a completion mark, None for any other line."""
    if "tensor" in line:
        placed.append(_placed(line))
    elif "launch" in line:
        one = _launched(line)
        if one.index in launched:
            raise ValueError("a launch twice")
        launched[one.index] = one
    elif "ended" in line:
        at = _whole(line["ended"])
        launched[at] = replace(launched[at], ended=True)
    else:
        return _whole(line["complete"])
    return None


def _placed(line: Mapping[str, Any]) -> Placed:
    first, last = (_whole(one) for one in line["reach"])
    return Placed(
        str(line["tensor"]),
        _whole(line["address"]),
        _whole(line["elements"]),
        max(1, _whole(line["itemsize"])),
        (first, last),
    )


def _launched(line: Mapping[str, Any]) -> Launched:
    step = line["step"]
    return Launched(
        _whole(line["launch"]),
        str(line["op"]),
        str(line["entry"]),
        None if step is None else int(step),
        tuple(int(one) for one in line["requests"]),
        ended=False,
    )


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("not a whole number")
    return value
