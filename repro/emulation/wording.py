"""A finding in words: what was touched, by whom, where."""

from __future__ import annotations

from ..records import Finding, Kind

# Where an access lands that belongs to no memory of the launch.
ADDRESSES = ("no tensor", "null pointer")
PLAIN = {
    Kind.TRAP: "trap",
    Kind.SHARED_RACE: "race on shared memory",
    Kind.DIVERGENT_BARRIER: "barrier that not all threads reach",
    Kind.HANG: "launch that cannot end",
}


def what(finding: Finding, tensor: str | None) -> str:
    """What happened. tensor: the buffer as a reader knows it, such as `x f32[100]`."""
    if finding.kind is Kind.TRAP and finding.got:
        return f"assertion failed: {finding.got}"
    if finding.kind in PLAIN:
        return PLAIN[finding.kind] + _element(finding, tensor) + _many(finding)
    name = str(finding.kind)
    access = "write" if name.endswith("write") else "read" if name.endswith("read") else "access"
    adjective = {
        Kind.MISALIGNED_ACCESS: "misaligned ",
        Kind.UNINITIALISED_READ: "uninitialised ",
        Kind.FOREIGN_READ: "foreign ",
        Kind.FOREIGN_WRITE: "foreign ",
    }.get(finding.kind, "")
    text = f"{adjective}{access} of {finding.width} bytes{_element(finding, tensor)}"
    if finding.bytes_past_end == 0:
        text += ", first byte past its end"
    elif finding.bytes_past_end:
        text += f", {finding.bytes_past_end} bytes past its end"
    elif finding.elements and finding.elements[0] < 0:
        text += ", before its start"
    return text + _many(finding)


def _many(finding: Finding) -> str:
    """How many were touched, and up to where if that does not follow."""
    if finding.elements is None or finding.count is None or finding.count < 2:
        return ""
    first, last = finding.elements
    text = f", {finding.count} {_unit(finding)}s"
    if last - first + 1 > finding.count:
        text += f" up to {last}"
    return text


def _unit(finding: Finding) -> str:
    return "element" if finding.tensor else "byte"


def _element(finding: Finding, tensor: str | None) -> str:
    if finding.elements is None:
        return ""
    name = tensor or finding.tensor
    if name:
        return f" at element {finding.elements[0]} of {name}"
    if finding.lands_in in ADDRESSES:
        return f" at address {finding.elements[0]:#x}"
    return f" at byte {finding.elements[0]}"  # of shared or local memory


def who(finding: Finding) -> str:
    """The first thread that did it, and how many did."""
    if finding.block is None or finding.thread is None:
        return ""
    block, thread = (", ".join(map(str, triple)) for triple in (finding.block, finding.thread))
    text = f"block ({block}), thread ({thread})"
    if finding.threads and finding.threads > 1:
        text += f" and {finding.threads - 1} more"
    return text


def located(finding: Finding, tensor: str | None) -> str:
    """All of it on one line, for an exception or a log."""
    text = f"{finding.kind}: {what(finding, tensor)}"
    if finding.source:
        text += f" at {finding.source.file}:{finding.source.line}"
    if finding.op:
        text += f" in {finding.op}"
    if who(finding):
        text += f", by {who(finding)}"
    if finding.lands_in:
        text += f"; {landing(finding)} {finding.lands_in}"
    return text


def landing(finding: Finding) -> str:
    """What stands before `lands_in`, which for a race has the other side too."""
    return "in" if finding.kind is Kind.SHARED_RACE else "lands in"
