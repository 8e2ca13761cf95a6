"""The report of a check of builds, from its stored record alone."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from . import check_hypotheses
from .collected import folded, unknown
from .document import (
    Block,
    Bullets,
    Code,
    Document,
    Excerpt,
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

TONES = {"AFFECTED": "bad", "NOT AFFECTED": "good", "UNTESTABLE": "unknown"}
RELEASE = re.compile(r"\d+(?:\.\d+){1,3}(?:rc\d+|\.post\d+)?")
UPSTREAM = "https://github.com/vllm-project/vllm/blob"
MARKS = {"present": "yes", "absent": "no", "unknown": "?"}


def check_document(record: Record) -> Document:
    """One build: everything about it. Several: a table, and what each rests on folded."""
    builds, run = record["builds"], record["run"]
    parts: list[Block] = [Facts(list(_about(record))), Section("Repeat", [_command(record)])]
    if len(builds) == 1:
        parts += _build(builds[0])
    else:
        moments = [
            Moment(str(b["version"]), str(b["verdict"]), TONES.get(str(b["verdict"]), "unknown"))
            for b in builds
        ]
        parts += [Timeline("Verdicts, in order of the builds", moments), _table(builds)]
        parts += [
            Folded(f"vllm {build['version']}: {build['verdict']}", list(_build(build)))
            for build in builds
        ]
    parts.append(Section("Not observed", [Bullets(list(_unobserved(record)))]))
    verdicts = [str(build["verdict"]) for build in builds]
    return Document(
        title=f"specrepro check: {record['case']}",
        result=_sentence(record, verdicts),
        tone=TONES.get(verdicts[0], "plain") if len(set(verdicts)) == 1 else "plain",
        parts=parts,
        whole=f"specrepro runs show {run['id']} --json",
        run=str(run["id"]),
        version=str(run["version"]),
    )


def _sentence(record: Record, verdicts: list[str]) -> Line:
    if len(verdicts) == 1:
        [build] = record["builds"]
        return (
            f"vllm {build['version']} is ",
            Strong(verdicts[0]),
            " by ",
            Mono(str(record["case"])),
            f": {record['title']}.",
        )
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in TONES if v in verdicts)
    return (f"Of {len(verdicts)} builds: ", Strong(counts), " by ", Mono(str(record["case"])), ".")


def _about(record: Record) -> Iterator[tuple[str, Line]]:
    yield "report", (Link(shorthand(str(record["report"])), str(record["report"])),)
    yield "cause of the report", (str(record["cause"]),)
    yield "depth", (str(record["depth"]),)
    asked = record["question"]
    words = [f"defect {name}" for name in asked["defects"]]
    words += [f"with {name} {value}" for name, value in asked["with"].items()]
    words += ["defaults only"] if asked["default_only"] else []
    yield "asked", (", ".join(words) or "every defect of the case, in any supported setting",)
    said = record["environment"]
    yield "checked on", (f"{said['system']}, Python {said['python']}",)
    yield "started", (str(record["run"]["started"]),)


def _command(record: Record) -> Code:
    asked = record["question"]
    words = ["specrepro", "check", str(record["case"]), "--depth", str(record["depth"])]
    words += ["--vllm", ",".join(str(build["version"]) for build in record["builds"])]
    for name in asked["defects"]:
        words += ["--defect", str(name)]
    for name, value in asked["with"].items():
        words += ["--with", f"{name}={value}"]
    words += ["--default-only"] if asked["default_only"] else []
    return Code(shlex.join(words), "sh")


def _table(builds: list[Record]) -> Table:
    names = list(dict.fromkeys(str(d["defect"]) for build in builds for d in build["defects"]))
    rows: list[list[Line]] = []
    for build in builds:
        states = {str(d["defect"]): MARKS.get(str(d["state"]), "?") for d in build["defects"]}
        cells: list[Line] = [(Mono(str(build["version"])),), (Strong(str(build["verdict"])),)]
        rows.append([*cells, *((states.get(name, "?"),) for name in names)])
    legend = "yes: the defect is in the code · no: it is not · ?: it could not be told"
    return Table(["build", "verdict", *names], rows, legend)


def _build(build: Record) -> Iterator[Block]:
    rows: list[tuple[str, Line]] = [("build", (f"vllm {build['version']}",))]
    if build["file"]:
        rows.append(("file", (Mono(str(build["file"])),)))
    if build["sha256"]:
        rows.append(("sha256", (Mono(str(build["sha256"])),)))
    if build["commit"]:
        rows.append(("commit", (Mono(str(build["commit"])),)))
    yield Facts(rows)
    if build["reasons"]:
        yield Bullets([(str(reason),) for reason in build["reasons"]])
    for standing in build["defects"]:
        yield Section(f"Defect {standing['defect']}: {standing['state']}",
                      list(_defect(build, standing)))  # fmt: skip
    if build.get("hypotheses"):
        yield check_hypotheses.section(build["hypotheses"])
    facts = [row for row in build["evidence"] if row["defect"] is None]
    if facts:
        yield Folded("What else its code says", [_facts(build, facts)])
    held, failed = build["isolation"]["holds"], build["isolation"]["fails"]
    if held or failed:
        lines: list[Line] = [(f"held: {', '.join(held) or 'nothing'}",)]
        lines += [(f"did not hold: {', '.join(failed)}",)] if failed else []
        yield Folded("How the build's code was kept in", [Bullets(lines)])
    yield from folded(build.get("collect_env"))


def _defect(build: Record, standing: Record) -> Iterator[Block]:
    yield Paragraph((str(standing["reason"]),))
    for acting in build["exposure"]:
        if acting["defect"] == standing["defect"]:
            yield Paragraph(_acting(acting))
    rows = [row for row in build["evidence"] if row["defect"] == standing["defect"]]
    if rows:
        yield _facts(build, rows)
    for row in rows if standing["state"] == "present" else ():
        path, _, number = str(row["where"] or "").rpartition(":")
        if row["excerpt"] and number.isdigit():
            lines = [(int(at), str(text)) for at, text in row["excerpt"]]
            yield Excerpt(path, int(number), lines)


def _acting(acting: Record) -> Line:
    settings = ", ".join(
        f"{name} ≥ {value}" if isinstance(value, int) else f"{name} {value}"
        for name, value in acting["settings"].items()
    )
    how = {
        True: f"by default for {' and '.join(map(str, acting['models']))} models",
        False: "not by default",
        None: "whether by default is not known",
    }[acting["default"]]
    return ("Acts with ", Strong(settings or "any settings"), f", {how}.")


def _facts(build: Record, rows: list[Record]) -> Table:
    cells: list[list[Line]] = []
    for row in rows:
        value = row["value"]
        if isinstance(value, Mapping):
            said = ", ".join(f"{key}: {one}" for key, one in value.items())
        else:
            said = "unknown" if value is None else str(value)
        cells.append(
            [
                (Mono(str(row["probe"])),),
                (said,),
                (str(row["how"]),),
                _where(build, row["where"]),
                (str(row["detail"]),),
            ]
        )
    legend = "ran: the build's own function was executed · read: its text was looked at"
    return Table(["probe", "value", "how", "where", "what was seen"], cells, legend)


def _where(build: Record, where: Any) -> Line:
    """A place in a build; of a release, also where the whole world can read it."""
    path, _, number = str(where or "").rpartition(":")
    if not path:
        return ("–",)
    if build["origin"] != "index" or not RELEASE.fullmatch(str(build["version"])):
        return (Mono(str(where)),)
    return (Link(str(where), f"{UPSTREAM}/v{build['version']}/{path}#L{number}"),)


def _unobserved(record: Record) -> Iterator[Line]:
    looked = record.get("looked_at")
    if looked:
        yield (f"looked at: {looked}",)
    for build in record["builds"]:
        for note in build["notes"]:
            yield (f"vllm {build['version']}: {note}",)
        silent = [str(row["probe"]) for row in build["evidence"] if row["value"] is None]
        if silent:
            yield (f"vllm {build['version']}: not told by {', '.join(dict.fromkeys(silent))}",)
        if gap := unknown(build.get("collect_env")):
            yield (f"vllm {build['version']}: {gap}",)
    if record["cause"] != "confirmed":
        yield (
            "NOT AFFECTED is about these defects only: the cause of the report itself is "
            f"{record['cause']}",
        )
