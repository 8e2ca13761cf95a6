"""What `collect_env` said where an engine ran, as a record has it, or why it has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .document import Block, Code, Folded

Record = Mapping[str, Any]

COMMAND = "`python collect_env.py` prints it where the engine runs"
NONE = {
    "specrepro/run@1": "the run replays steps of an engine and starts none",
    "specrepro/bisect@1": "a bisection does not ask; `specrepro check --depth engine` does",
    "specrepro/diagnose@1": "logs were read, and no engine was started",
    "specrepro/cut@1": "the run was cut off",
}


@dataclass(frozen=True, slots=True)
class Told:
    """of: whose it is, "" where there is one only. output: "" without, and then `reason`."""

    of: str
    output: str
    reason: str


def told(record: Record) -> list[Told]:
    """What there is of every environment in which something ran; one reason where there is none."""
    schema = str(record["schema"])
    if schema == "specrepro/watch@1":
        return [_told("", record.get("collect_env"))]
    if schema == "specrepro/check@1":
        builds = record["builds"]
        if str(record["depth"]) == "engine" and builds:
            many = len(builds) > 1
            return [
                _told(f"vllm {build['version']}" if many else "", build.get("collect_env"))
                for build in builds
            ]
        why = f"depth {record['depth']} starts no engine"
        return [Told("", "", f"{why}; {COMMAND}")]
    return [Told("", "", f"{NONE.get(schema, 'it is not stored')}; {COMMAND}")]


def without(record: Record) -> Record:
    """The record without any such output, for what shows it elsewhere."""
    whole = {name: value for name, value in record.items() if name != "collect_env"}
    if record["schema"] == "specrepro/check@1":
        whole["builds"] = [
            {name: value for name, value in build.items() if name != "collect_env"}
            for build in record["builds"]
        ]
    return whole


def folded(found: Any) -> list[Block]:
    """The output of one environment, for a reader who opens it; nothing where there is none."""
    one = _told("", found)
    if not one.output:
        return []
    by = str(found.get("by") or "collect_env")
    if why := found.get("reason"):
        by += f" ({why})"
    return [Folded(f"Environment of the engine, by {by}", [Code(one.output, "text")])]


def unknown(found: Any) -> str:
    """Why it is not there; "" where it is, or where the record is of before it was asked for."""
    if not isinstance(found, Mapping) or found.get("output"):
        return ""
    return f"the engine's environment (collect_env): {found.get('reason') or 'not stored'}"


def _told(of: str, found: Any) -> Told:
    if not isinstance(found, Mapping):
        return Told(of, "", f"it is not stored with this run; {COMMAND}")
    output = str(found.get("output") or "")
    return Told(of, output, "" if output else str(found.get("reason") or "no reason was kept"))
