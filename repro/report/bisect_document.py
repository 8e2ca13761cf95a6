"""The report of a bisection, from its stored record alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .bisect_page import (
    RESTS_ON,
    changed,
    crossed,
    injected,
    name,
    other,
    outcome,
    switches,
    varied,
    wanted,
)
from .document import (
    Block,
    Bullets,
    Code,
    Document,
    Facts,
    Folded,
    Line,
    Link,
    Moment,
    Mono,
    Paragraph,
    Section,
    Strong,
    Table,
    Timeline,
)
from .upstream import shorthand

Record = Mapping[str, Any]

SIDES = {"first_bad": "last good", "first_good": "last bad"}
WHAT = {"release": "Releases", "commit": "Commits"}


def bisect_document(record: Record) -> Document:
    """The boundary, what else changed there, every trial with its reason, the command again."""
    run = record["run"]
    parts: list[Block] = [Facts(list(_about(record)))]
    result = record["result"]
    if result["kind"] == "narrowed":
        parts.append(Section("What it could be", [Bullets(list(_open(result)))]))
    if record.get("flips"):
        lines = [(other(flip),) for flip in record["flips"]]
        parts.append(Section("Other boundaries", [Bullets(lines), _trials(record, "flip")]))
    if record["boundary"]:
        parts.append(Section("What changed there", list(_boundary(record["boundary"]))))
    for stage in record["stages"]:
        parts.append(Section(WHAT[stage["name"]], list(_stage(record, stage))))
    parts.append(Section("Repeat", [Code(str(record["again"]), "sh")]))
    parts.append(Section("Not observed", [Bullets(list(_unobserved(record)))]))
    return Document(
        title=f"specrepro bisect: {record['case']}",
        result=_sentence(record),
        tone="plain" if result["kind"] in SIDES else "unknown",
        parts=parts,
        whole=f"specrepro runs show {run['id']} --json",
        run=str(run["id"]),
        version=str(run["version"]),
    )


def _sentence(record: Record) -> Line:
    said, _ = outcome(record)
    line: list[str | Strong | Mono] = [Mono(str(record["case"])), ": ", Strong(said)]
    result = record["result"]
    if result["previous"] is not None:
        side = SIDES[record["find"] if result["kind"] not in SIDES else result["kind"]]
        line.append(f", {side} {name(result['previous'])}")
    if result["kind"] != "none":
        line.append(f", {result['confidence']:.1%} sure")
    if record.get("injected"):
        line.append(", of a change that was injected on purpose")
    return (*line, f": {record['title']}.")


def _about(record: Record) -> Iterator[tuple[str, Line]]:
    yield "report", (Link(shorthand(str(record["report"])), str(record["report"])),)
    yield "cause of the report", (str(record["cause"]),)
    yield "depth", (f"{record['depth']}: {record['looked_at']}",)
    asked = record["question"]
    words = [f"defect {one}" for one in asked["defects"]]
    words += [f"with {one} {value} in every build" for one, value in asked["with"].items()]
    words += ["defaults only"] if asked["default_only"] else []
    if record.get("signature"):
        words.append(f"another failure in place of the case's: {record['signature']}")
    yield "asked", (", ".join(words) or "every defect of the case, in any supported setting",)
    if change := record.get("injected"):
        yield "injected", (injected(change),)
    for note in record["result"]["notes"]:
        yield "note", (str(note),)
    said = record["environment"]
    yield "searched on", (f"{said['system']}, Python {said['python']}",)
    yield "started", (str(record["run"]["started"]),)


def _open(result: Record) -> Iterator[Line]:
    for build in result["candidates"]:
        if build in result["tested"]:
            why = f"untestable when tried: {result['tested'][build]}"
        elif build in result["unavailable"]:
            why = f"not to be had: {result['unavailable'][build]}"
        elif build in result["presumed"]:
            why = "not tried: it lies between builds that were untestable in the same way"
        else:
            why = "the boundary, if none before it is"
        yield (Mono(name(build)), f": {why}")


def _boundary(boundary: Record) -> Iterator[Block]:
    rows: list[tuple[str, Line]] = []
    if commit := boundary.get("commit"):
        rows.append(("commit", (Mono(str(commit["sha"])), " ", Mono(str(commit["subject"])))))
    if boundary["compare"]:
        compare = str(boundary["compare"])
        rows.append(("compare", (Link(compare.rpartition("/")[2], compare),)))
    python = boundary["python"]
    if python["before"] != python["after"]:
        rows.append(("Python", (f"{python['before']} → {python['after']}",)))
    rows += [("note", (str(said),)) for said in boundary.get("notes", ())]
    rows += [("not compared", (str(said),)) for said in boundary["unknown"]]
    yield Facts(rows)
    if answers := boundary["answers"]:
        cells: list[list[Line]] = [
            [
                (Mono(str(row["probe"])),),
                (str(row["before"]),),
                (str(row["after"]),),
                (Mono(str(row["where"]["after"] or "–")),),
            ]
            for row in answers
        ]
        yield Section(
            "What the code answers", [Table(("probe", "before", "after", "where"), cells)]
        )
    if files := boundary["files"]:
        cells = [[(Mono(str(file["path"])),), (changed(file),)] for file in files]
        yield Section("Files of the defect's code", [Table(("file", "lines"), cells)])
    if defaults := boundary["defaults"]:
        cells = [
            [(str(one[key]),) for key in ("setting", "of", "before", "after")] for one in defaults
        ]
        told = "The verdict may turn on a default that moved: fix it with --pin and search again."
        table = Table(("setting", "of", "before", "after"), cells)
        yield Section("Defaults of the engine", [Paragraph((told,)), table])
    if needs := boundary["dependencies"]:
        cells = [[(Mono(str(need["name"])),), (wanted(need),)] for need in needs]
        yield Section("Dependencies", [Table(("package", "wanted"), cells)])
    for title, tried in (
        ("Switches of the engine", switches(boundary)),
        ("Each build with packages of the other", crossed(boundary)),
    ):
        if tried:
            yield Section(title, [Bullets([_varied(row) for row in tried])])


def _varied(row: Record) -> Line:
    said = varied(row)
    line: list[str | Strong | Mono] = [Strong(said) if row["carries"] else said]
    for number, log in enumerate(row["logs"]):
        line += [", " if number else " (", Mono(str(log))]
    return (*line, ")") if row["logs"] else tuple(line)


def _timeline(record: Record, stage: Record) -> list[Moment]:
    """The builds of a stage that were tried, oldest first, each with what came out last."""
    came = {
        str(trial["build"]): str(trial["verdict"])
        for trial in record["trials"]
        if trial["stage"] == stage["name"]
    }
    tones = {"bad": "bad", "good": "good"}
    return [
        Moment(name(build), came[build], tones.get(came[build], "unknown"))
        for build in (str(one["build"]) for one in stage["candidates"])
        if build in came
    ]


def _stage(record: Record, stage: Record) -> Iterator[Block]:
    count, gone = len(stage["candidates"]), stage["unavailable"]
    said = f"{count} candidates, {len(gone)} of them not to be had."
    yield Paragraph((" ".join((said, *(f"{one}." for one in stage["left_out"]))),))
    moments = _timeline(record, stage)
    if moments:
        yield Timeline("What was tried, in order of the builds", moments)
    yield _trials(record, stage["name"])
    if gone:
        lines: list[Line] = [(Mono(name(build)), f": {why}") for build, why in gone.items()]
        yield Folded("Not to be had", [Bullets(lines)])
    if stage["timeline"]["complete"]:
        states: list[list[Line]] = [
            [(Mono(name(one["build"])),), (str(one["state"]),)]
            for one in stage["timeline"]["builds"]
        ]
        yield Folded("Every build", [Table(("build", "verdict"), states)])


def _trials(record: Record, stage: str) -> Table | Paragraph:
    """Every trial of a stage, in the order in which they were made."""
    cells: list[list[Line]] = [
        [
            (Mono(name(row["build"])),),
            (Strong(str(row["verdict"])), " (a person)" if row["by"] == "person" else ""),
            (_why(row),),
            (f"{row['seconds']:.1f}",),
            (Mono(str(row["log"] or "–")),),
        ]
        for row in record["trials"]
        if row["stage"] == stage
    ]
    head = ("build", "verdict", "why", "seconds", "log")
    return Table(head, cells) if cells else Paragraph(("Nothing was tried.",))


def _why(row: Record) -> str:
    if row["signature"]:
        return str(row["signature"])
    changed = [f"with {row['injected']} injected"] if row.get("injected") else []
    return "; ".join([*changed, *map(str, row["reasons"])])


def _unobserved(record: Record) -> Iterator[Line]:
    yield (f"looked at: {record['looked_at']}",)
    if 0 < record["result"]["confidence"] < 1 and record["depth"] == "engine":
        yield (RESTS_ON,)
    if not any(stage["timeline"]["complete"] for stage in record["stages"]):
        yield ("a defect that came and went between two builds that were tried is not seen",)
    for row in record["trials"]:
        if row.get("not_counted"):
            yield (
                "a trial of ",
                Mono(name(row["build"])),
                f" ({row['verdict']}) is {row['not_counted']}",
            )
    if record["cause"] != "confirmed":
        yield (
            "a boundary is of these defects only: the cause of the report itself is "
            f"{record['cause']}",
        )
