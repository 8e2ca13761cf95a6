"""The JSON of a diagnosis, specrepro/diagnose@1. Everything a page shows is in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from .describe import engine_parts
from .facts import Fact, Reading
from .match import Standing
from .record_rows import asked_row, case_row, lines_of, name_of, proposal_row, ranked_row
from .session import Diagnosis, main_incident
from .situation import Ref, Situation
from .timeline import wall_times
from .wording import FAULTS, cut, repeated, shape, told

SCHEMA = "specrepro/diagnose@1"
LONGEST_CASCADE = 40


def diagnosis_record(reading: Reading, diagnoses: Sequence[Diagnosis]) -> dict[str, Any]:
    """The part of the record that the reading alone decides; the rest is the run's."""
    lead = main_incident(list(diagnoses))
    body = _incident(reading, lead) if lead else _nothing()
    return {
        "sources": [_source(source) for source in reading.sources],
        **body,
        "incidents": [
            {"number": number, **short(reading, one)}
            for number, one in enumerate(diagnoses, start=1)
            if one.found
        ],
        "unread": [
            {
                "source": name_of(reading, unread.source),
                "what": unread.what,
                "count": unread.count,
                "line": unread.first_line,
            }
            for unread in reading.unread
        ],
        "hints": list(reading.hints),
    }


def _nothing() -> dict[str, Any]:
    return {
        "engine": None,
        "first_failure": None,
        "cascade": [],
        "beside": [],
        "note": "",
        "symptoms": [],
        "classes": [],
        "missing": [],
        "experiments": [],
        "misleading": [],
        "cases": [],
    }


def _source(source: Any) -> dict[str, Any]:
    return {
        "name": source.name,
        "part": source.part,
        "carrier": source.carrier,
        "first_line": source.first_line,
        "lines": source.lines,
        "author": source.author,
        "host": source.host,
        "complete": source.complete,
        "cut": source.cut,
    }


def _incident(reading: Reading, one: Diagnosis) -> dict[str, Any]:
    return {
        "engine": _engine(reading, one.situation),
        "first_failure": _first(reading, one),
        "cascade": _cascade(reading, one.course.cascade),
        "beside": _cascade(reading, one.course.elsewhere),
        "note": one.course.note,
        "symptoms": list(seen.values) if (seen := one.situation.get("symptom")) else [],
        "classes": [ranked_row(reading, ranked, one.situation) for ranked in one.classes],
        "missing": [asked_row(asked) for asked in one.missing],
        "experiments": [proposal_row(proposal) for proposal in one.proposals],
        "misleading": _misleading(reading, one),
        "cases": [case_row(ranked.fault_class) for ranked in one.left if ranked.fault_class.case],
    }


def short(reading: Reading, one: Diagnosis) -> dict[str, Any]:
    """An incident beside others: what failed first and which classes it may be."""
    return {
        "signature": signature(one),
        "engine": _engine(reading, one.situation),
        "first_failure": _first(reading, one),
        "classes": [
            {"id": r.fault_class.id, "standing": str(r.standing), "score": r.score}
            for r in one.left
        ],
        "sources": sorted({name_of(reading, fact.source) for fact in one.course.failures}),
        "count": 1,
        "first_seen": next(wall_times(one.course.failures), None),
        "last_seen": None,
        "hosts": sorted({h for s in reading.sources if (h := s.host)}),
    }


def signature(one: Diagnosis) -> str:
    """What an incident is called: first failure without addresses, kernel log, likeliest class."""
    parts = [shape(fact) for fact in one.course.first[:1]]
    if not parts:
        symptom = one.situation.get("symptom")
        parts = [", ".join(map(str, symptom.values)).replace("_", " ")] if symptom else ["nothing"]
    beside = Counter(shape(f) for f in one.course.elsewhere if f.get("class") != "consequence")
    parts += [name for name, _ in beside.most_common(2)]
    likely = [r.fault_class.id for r in one.classes if r.standing is Standing.LIKELY]
    parts += likely[:1]
    return cut(" · ".join(dict.fromkeys(parts)), 200)


def _engine(reading: Reading, situation: Situation) -> dict[str, Any]:
    return {
        "name": situation.value("engine"),
        "version": situation.value("release"),
        "runner": situation.value("runner"),
        "said": engine_parts(situation),
        "settings": [
            {
                "name": name,
                "value": _plain(seen.values),
                "how": str(seen.how),
                "lines": lines_of(reading, seen.refs),
            }
            for name, seen in sorted(situation.seen.items())
            if name not in ("message", "frame")
        ],
    }


def _plain(values: Sequence[Any]) -> Any:
    return values[0] if len(values) == 1 else list(values[:64])


def _first(reading: Reading, one: Diagnosis) -> dict[str, Any] | None:
    if not one.course.first:
        symptom = one.situation.get("symptom")
        if symptom is None or set(symptom.values) == {"consequence"}:
            return None
        what = ", ".join(FAULTS.get(str(value), str(value)) for value in symptom.values)
        return _failure(what, "symptom", None) | {
            "lines": lines_of(reading, symptom.refs),
            "certainty": str(symptom.how),
        }
    fact = one.course.first[0]
    return _failure(told(fact), fact.kind, fact.time.text if fact.time else None) | {
        "text": fact.text,
        "certainty": str(fact.certainty),
        "ranks": [r for f in one.course.first if (r := _rank(f))],
        "tie": len(one.course.first) > 1,
        "asynchronous": fact.get("stack") == "asynchronous"
        or any(f.get("stack") == "asynchronous" for f in one.course.first),
        "lines": lines_of(reading, [Ref(f.source, f.line) for f in one.course.first]),
    }


def _failure(what: str, kind: str, time: str | None) -> dict[str, Any]:
    return {
        "what": what,
        "kind": kind,
        "text": "",
        "time": time,
        "ranks": [],
        "tie": False,
        "asynchronous": False,
    }


def _rank(fact: Fact) -> str | None:
    if fact.kind == "xid":
        return f"GPU {fact.get('bus')}" if fact.get("bus") else None
    return fact.rank or (f"pid {fact.pid}" if fact.pid else None)


def _cascade(reading: Reading, facts: Iterable[Fact]) -> list[dict[str, Any]]:
    """Failures in order; what several processes say alike at the same time is one, counted."""
    rows: dict[tuple[str, str | None], dict[str, Any]] = {}
    for fact in facts:
        time = fact.time.text if fact.time else None
        row = rows.setdefault(
            (repeated(fact), time),
            {
                "what": told(fact),
                "kind": fact.kind,
                "time": time,
                "ranks": [],
                "count": 0,
                "lines": [],
            },
        )
        row["count"] += fact.count
        rank = _rank(fact)
        if rank and rank not in row["ranks"]:
            row["ranks"].append(rank)
        if len(row["lines"]) < 4:
            row["lines"] += lines_of(reading, [Ref(fact.source, fact.line)])
    return list(rows.values())[:LONGEST_CASCADE]


def _misleading(reading: Reading, one: Diagnosis) -> list[dict[str, Any]]:
    """Lines that look like a cause and are none."""
    rows: dict[str, dict[str, Any]] = {}
    for fact in one.course.facts:
        dump = fact.kind == "scheduler_dump" and fact.get("placeholders") is True
        if fact.kind != "false_clue" and not dump:
            continue
        name = "placeholder_tokens" if dump else str(fact.get("name"))
        why = PLACEHOLDERS if dump else str(fact.get("why"))
        rows.setdefault(
            name,
            {"name": name, "why": why, "lines": lines_of(reading, [Ref(fact.source, fact.line)])},
        )
    return list(rows.values())


PLACEHOLDERS = "[-1, …] stands for drafts that are not there yet, in every asynchronous step"
