"""Findings of a check in words: what a kernel of a build touched or wrote, one line each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..escape import printable

Record = Mapping[str, Any]


def sort(finding: Record) -> str:
    """Kind and tensor: what two builds may have in common."""
    return f"{str(finding['kind']).replace('_', ' ')} of {finding['tensor'] or 'no tensor'}"


def line(finding: Record) -> str:
    """`foreign read of block_table, element 4 to 7, at vllm/x.py:78, request 5; lands in …`."""
    text = sort(finding)
    if finding["elements"]:
        first, last = finding["elements"]
        text += f", element {first}" + (f" to {last}" if last != first else "")
    if finding["expected"] is not None or finding["got"] is not None:
        text += f": {finding['got']} instead of {finding['expected']}"
    if finding["source"]:
        text += f", {finding['source']['file']}:{finding['source']['line']}"
    if finding["request"] is not None:
        text += f", request {finding['request']}"
    if finding["step"] is not None:
        text += f", step {finding['step']}"
    if finding["lands_in"]:
        how = "that is" if finding["kind"] == "wrong_value" else "lands in"
        text += f"; {how} {finding['lands_in']}"
    return printable(text)


def of_builds(builds: list[Record]) -> Iterator[tuple[str, str, list[tuple[Record, Record]]]]:
    """(probe, sort, its (build, finding)s) of every sort of finding, in the order of the page."""
    found: dict[tuple[str, str], list[tuple[Record, Record]]] = {}
    order: dict[str, None] = {}
    for build in builds:
        for row in build["evidence"]:
            order.setdefault(row["probe"])
            for one in row.get("findings", ()):
                kept = found.setdefault((row["probe"], sort(one)), [])
                if not any(known is build for known, _ in kept):
                    kept.append((build, one))
    for probe in order:
        for (name, kind), kept in found.items():
            if name == probe:
                yield probe, kind, kept
