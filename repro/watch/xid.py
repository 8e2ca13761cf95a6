"""Xid messages of the kernel log, and what their codes mean (`xid_catalog.yaml`).

The driver prints `NVRM: Xid (PCI:<dom>:<bus>:<dev>[ GPU-I:nn[ GPU-CI:nn]]): <code>, [pid=…,
name=…, ]<body>` (krcReportXid of the open kernel modules). Only that prefix is stable: the body
comes from firmware, is kept raw, and its fields are read where they are there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CLASSES = ("application", "hardware", "driver", "either", "consequence", "information")

# `\b` keeps SXid, which NVSwitches report, out.
_HEAD = re.compile(
    r"NVRM: (?:GPU \d+ )?\bXid \((?:PCI:)?(?P<bus>[0-9a-fA-F:.]{4,16})"
    r"(?: GPU-I:\d+)?(?: GPU-CI:\d+)?\): (?P<code>\d{1,5})(?:, ?|$)"
)
_PROCESS = re.compile(
    r"pid='?(?P<pid>\d{1,10}|<unknown>)'?(?:, name='?(?P<name>[^,']{0,64})'?)?(?:, |$)"
)
_SXID = re.compile(
    r"nvidia-nvswitch\d*: SXid \((?:PCI:)?(?P<bus>[0-9a-fA-F:.]{4,16})\): (?P<code>\d+)"
)
_FAULT = re.compile(
    r"MMU Fault: ENGINE (?P<engine>\w{1,32}) (?P<client>[\w ]{1,48}?) faulted @ "
    r"0x(?P<high>[0-9a-fA-F]{1,16})(?:_(?P<low>[0-9a-fA-F]{1,16}))?"
)
_TYPE = re.compile(r"Fault is of type FAULT_(?P<type>\w{1,32})")
_ACCESS = re.compile(r"ACCESS_TYPE_(?:VIRT|PHYS)_(?P<access>\w{1,24})")
_DETAIL = re.compile(
    r"(?:Exception on \([^)]{0,60}\): (?P<kind>[A-Za-z ]{1,60}[A-Za-z])"
    r"|(?P<esr>ESR 0x[0-9a-fA-F]+=0x[0-9a-fA-F]+))"
)
_CAUSED_BY = re.compile(r"caused by previous Xid (\d{1,5})")

_DETAIL_FAULTS = {
    "Out Of Range Address": "illegal_access",
    "MMU Fault": "illegal_access",
    "Invalid Address Space": "illegal_access",
    "Misaligned Address": "misaligned_access",
    "Illegal Instruction Encoding": "illegal_instruction",
    "Illegal Instruction Parameter": "illegal_instruction",
}
_CODE_FAULTS = {31: "illegal_access", 48: "ecc", 94: "contained", 95: "ecc", 74: "nvlink"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the catalog. kind: one of CLASSES. source: of mnemonic and action, in words, which
    say so where they were not checked.
    """

    code: int
    mnemonic: str
    meaning: str
    kind: str
    action: str
    source: str


@dataclass(frozen=True, slots=True)
class Xid:
    """An Xid message. Fields are None where the message has none.

    bus: PCI address as printed. pid: of the host, not of a container. address: "0x…" without the
    driver's underscore. access: READ, WRITE, ATOMIC… of a virtual access. fault: what it says a
    kernel did (illegal_access, misaligned_access, …), where the body or the code alone says so.
    """

    code: int
    bus: str
    body: str
    pid: int | None = None
    name: str | None = None
    engine: str | None = None
    client: str | None = None
    address: str | None = None
    access: str | None = None
    fault_type: str | None = None
    detail: str | None = None
    fault: str | None = None
    caused_by: int | None = None


def read_xid(message: str) -> Xid | None:
    """The Xid that a kernel message reports; None for any other text. Never raises.

    `message` may begin with a carrier (a stamp, a host): the grammar starts at `NVRM:`.
    """
    head = _HEAD.search(message)
    if head is None:
        return None
    body = message[head.end() :].strip()
    pid = name = None
    if process := _PROCESS.match(body):
        pid = int(process["pid"]) if process["pid"].isdecimal() else None
        name = process["name"] if process["name"] not in ("", "<unknown>") else None
        body = body[process.end() :].strip()
    code = int(head["code"])
    fault, kind, access = _FAULT.search(body), _TYPE.search(body), _ACCESS.search(body)
    found, caused = _DETAIL.search(body), _CAUSED_BY.search(body)
    detail = (found["kind"] or found["esr"]) if found else None
    return Xid(
        code=code,
        bus=head["bus"],
        body=body,
        pid=pid,
        name=name,
        engine=fault["engine"] if fault else None,
        client=fault["client"] if fault else None,
        address=f"0x{fault['high']}{fault['low'] or ''}".lower() if fault else None,
        access=access["access"] if access else None,
        fault_type=kind["type"] if kind else None,
        detail=detail,
        fault=_DETAIL_FAULTS.get(detail or "", _CODE_FAULTS.get(code)),
        caused_by=int(caused[1]) if caused else None,
    )


def is_complete(xid: Xid) -> bool:
    """Whether the message reaches its end, as far as its form tells: a 31 ends in the access."""
    return xid.code != 31 or xid.access is not None or "MMU Fault" not in xid.body


def read_sxid(message: str) -> tuple[int, str, str] | None:
    """Code, PCI address and body of an NVSwitch's SXid; None for any other text."""
    found = _SXID.search(message)
    if found is None:
        return None
    return int(found["code"]), found["bus"], message[found.end() :].lstrip(", ").strip()


def entry(code: int) -> Entry | None:
    """The catalog's row; None for a code that it does not have, which is unknown, not harmless."""
    return catalog().get(code)


@cache
def catalog() -> Mapping[int, Entry]:
    """The catalog by code."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    path = Path(__file__).with_name("xid_catalog.yaml")
    data = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506
    return {
        code: Entry(
            code,
            row["mnemonic"],
            row["meaning"],
            row["class"],
            row["action"],
            data["sources"][row.get("source", "catalog")],
        )
        for code, row in data["codes"].items()
    }
