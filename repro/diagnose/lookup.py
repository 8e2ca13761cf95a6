"""What single things mean: an Xid, a CUDA error, a line of a log, a fault class."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import UsageError
from ..escape import quoted
from .facts import Fact
from .rules import FaultClass, load
from .wording import FAULTS, told

KINDS = ("xid", "error", "line", "class")


@dataclass(frozen=True, slots=True)
class Explained:
    """A text for a reader, and the same as a record."""

    text: str
    record: dict[str, Any] = field(default_factory=dict)


def explained(kind: str, words: str) -> Explained:
    """What `words` means, of one of KINDS. UsageError for anything that is not known."""
    if kind == "xid":
        return _xid(words)
    if kind == "error":
        return _error(words)
    if kind == "line":
        return _line(words)
    if kind == "class":
        return Explained(class_text(words), {"class": words})
    raise UsageError(f"cannot explain {quoted(kind)}; there is {', '.join(KINDS)}")


def class_text(name: str) -> str:
    """The page of a class by its id or number."""
    from .class_page import markdown

    known = load()
    found = known.of(name)
    if found is None:
        near = difflib.get_close_matches(name, [c.id for c in known.classes], n=1)
        hint = f"did you mean {quoted(near[0])}?" if near else "docs/diagnose.md lists them"
        raise UsageError(f"no fault class is called {quoted(name)}", hint=hint)
    return markdown(found, known)


def classes_naming(name: str, value: object) -> list[FaultClass]:
    """The classes that have a rule about a value of a name."""
    found = []
    for one in load().classes:
        for clue in one.clues:
            test = clue.when.get(name)
            tests = test if isinstance(test, list) else [test]
            if clue.weight > 0 and value in tests:
                found.append(one)
                break
    return found


def _xid(words: str) -> Explained:
    from ..watch.xid import entry

    if not words.isascii() or not words.isdigit() or len(words) > 5:
        raise UsageError(f"{quoted(words)} is no number of an Xid", hint="specrepro explain xid 31")
    code = int(words)
    row = entry(code)
    if row is None:
        text = f"Xid {code}: not in the catalog of this version; nothing is known of it\n"
        return Explained(text, {"xid": code, "known": False})
    lines = [
        f"Xid {code}   {row.mnemonic}",
        f"  meaning   {row.meaning}",
        f"  who       {row.kind}",
        f"  action    {row.action}   ({row.source})",
    ]
    if row.kind == "consequence":
        lines.append("  reading   it follows another fault: look for the Xid before it")
    elif code in (13, 31):
        lines.append("  reading   one on one GPU says nothing about hardware")
    named = [one.id for one in classes_naming("xid", code)]
    lines += [f"  classes   {', '.join(named)}"] if named else []
    record = {
        "xid": code,
        "known": True,
        "mnemonic": row.mnemonic,
        "meaning": row.meaning,
        "class": row.kind,
        "action": row.action,
        "source": row.source,
        "classes": named,
    }
    return Explained("\n".join(lines) + "\n", record)


def _error(words: str) -> Explained:
    errors = load().errors
    wanted = words.strip().casefold()
    for code, row in errors.items():
        if wanted in (str(code), str(row["name"]).casefold()):
            named = [c.id for c in load().classes if row["fault"] in c.explains]
            lines = [
                f"error {code}   {row['name']}",
                f"  meaning   {row['says']}",
                f"  reading   {row['reads']}",
                f"  is        {FAULTS.get(row['fault'], row['fault'])}",
            ]
            lines += [f"  classes   {', '.join(named)}"] if row["fault"] != "other" else []
            return Explained("\n".join(lines) + "\n", {"error": int(code), **row, "classes": named})
    names = [str(row["name"]) for row in errors.values()]
    near = difflib.get_close_matches(words, names, n=1)
    hint = f"did you mean {quoted(near[0])}?" if near else "specrepro explain error 700"
    raise UsageError(f"no CUDA error {quoted(words)} is known here", hint=hint)


def _line(words: str) -> Explained:
    from .read import read_text

    facts = read_text("line", words + "\n").facts
    shown = [fact for fact in facts if fact.kind != "metrics_summary"]
    record = {"line": words, "facts": [_fact(fact) for fact in shown]}
    if not shown:
        return Explained("nothing that is known here\n", record)
    return Explained("\n".join(_said(shown)) + "\n", record)


def _said(facts: Sequence[Fact]) -> Iterator[str]:
    for fact in facts:
        yield f"{fact.kind.replace('_', ' ')}   {told(fact)}"
        for name, value in fact.values.items():
            if value not in (None, "", ()) and name != "frames":
                yield f"  {name:<10} {value}"
        if fact.kind == "false_clue":
            yield "  reading    not evidence of a cause"
        elif fact.get("class") == "consequence" or fact.get("secondary"):
            yield "  reading    a consequence: look for what came before"


def _fact(fact: Fact) -> dict[str, Any]:
    return {
        "kind": fact.kind,
        "values": {k: list(v) if isinstance(v, tuple) else v for k, v in fact.values.items()},
        "certainty": str(fact.certainty),
        "rank": fact.rank,
        "process": fact.process,
    }
