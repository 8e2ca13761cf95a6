"""What changed between two stored runs: the machine, the builds, the outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import UsageError
from .document import Block, Bullets, Document, Facts, Line, Mono, Paragraph, Section, Strong, Table

Record = Mapping[str, Any]
Outcomes = dict[tuple[str, ...], str]

ABSENT = "–"
MOST = 500  # rows; the records have them all


def compare_document(old: Record, new: Record) -> Document:
    """A report of `new` beside `old`. UsageError where the two are not of one kind."""
    if old["schema"] != new["schema"]:
        raise UsageError(
            f"a run of {old['run']['command']} and one of {new['run']['command']} are not alike"
        )
    head, before, after = _outcomes(old, new)
    changed = _changed(before, after)
    only_old, only_new = before.keys() - after.keys(), after.keys() - before.keys()
    machine = list(_machine(old, new))
    parts: list[Block] = [
        Facts(
            [
                ("before", (Mono(str(old["run"]["id"])), f", {old['run']['started']}")),
                ("after", (Mono(str(new["run"]["id"])), f", {new['run']['started']}")),
            ]
        )
    ]
    if changed:
        rows = [[*_cells(key), (was,), (Strong(now),)] for key, was, now in changed]
        note = f"{len(rows) - MOST:,} more are in the records" if len(rows) > MOST else ""
        parts.append(Section("Changed", [Table([*head, "before", "after"], rows[:MOST], note)]))
    alone: list[Line] = [(f"only before: {', '.join(key)}",) for key in sorted(only_old)]
    alone += [(f"only after: {', '.join(key)}",) for key in sorted(only_new)]
    if alone:
        parts.append(Section("Not in both", [Bullets(alone[:MOST])]))
    same: Block = Paragraph(("The same as far as it was recorded.",))
    rows = [[(Mono(name),), (was,), (now,)] for name, was, now in machine]
    table = Table(["what", "before", "after"], rows)
    parts.append(Section("Machine and packages", [table if rows else same]))
    return Document(
        title=f"specrepro {new['run']['command']}: two runs compared",
        result=_sentence(len(changed), len(before.keys() & after.keys()), bool(machine)),
        tone="plain",
        parts=parts,
        whole=f"specrepro runs show {new['run']['id']} --json",
        run=str(new["run"]["id"]),
        version=str(new["run"]["version"]),
    )


def _sentence(changed: int, both: int, machine: bool) -> Line:
    said = f"{changed} of {both} outcomes that both have"
    others = "; machine or packages changed too" if machine else ""
    return (Strong(said), f" changed{others}.")


def _cells(key: tuple[str, ...]) -> list[Line]:
    return [(part,) for part in key]


def _changed(before: Outcomes, after: Outcomes) -> list[tuple[tuple[str, ...], str, str]]:
    return [
        (key, was, after[key]) for key, was in before.items() if key in after and after[key] != was
    ]


def _outcomes(old: Record, new: Record) -> tuple[list[str], Outcomes, Outcomes]:
    """The names of an outcome's key, and what came out under each key in both runs."""
    match new["schema"]:
        case "specrepro/run@1":
            return ["case", "variant", "lane", "point"], _run(old), _run(new)
        case "specrepro/check@1":
            return ["build", "defect"], _check(old), _check(new)
        case schema:
            raise UsageError(f"two runs of {schema} cannot be compared")


def _run(record: Record) -> Outcomes:
    found: Outcomes = {}
    for case in record["cases"]:
        found[str(case["id"]), "", "", ""] = str(case["verdict"])
        for trial in case["trials"]:
            changed = {k: v for k, v in trial["point"].items() if v != case["named"].get(k)}
            words = [f"{name}={value}" for name, value in changed.items()]
            words += [str(trial["control"])] if trial["control"] else []
            key = (str(case["id"]), str(trial["variant"]), str(trial["lane"]), " ".join(words))
            found[key] = _trial(trial)
    return found


def _trial(trial: Record) -> str:
    """An outcome and the places of its findings: another place is another outcome."""
    places = dict.fromkeys(
        f"{finding['kind']} of {finding['tensor']} at {(finding['elements'] or ['?'])[0]}"
        for finding in trial["findings"]
    )
    return "; ".join((str(trial["status"]), *places))


def _check(record: Record) -> Outcomes:
    found: Outcomes = {}
    for build in record["builds"]:
        found[str(build["version"]), ""] = str(build["verdict"])
        for standing in build["defects"]:
            found[str(build["version"]), str(standing["defect"])] = str(standing["state"])
    return found


def _machine(old: Record, new: Record) -> Iterator[tuple[str, str, str]]:
    """(what, before, after) of all that differs in the environments, and of specrepro itself."""
    before = {"specrepro": str(old["run"]["version"]), **_flat(old.get("environment") or {})}
    after = {"specrepro": str(new["run"]["version"]), **_flat(new.get("environment") or {})}
    for name in dict.fromkeys((*before, *after)):
        was, now = before.get(name, ABSENT), after.get(name, ABSENT)
        if was != now:
            yield name, was, now


def _flat(value: Mapping[str, Any], at: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for name, inner in value.items():
        path = f"{at}.{name}" if at else str(name)
        found |= _flat(inner, path) if isinstance(inner, Mapping) else {path: str(inner)}
    return found
