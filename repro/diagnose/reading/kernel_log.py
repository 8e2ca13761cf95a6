"""The kernel's word: Xids, SXids, the GPU off the bus, the host's out-of-memory killer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..facts import Value
from .line import Following, Found, Line, Parser, State, joined

if TYPE_CHECKING:
    from ...watch.xid import Xid

_OTHER: tuple[tuple[str, str], ...] = (
    ("fallen off the bus", "bus_loss"),
    ("RC watchdog", "watchdog"),
    ("GSP", "gsp"),
    ("NVLink", "nvlink"),
)


def xid_values(xid: Xid) -> dict[str, Value]:
    """Values of the fact `xid`, with the catalog's row."""
    from ...watch.xid import entry

    row = entry(xid.code)
    return {
        "code": xid.code,
        "mnemonic": row.mnemonic if row else None,
        "class": row.kind if row else "unknown",
        "fault": xid.fault,
        "bus": xid.bus,
        "pid": xid.pid,
        "process_name": xid.name,
        "body": xid.body[:400],
        "access": xid.access,
        "fault_type": xid.fault_type,
        "engine": xid.engine,
        "client": xid.client,
        "address": xid.address,
        "detail": xid.detail,
        "caused_by": xid.caused_by,
        "action": row.action if row else None,
    }


def _driver(line: Line, following: Following, _: State) -> Iterator[Found]:
    from ...watch.xid import is_complete, read_sxid, read_xid

    text = line.text
    if xid := read_xid(text):
        if not is_complete(xid):
            xid = read_xid(joined(line, following, 3)) or xid
        yield Found("xid", xid_values(xid))
        return
    if sxid := read_sxid(text):
        code, bus, body = sxid
        yield Found("sxid", {"code": code, "bus": bus, "body": body[:400]})
        return
    if found := re.search(
        r"NVRM: GPU at (?:PCI:)?([0-9a-fA-F:.]{4,16}): (GPU-[0-9a-f\-]{8,40})", text
    ):
        values = {"name": found[2], "index": found[1], "capability": None, "count": None}
        yield Found("gpu", values)
        return
    if found := re.search(r"NVRM: loading NVIDIA UNIX.{0,60}? (\d{3}\.\d{2,3}(?:\.\d{2})?)", text):
        yield Found("library", {"name": "driver", "version": found[1]})
        return
    what = next((what for word, what in _OTHER if word in text), None)
    if what and "NVRM" in text:
        yield Found("kernel_log", {"what": what, "body": text[:400]})


def _host(line: Line, _: Following, __: State) -> Iterator[Found]:
    text = line.text
    if re.search(r"(?:Out of memory|Memory cgroup out of memory): Killed process \d", text):
        killed = re.search(r"Killed process \d{1,10} \(([^)]{1,64})\)", text)
        name = killed[1] if killed else None
        yield Found("oom", {"where": "host", "wanted": name, "fault": "out_of_memory"})
    elif "AER: " in text or "[Hardware Error]" in text:
        what = "aer" if "AER: " in text else "mce"
        yield Found("kernel_log", {"what": what, "body": text[:400]})


PARSERS = (
    Parser(("NVRM:", "SXid ("), _driver),
    Parser(("Killed process", "AER: ", "[Hardware Error]"), _host),
)
