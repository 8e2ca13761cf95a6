"""The sentences of a diagnosis, for the page and for Markdown alike; from the record alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]

# Classes that stand nowhere are told in one line; excluded ones only where they could have been it.
OPEN = ("likely", "possible")
ASYNCHRONOUS = "The stack below it is asynchronous: it shows where the host waited. Not evidence."
HOW = {"claimed": "as is said", "default": "by default"}
MOST_LINES = 3
PARTS = ("prose", "block")  # of a page


def headline(record: Record) -> str:
    """`vLLM 0.27.1 · runner V1 · TP 2`, or that nothing is known of the engine."""
    engine = record["engine"]
    said = engine["said"] if engine else []
    return " · ".join(said) or "engine unknown"


def extent(record: Record) -> str:
    """How much was read: `312,044 lines, 2 sources`."""
    lines = _lines(record)
    logs = record.get("logs", 1)
    count = f"{logs:,} logs" if logs > 1 else _count(len(record["sources"]), "source")
    return f"{_count(lines, 'line')}, {count}"


def _lines(record: Record) -> int:
    """Lines that were read; the parts of a page overlap, so each page ends where its last ends."""
    if record.get("lines"):
        return int(record["lines"])
    ends: dict[str, int] = {}
    for source in record["sources"]:
        name = str(source["name"])
        page = name.rpartition("#")[0] if source["part"] in PARTS else name
        end = int(source["lines"]) + max(0, int(source["first_line"]) - 1)
        ends[page or name] = max(ends.get(page or name, 0), end)
    return sum(ends.values())


def place(lines: Sequence[Record]) -> str:
    """`crash.log:12, 15`: the lines of a statement, at most MOST_LINES of each source."""
    by_source: dict[str, list[int]] = {}
    for line in lines:
        by_source.setdefault(str(line["at"]), []).append(int(line["line"]))
    parts = []
    for source, numbers in by_source.items():
        shown = ", ".join(map(str, numbers[:MOST_LINES]))
        more = "…" if len(numbers) > MOST_LINES else ""
        parts.append(f"{source}:{shown}{more}")
    return "; ".join(parts)


def first(record: Record) -> str:
    """The first failure with its time, ranks and place; what is said where there is none."""
    failure = record["first_failure"]
    if failure is None:
        if record["incidents"]:
            return "not in what was given; what is there follows from something earlier"
        return "no failure found" if _lines(record) else "nothing could be read"
    said = [failure["time"], failure["what"]]
    if failure["ranks"] and failure["kind"] != "xid":  # which names its GPU itself
        said.append(f"at {' and '.join(failure['ranks'])}")
    if failure["tie"]:
        said.append("(same second: a tie)")
    if failure["certainty"] == "claimed":
        said.append("(as is said)")
    return "  ".join([" ".join(part for part in said if part), place(failure["lines"])])


def remarks(record: Record) -> list[str]:
    """What must be said of the first failure besides."""
    failure = record["first_failure"]
    said = [ASYNCHRONOUS] if failure and failure["asynchronous"] else []
    notes = [n for n in str(record["note"]).split(" · ") if n and "a tie" not in n]
    return said + [_sentence(note) for note in notes]


def event(row: Record) -> str:
    """A consequence, or what the kernel log has: time, what, how often, where."""
    count = f" × {row['count']}" if row["count"] > 1 else ""
    ranks = f" at {', '.join(row['ranks'][:4])}" if row["ranks"] else ""
    time = f"{row['time']} " if row["time"] else ""
    if row["kind"] == "xid":  # it names its GPU
        ranks = ""
    return f"{time}{row['what']}{ranks}{count}  {place(row['lines'])}"


def statement(row: Record) -> str:
    """A sentence with the lines it rests on."""
    aside = [HOW[row["how"]]] if row["how"] in HOW and HOW[row["how"]] not in row["text"] else []
    where = [place(row["lines"])] if row["lines"] else []
    inside = ", ".join(aside + where)
    return f"{row['text']} ({inside})" if inside else str(row["text"])


def standing(record: Record, *which: str) -> list[Record]:
    """The classes of these standings, in their order."""
    return [row for row in record["classes"] if row["standing"] in which]


def excluded(record: Record) -> list[Record]:
    """Excluded classes that explain what was seen: those a reader might have thought of."""
    symptoms = set(record["symptoms"])
    return [row for row in standing(record, "excluded") if symptoms & set(row["explains"])]


def unknown(record: Record) -> str:
    """How many classes nothing speaks for, in one line; "" where there is none."""
    count = len(standing(record, "unknown"))
    if not count:
        return ""
    others = "others" if standing(record, *OPEN) else "classes"
    return f"{count} {others}: too little speaks for them, and nothing excludes them"


def experiment(row: Record) -> str:
    """What an experiment is, costs and separates, beside its command."""
    parts = [row["title"]]
    if row["ask"]:
        parts.append(row["ask"])
    if row["question"]:
        parts.append(row["question"])
    cost = (
        f"about {row['minutes']} min" if row["minutes"] < 120 else f"{row['minutes'] // 60} hours"
    )
    if row["root"]:
        cost += ", needs root"
    apart = " from ".join(row["separates"])
    parts.append(cost + (f"; separates {apart}" if len(row["separates"]) > 1 else ""))
    return ": ".join(parts[:2]) + "".join(f"; {part}" for part in parts[2:])


def fixes(row: Record) -> list[str]:
    """Ways out of a class, with the first release that has them."""
    said = []
    for fix in row["fixes"]:
        start = f"{fix['of']} {fix['first']}: " if fix["first"] else ""
        said.append(f"{start}{fix['says']}")
    return said


def cases(record: Record) -> list[str]:
    """Lines that check the classes in question, and replay the first of them."""
    engine = record["engine"] or {}
    version = engine.get("version") if engine.get("name") == "vllm" else None
    build = f" --vllm {version}" if version else ""
    names = [row["case"] for row in record["cases"]]
    checks = [f"specrepro check {name}{build}" for name in names]
    return [*checks[:1], *(f"specrepro run {name}" for name in names[:1]), *checks[1:]]


def cluster(row: Record) -> str:
    """Since when, until when and where an incident was seen."""
    seen = row["first_seen"]
    if seen and row["last_seen"] and row["last_seen"] != seen:
        seen = f"{seen} to {row['last_seen']}"
    hosts = row["hosts"]
    more = row.get("more_hosts", 0)
    where = ", ".join(hosts[:4]) + (f" and {len(hosts) - 4 + more} more" if len(hosts) > 4 else "")
    return " · ".join(part for part in (seen, where) if part)


def joined(parts: Iterable[str]) -> str:
    return " · ".join(parts)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
