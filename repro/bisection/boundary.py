"""What else changed where the verdict changes: files, answers, defaults, dependencies. Pure.

A boundary by itself says "between these two"; a default that moved there, or a dependency, may be
all that the verdict turned on.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email import message_from_bytes
from typing import Any

from ..check.exposure import SETTINGS
from ..escape import printable
from .repository import SHA

REPOSITORY = "https://github.com/vllm-project/vllm"
# A diff of longer files is not counted: its time grows with the product of their lengths.
MOST_LINES = 15_000


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two builds: its name, its record as `check` made it (None if a person decided
    about it), files of the defect's code by path, METADATA; None for what could not be read.
    defaults: rows of evidence about its defaults, where the record has none of its own."""

    build: str
    row: Mapping[str, Any] | None = None
    files: Mapping[str, bytes] | None = None
    metadata: bytes | None = None
    defaults: Sequence[Mapping[str, Any]] = ()


def boundary(before: Side, after: Side) -> dict[str, Any]:
    """The part `boundary` of a bisect record.

    compare: a link to the commits between. files: of the defect's code, `{path, change, added,
    removed}`, lines as a unified diff counts them, null where they are too many to compare.
    answers: probes whose value differs. defaults, dependencies, python: what differs, `{…, before,
    after}`. unknown: what could not be compared, in words. notes: what is known of both, in words.
    """
    unknown = []
    if before.row is None or after.row is None:
        unknown.append("answers and defaults: a person decided about one of the two builds")
    unknown += _unknown_defaults(before, after)
    unknown += [
        f"files: those of {_short(side.build)} cannot be read"
        for side in (before, after)
        if side.files is None
    ]
    old, new = _requirements(before.metadata), _requirements(after.metadata)
    if old is None or new is None:
        side = before if old is None else after
        unknown.append(f"dependencies: {_short(side.build)} has no METADATA that can be read")
    names = sorted({*(old or {}), *(new or {})}) if old is not None and new is not None else []
    return {
        "previous": before.build,
        "build": after.build,
        "commits": {"previous": _commit(before), "build": _commit(after)},
        "compare": f"{REPOSITORY}/compare/{_tag(before.build)}...{_tag(after.build)}",
        "files": _files(before.files, after.files)
        if before.files is not None and after.files is not None
        else [],
        "answers": _answers(before.row, after.row),
        "defaults": _defaults(before, after),
        "dependencies": [
            {"name": name, "before": (old or {}).get(name), "after": (new or {}).get(name)}
            for name in names
            if name != PYTHON and (old or {}).get(name) != (new or {}).get(name)
        ],
        "python": {"before": (old or {}).get(PYTHON), "after": (new or {}).get(PYTHON)},
        "unknown": unknown,
        "notes": [],
        "switches": [],
        "cross_tests": [],
    }


def of_a_change(previous: str, build: str) -> dict[str, Any]:
    """The part `boundary` where a change was put between the builds on purpose: what differs
    between the releases did not make it."""
    said = "what differs between the two releases: the boundary is of a change that was injected"
    empty = boundary(Side(previous), Side(build))
    return empty | {"compare": None, "unknown": [said]}


PYTHON = "Requires-Python"


def _requirements(metadata: bytes | None) -> dict[str, str] | None:
    """Package → what is wanted of it, without extras; and Requires-Python. None: not readable."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    if metadata is None:
        return None
    message = message_from_bytes(metadata)
    found: dict[str, list[str]] = {}
    for line in message.get_all("Requires-Dist", []):
        try:
            wanted = Requirement(str(line))
        except InvalidRequirement:
            return None
        if wanted.marker is not None and "extra" in str(wanted.marker):
            continue
        where = f" where {wanted.marker}" if wanted.marker else ""
        found.setdefault(canonicalize_name(wanted.name), []).append(
            (str(wanted.specifier) or wanted.url or "any") + where
        )
    python = {PYTHON: str(message["Requires-Python"])} if message["Requires-Python"] else {}
    return {name: "; ".join(sorted(texts)) for name, texts in found.items()} | python


def excluded(metadata: bytes | None, name: str, version: str) -> str:
    """What the requirements of a build say against a version of a package; "" for nothing, which
    includes what they do not speak of."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    if metadata is None:
        return ""
    for line in message_from_bytes(metadata).get_all("Requires-Dist", []):
        try:
            wanted = Requirement(str(line))
        except InvalidRequirement:
            continue  # the installer will say what it makes of it
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        if canonicalize_name(wanted.name) != name:
            continue
        if not wanted.specifier.contains(version, prereleases=True):
            return printable(f"it wants {name} {wanted.specifier}")
    return ""


def _files(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> list[dict[str, Any]]:
    changed = []
    for path in sorted({*old, *new}):
        if old.get(path) == new.get(path):
            continue
        how = "added" if path not in old else "removed" if path not in new else "changed"
        added, removed = _lines(old.get(path, b""), new.get(path, b""))
        changed.append({"path": path, "change": how, "added": added, "removed": removed})
    return changed


def _lines(old: bytes, new: bytes) -> tuple[int | None, int | None]:
    before, after = (part.decode("utf-8", "replace").splitlines() for part in (old, new))
    if max(len(before), len(after)) > MOST_LINES:
        return None, None
    marks = [line[:1] for line in difflib.unified_diff(before, after, n=0, lineterm="")][2:]
    return marks.count("+"), marks.count("-")


def _answers(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    before, after = _evidence(old), _evidence(new)
    return [
        {
            "probe": probe,
            "defect": row["defect"],
            "before": before[probe]["value"],
            "after": row["value"],
            "where": {"before": before[probe]["where"], "after": row["where"]},
            "detail": {"before": before[probe]["detail"], "after": row["detail"]},
        }
        for probe, row in after.items()
        if probe in before
        # what was measured of an engine besides, as its memory, is no answer about a defect
        and row["defect"] is not None
        and probe not in {setting.probe for setting in SETTINGS.values()}
        and row["value"] != before[probe]["value"]
    ]


def _defaults(old: Side, new: Side) -> list[dict[str, Any]]:
    before, after = (_evidence(side.row, side.defaults) for side in (old, new))
    found = []
    for name, setting in SETTINGS.items():
        if setting.probe is None or not {setting.probe} <= before.keys() & after.keys():
            continue
        one, other = before[setting.probe]["value"], after[setting.probe]["value"]
        if not (isinstance(one, Mapping) and isinstance(other, Mapping)):
            continue
        found += [
            {"setting": name, "of": key, "before": one.get(key), "after": other.get(key)}
            for key in dict.fromkeys((*one, *other))
            if one.get(key) != other.get(key)
        ]
    return found


def _unknown_defaults(old: Side, new: Side) -> list[str]:
    sides = [_evidence(side.row, side.defaults) for side in (old, new)]
    return [
        f"default of {name}: not known of both builds"
        for name, setting in SETTINGS.items()
        if setting.probe is not None
        and any(
            setting.probe in side and not isinstance(side[setting.probe]["value"], Mapping)
            for side in sides
        )
    ]


def _evidence(
    row: Mapping[str, Any] | None, more: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Mapping[str, Any]]:
    rows: Sequence[Mapping[str, Any]] = [*(row["evidence"] if row else ()), *more]
    found: dict[str, Mapping[str, Any]] = {}
    for one in rows:
        found.setdefault(str(one["probe"]), one)
    return found


def _commit(side: Side) -> str | None:
    if SHA.fullmatch(side.build):
        return side.build
    return side.row["commit"] if side.row else None


def _tag(build: str) -> str:
    return build if SHA.fullmatch(build) else f"v{build}"


def _short(build: str) -> str:
    return build[:12] if SHA.fullmatch(build) else build
