"""The forms of single lines of compute-sanitizer, without their prefix."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

R = TypeVar("R")

# kind of record, pattern of its first line. Groups are fields of `Record`.
FIRST_LINES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "access",
        re.compile(
            r"Invalid __(?P<space>\w{1,24}?)__ (?P<direction>\w{1,16}) "
            r"of size (?P<bytes>[\d,]{1,16})"
        ),
    ),
    (
        "api",
        re.compile(
            r"Program hit (?P<error>[A-Za-z_]\w{0,80}) \(error (?P<error_code>\d{1,6})\)"
            r"(?: due to \"(?P<message>[^\"]{0,200})\")?(?: on CUDA API call to (?P<api>\w{1,80}))?"
        ),
    ),
    (
        "api",
        re.compile(
            r"Program hit (?P<message>[^()]{1,200}) \(error (?P<error_code>\d{1,6})\)"
            r"(?: on CUDA API call to (?P<api>\w{1,80}))?"
        ),
    ),
    (
        "race",
        re.compile(
            r"(?P<level>(?i:error|warning|info)): Race reported between "
            r"(?P<direction>Read|Write|Atomic) access at "
            r"(?P<kernel>.{1,1000}?)(?:\+(?P<offset>0x[0-9a-fA-F]{1,16})"
            r"(?: in (?P<file>.{1,400}?):(?P<file_line>\d{1,9}))?)?\s*$"
        ),
    ),
    (
        "race",
        re.compile(
            r"(?P<level>(?i:error|warning|info)): (?:\([\w ]{1,40}\) )?"
            r"Potential (?P<reason>RAW|WAR|WAW) hazard detected at __(?P<space>\w{1,24}?)__ "
            r"(?P<address>0x[0-9a-fA-F]{1,16})(?: in block \((?P<block>[\d, ]{1,40})\))?"
        ),
    ),
    (
        "uninitialised",
        re.compile(
            r"Uninitialized __(?P<space>\w{1,24}?)__ memory (?P<direction>\w{1,16})"
            r"(?: of size (?P<bytes>[\d,]{1,16}))?"
        ),
    ),
    ("uninitialised", re.compile(r"Host API uninitialized memory access")),
    (
        "unused",
        re.compile(
            r"Unused (?:__(?P<space>\w{1,24}?)__ )?memory in allocation"
            r"(?: (?P<allocation>0x[0-9a-fA-F]{1,16}))?"
            r"(?: of size (?P<allocation_bytes>[\d,]{1,20}))?"
        ),
    ),
    (
        "barrier",
        re.compile(
            r"(?:Barrier error detected\.?|Warpgroup MMA sequence error detected) ?"
            r"(?P<reason>.{0,200})"
        ),
    ),
    (
        "leak",
        re.compile(r"Leaked (?P<bytes>[\d,]{1,20}) bytes at (?P<allocation>0x[0-9a-fA-F]{1,16})"),
    ),
    ("heap", re.compile(r"Malloc/Free error encountered ?:? ?(?P<reason>.{0,200})")),
    (
        "stream_order",
        re.compile(
            r"(?P<reason>.{0,200}is potentially accessed "
            r"(?:before it is allocated|after it is free'd).{0,100})"
        ),
    ),
)

_DETAILS = (
    # since 2023.3: at <signature>+0x<off>[ in <file>:<line>]; in the manual a colon for the plus
    re.compile(
        r"at (?P<kernel>[^ 0].{0,1000}?)[+:](?P<offset>0x[0-9a-fA-F]{1,16})"
        r"(?: in (?P<file>.{1,400}?):(?P<file_line>\d{1,9}))?$"
    ),
    # before: at 0x<off> in <file>:<line>:<signature>, at 0x<off> in <signature>
    re.compile(
        r"at (?P<offset>0x[0-9a-fA-F]{1,16}) in (?P<file>[^()]{1,400}?):(?P<file_line>\d{1,9}):"
        r"(?P<kernel>.{1,1000})$"
    ),
    re.compile(r"at (?P<offset>0x[0-9a-fA-F]{1,16}) in (?P<kernel>.{1,1000})$"),
    re.compile(
        r"by threads? \(?(?P<thread>\d{1,10}, ?\d{1,10}, ?\d{1,10})\)?"
        r"(?: (?:to|through) .{1,40}?)? in block \(?(?P<block>\d{1,10}, ?\d{1,10}, ?\d{1,10})\)?"
    ),
    # the three wordings of an address line; of initcheck "Uninitialized access to"
    re.compile(
        r"(?:Address|Access at|Access to|Uninitialized access (?:at|to)) "
        r"(?P<address>0x[0-9a-fA-F]{1,16})(?: is (?P<reason>.{1,200}))?"
    ),
    re.compile(
        r"and is (?P<distance>[\d,]{1,24}) bytes? (?P<side>before|after) the nearest allocation at "
        r"(?P<allocation>0x[0-9a-fA-F]{1,16}) of size (?P<allocation_bytes>[\d,]{1,24}) bytes?"
    ),
    re.compile(
        r"and is (?P<side>inside) the nearest allocation(?: at (?P<allocation>0x[0-9a-fA-F]{1,16})"
        r"(?: of size (?P<allocation_bytes>[\d,]{1,24}) bytes?)?)?"
    ),
    re.compile(r"and is located in the (?P<side>device heap)"),
)

# Lines that say the tool or its target did not come to a good end.
TOOL_FAILURES = (
    "Error: process didn't terminate successfully",
    "Error: Process didn't terminate successfully",
    "Process didn't terminate successfully",
    "Target application returned an error",
    "Target application terminated before first instrumented API call",
    "Target application doesn't exist",
    "Error: No attachable process found",
    "Error: Target application terminated",
    "Error: couldn't find exit code",
    "Error: Internal",
    "Internal Sanitizer Error",
    "Internal error",
    "Tracking kernels launched by child processes",
    "Unable to find injection library",
    "Device not supported",
    "Warning: Detected overflow of tracked",
)

_NUMBERS = {"bytes", "file_line", "distance", "allocation_bytes", "error_code"}


def number(text: str) -> int:
    """A count as printed, thousands commas and all. 0 for commas alone."""
    digits = text.replace(",", "")
    return int(digits) if digits else 0


@dataclass(frozen=True, slots=True)
class Detail:
    """Fields that one line adds to its record."""

    values: Mapping[str, str]

    def onto(self, record: R) -> R:
        """The record with the fields that it does not have yet."""
        known = {field.name for field in fields(record)}  # type: ignore[arg-type]
        fresh: dict[str, Any] = {
            name: _value(name, value)
            for name, value in self.values.items()
            if name in known and getattr(record, name) is None
        }
        return replace(record, **fresh) if fresh else record  # type: ignore[type-var]


def detail_of(text: str) -> Detail | None:
    """What an indented line adds; None for frames and for lines of no known form."""
    for pattern in _DETAILS:
        if found := pattern.match(text):
            return Detail({k: v for k, v in found.groupdict().items() if v is not None})
    return None


def _value(name: str, text: str) -> int | str:
    if name in _NUMBERS:
        return number(text)
    if name in ("thread", "block"):
        return text.replace(" ", "")
    if name == "direction":
        return text.lower()
    return text
