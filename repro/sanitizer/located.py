"""From records of the tool to findings: tensor, elements, launch. Pure.

The tool knows addresses and driver allocations. The process under it says which tensor lies where
and what it launched, and with that a record is a finding as the other lanes have them. What cannot
be told stays None; a record that is no finding at all is handed back, never dropped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..findings import bytes_past_end, ranges
from ..records import Finding, Kind, Source
from .journal import Journal, Launched, Placed
from .text import Record

# A fault that ends the context: 719 under memcheck is the plain run's 700.
FATAL = frozenset({700, 715, 716, 717, 718, 719})
_FOLDER = "kernels/"


@dataclass(frozen=True, slots=True)
class Located:
    """findings: of the records that are some. codes: of CUDA errors that calls returned. unread:
    first lines of records that are neither, or are not whole."""

    findings: tuple[Finding, ...]
    codes: tuple[int, ...]
    unread: tuple[str, ...]


@dataclass(slots=True)
class _Group:
    """Records of one fault: kind × launch × line × tensor × width."""

    first: Record
    tensor: Placed | None
    launch: Launched | None
    elements: set[int] = field(default_factory=set)
    threads: set[tuple[str | None, str | None]] = field(default_factory=set)


def locate(records: Sequence[Record], journal: Journal) -> Located:
    """Findings of a run, in order of their first record."""
    groups: dict[tuple[object, ...], _Group] = {}
    codes: list[int] = []
    unread: list[str] = []
    for record in records:
        if (record.level or "").lower() == "info" and record.complete:
            continue
        kind = _kind(record)
        if record.kind == "api" and record.error_code is not None and record.complete:
            codes.append(record.error_code)
            continue
        if kind is None or not record.complete:
            unread.append(record.first)
            continue
        tensor = _tensor(record, journal)
        launch = _launch(record, journal)
        row = _request(record, launch)
        key = (kind, launch, record.file, record.file_line, tensor, record.bytes, row)
        if key not in groups:
            groups[key] = _Group(record, tensor, launch)
        groups[key].threads.add((record.block, record.thread))
        if tensor is not None:
            groups[key].elements |= _elements(record, tensor)
    findings = [
        finding
        for key, group in groups.items()
        for finding in _findings(key[0], group)  # type: ignore[arg-type]
    ]
    return Located(tuple(findings), tuple(codes), tuple(unread))


def _kind(record: Record) -> Kind | None:
    """The kind of finding that a record is; None where it is none of ours."""
    if record.kind == "access":
        if (record.reason or "").startswith("misaligned"):
            return Kind.MISALIGNED_ACCESS
        if record.space in ("shared", "remote_shared"):
            return Kind.SHARED_OUT_OF_BOUNDS
        if record.space == "global" and record.direction in ("read", "write", "atomic"):
            read = record.direction == "read"
            return Kind.OUT_OF_BOUNDS_READ if read else Kind.OUT_OF_BOUNDS_WRITE
        return None
    return {
        "race": Kind.SHARED_RACE,
        "uninitialised": Kind.UNINITIALISED_READ,
        "barrier": Kind.DIVERGENT_BARRIER,
    }.get(record.kind)


def _tensor(record: Record, journal: Journal) -> Placed | None:
    """The tensor in whose reach the address is. A name that was placed again lies at the last."""
    if record.address is None or record.space not in (None, "global"):
        return None
    address = int(record.address, 16)
    for one in reversed(journal.placed):
        if one.reach[0] <= address <= one.reach[1]:
            return one
    return None


def _elements(record: Record, tensor: Placed) -> set[int]:
    start = int(record.address or "0", 16) - tensor.address
    last = start + max(1, record.bytes or 1) - 1
    return set(range(start // tensor.itemsize, last // tensor.itemsize + 1))


def _launch(record: Record, journal: Journal) -> Launched | None:
    """The launch to blame: the one that was under way when the context went, else the only one of
    the kernel. None where several may be meant."""
    same = [one for one in journal.launched if _names(record, one.entry)]
    unended = [one for one in journal.launched if not one.ended]
    if len(unended) == 1 and record.kind == "access":
        return unended[0] if unended[0] in same else None
    return same[0] if len(same) == 1 else None


def _names(record: Record, entry: str) -> bool:
    """Whether a record is of this kernel; an inlined function's caller is among its frames."""
    said = [record.kernel, *(f.partition("Frame:")[2] for f in record.frames if "Device" in f)]
    return any(_plain(one) == entry for one in said if one)


def _plain(signature: str) -> str:
    """`kv_write` of `void ns::kv_write<2>(const short *, long)+0x40 in kernel.cu:3`."""
    words = re.split(r"[(<+]", signature, maxsplit=1)[0].split()
    return words[-1].rpartition("::")[2] if words else ""


def _request(record: Record, launch: Launched | None) -> int | None:
    block = _triple(record.block)
    if launch is None or block is None or not 0 <= block[0] < len(launch.requests):
        return None
    request = launch.requests[block[0]]
    return request if request >= 0 else None


def _findings(kind: Kind, group: _Group) -> list[Finding]:
    record, tensor, launch = group.first, group.tensor, group.launch
    stretches: list[tuple[int, int] | None] = [*ranges(sorted(group.elements))] or [None]
    return [
        Finding(
            kind,
            launch=launch.index if launch else -1,
            op=launch.op if launch else _plain(record.kernel or "") or None,
            tensor=tensor.name if tensor else None,
            elements=stretch,
            count=None if stretch is None else stretch[1] - stretch[0] + 1,
            bytes_past_end=_past(stretch, tensor),
            width=record.bytes,
            block=_triple(record.block),
            thread=_triple(record.thread),
            threads=len(group.threads),
            source=_source(record),
            request=_request(record, launch),
            step=launch.step if launch else None,
            lands_in=_lands_in(record),
            got=record.reason if record.kind in ("barrier", "race") else None,
        )
        for stretch in stretches
    ]


def _past(stretch: tuple[int, int] | None, tensor: Placed | None) -> int | None:
    if stretch is None or tensor is None:
        return None
    return bytes_past_end(stretch[0], tensor.elements, tensor.itemsize)


def _lands_in(record: Record) -> str | None:
    if record.distance is None or record.allocation_bytes is None:
        return None
    size = f"{record.allocation_bytes:,} bytes"
    return f"{record.distance:,} bytes {record.side} an allocation of {size}"


def _source(record: Record) -> Source | None:
    """The line as the other lanes name it: relative to the package where it lies in a kernel."""
    if not record.file or not record.file_line:
        return None
    _, found, rest = f"/{record.file}".rpartition(f"/{_FOLDER}")
    name = f"{_FOLDER}{rest}" if found else record.file.rpartition("/")[2]
    return Source(name, record.file_line)


def _triple(text: str | None) -> tuple[int, int, int] | None:
    parts = (text or "").split(",")
    if len(parts) != 3 or not all(p.isdigit() and len(p) < 12 for p in parts):
        return None
    x, y, z = (int(part) for part in parts)
    return x, y, z
