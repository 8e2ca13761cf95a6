"""The page of a bisection in a terminal, written from the stored record alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..escape import printable
from .upstream import shorthand

Record = Mapping[str, Any]

STATE_STYLE = {"bad": "red", "good": "green", "unknown": "yellow"}
WORDS = {"first_bad": "first bad", "first_good": "first good"}
MOST_SHOWN = 8
HERE = "here"  # the node of a trial on the machine that searched
# what a confidence is that is less than certain
RESTS_ON = (
    "how sure is said of faults as they are expected: half always show, the others in any share of "
    "trials alike, and trials are independent"
)


def print_bisect(
    out: Console, record: Record, *, quiet: bool = False, verbose: bool = False
) -> None:
    """The boundary, what else changed there, what was tried. `quiet`: the first line only."""
    out.print(_headline(record), soft_wrap=quiet)
    if quiet:
        return
    out.print(_about(record))
    for stage in record["stages"]:
        if stage["timeline"]["complete"] or verbose:
            out.print()
            out.print(Padding(_timeline(record, stage), (0, 0, 0, 2)))
    out.print()
    out.print(Padding(_facts(record, verbose=verbose), (0, 0, 0, 2)))
    out.print()
    out.print(Text("looked at: " + printable(record["looked_at"]), "dim"))
    if 0 < record["result"]["confidence"] < 1 and record["depth"] == "engine":
        out.print(Text(RESTS_ON, "dim"))
    if record["cause"] != "confirmed":
        said = "a boundary is of these defects only: the cause of the report itself is "
        out.print(Text(said + printable(record["cause"]), "dim"))


def name(build: Any) -> str:
    """A build as a person reads it: a commit cut short."""
    text = str(build)
    return printable(text[:12] if len(text) in {40, 64} and text.isalnum() else text)


def outcome(record: Record) -> tuple[str, str]:
    """What a search found, in a few words, and its style."""
    result = record["result"]
    if result["kind"] in WORDS:
        return f"{WORDS[result['kind']]}: {name(result['build'])}", "bold"
    if result["kind"] == "narrowed":
        said = WORDS[record["find"]]
        return f"{said}: one of {len(result['candidates'])} builds", "bold yellow"
    return "no boundary found", "bold yellow"


def _headline(record: Record) -> Text:
    said, style = outcome(record)
    text = Text.assemble((printable(record["case"]), "bold"), "   ", (said, style))
    result = record["result"]
    if result["kind"] in WORDS:
        last = "last good" if result["kind"] == "first_bad" else "last bad"
        text.append(f" · {last}: {name(result['previous'])}")
    if 0 < result["confidence"] < 1:
        text.append(f" · {result['confidence']:.0%} sure")
    if record.get("injected"):
        text.append(" · of a change that was injected", "bold yellow")
    return text


def _about(record: Record) -> Text:
    text = Text.assemble(
        printable(record["title"]),
        "   ",
        (shorthand(record["report"]), "cyan"),
        (f" · upstream cause {record['cause']}", "dim"),
    )
    asked = record["question"]
    words = [f"defect {one}" for one in asked["defects"]]
    words += [f"with {one} {value}" for one, value in asked["with"].items()]
    words += ["defaults only"] if asked["default_only"] else []
    if record.get("signature"):
        words.append(f"another failure in place of the case's: {record['signature']}")
    if words:
        text.append("\nasked: " + printable(", ".join(words)), "dim")
    if change := record.get("injected"):
        text.append("\n" + printable(injected(change)), "yellow")
    return text


def injected(change: Record) -> str:
    """A change that was made on purpose, to which builds, and what a boundary then is."""
    ends = [
        f"from {change['from']}" * bool(change["from"]),
        f"to {change['to']}" * bool(change["to"]),
    ]
    return (
        f"injected on purpose into the builds {' '.join(filter(None, ends))}: {change['change']}: "
        f"{change['says']}; a boundary is that of this change, and none of the releases"
    )


def _timeline(record: Record, stage: Record) -> Table:
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold")
    table.add_column("commit" if stage["name"] == "commit" else "release", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("why", overflow="fold")
    tried = {row["build"]: row for row in record["trials"] if row["stage"] == stage["name"]}
    changes = {change["build"] for change in stage["timeline"]["changes"]}
    for entry in stage["timeline"]["builds"]:
        build, state = str(entry["build"]), str(entry["state"])
        row = tried.get(build)
        why = _why(row) if row else stage["unavailable"].get(build, "not tried")
        mark = "▶ " if build in changes else "  "
        table.add_row(
            Text(mark + name(build)),
            Text(state, STATE_STYLE.get(state, "")),
            Text(printable(why), "" if state != "unknown" else "dim"),
        )
    return table


def _why(row: Record) -> str:
    if row["by"] == "person":
        return "marked by a person"
    changed = f"with {row['injected']} injected" if row.get("injected") else ""
    said = changed if row["verdict"] == "good" else "; ".join(row["reasons"])
    return str(row["signature"] or said)


def _facts(record: Record, *, verbose: bool) -> Table:
    rows = Table.grid(padding=(0, 2))
    rows.add_column(no_wrap=True, style="bold")
    rows.add_column(overflow="fold")
    for word, cell in _lines(record, verbose=verbose):
        rows.add_row(word, cell)
    return rows


def _lines(record: Record, *, verbose: bool) -> Iterator[tuple[str, RenderableType]]:
    result = record["result"]
    if result["kind"] == "narrowed":
        yield "could be", Text(_narrowed(result))
    for note in result["notes"]:
        yield "note", Text(printable(note))
    for word, flip in _first("also", record.get("flips", ())):
        yield word, Text(printable(other(flip)))
    last = record["stages"][-1]
    if last["result"] != result:
        for note in last["result"]["notes"] or ["the commits between tell nothing"]:
            yield "commits", Text(printable(note))
    for stage in record["stages"]:
        for said in stage["left_out"]:
            yield "left out" if stage["name"] == "release" else "", Text(printable(said))
    if record["boundary"]:
        yield from _boundary(record["boundary"], verbose=verbose)
    yield "trials", Text(_trials(record))
    yield from apart(record)
    if verbose:
        for row in record["trials"]:
            said = f"{row['verdict']}  {_why(row)}  {row['log'] or ''}"
            yield "", Text.assemble(f"{name(row['build'])}  ", (printable(said), "dim"))
    yield "again", Text(printable(record["again"]))
    yield "report", Text(printable(f"{record['run']['path']}/report.md"))


def other(flip: Record) -> str:
    """A boundary besides the one that was found."""
    said, _ = outcome({"result": flip, "find": flip["find"]})
    notes = f" ({'; '.join(map(str, flip['notes']))})" if flip["notes"] else ""
    if flip["previous"] is None:
        return said + notes
    side = "last good" if flip["find"] == "first_bad" else "last bad"
    return f"{said} · {side}: {name(flip['previous'])}{notes}"


def apart(record: Record) -> Iterator[tuple[str, Text]]:
    """Where the trials that count ran, where that was on a GPU or a cluster; those that do not."""
    groups = [stage["group"] for stage in record["stages"] if stage.get("group")]
    away = any((row.get("place") or {}).get("node", HERE) != HERE for row in record["trials"])
    if groups and (away or not groups[0].startswith("no GPU")):
        yield "ran on", Text(printable(", ".join(dict.fromkeys(groups))))
    left_out = [row for row in record["trials"] if row.get("not_counted")]
    for word, row in _first("left out", left_out):
        said = f"{name(row['build'])}  {row['verdict']}: {row['not_counted']}"
        yield word, Text(printable(said), "yellow")


def _narrowed(result: Record) -> str:
    some = [name(build) for build in result["candidates"]]
    shown = ", ".join(some[:MOST_SHOWN]) + (", …" if len(some) > MOST_SHOWN else "")
    counts = [
        f"{len(result[key])} {word}"
        for key, word in (
            ("tested", "tested and untestable"),
            ("presumed", "presumed so"),
            ("unavailable", "not to be had"),
        )
        if result[key]
    ]
    return f"any of {len(some)}: {shown}" + (f" ({', '.join(counts)})" if counts else "")


def _boundary(boundary: Record, *, verbose: bool) -> Iterator[tuple[str, RenderableType]]:
    if commit := boundary.get("commit"):
        line = {True: "on the main line", False: "on a release's branch", None: ""}
        yield "commit", Text(printable(f"{commit['subject']}   {line[commit['on_main']]}".strip()))
    if boundary["compare"]:
        yield "compare", Text(printable(boundary["compare"]), "cyan")
    for word, answer in _first("answers", boundary["answers"]):
        said = f"{answer['probe']}: {_value(answer['before'])} → {_value(answer['after'])}"
        where = printable(str(answer["where"]["after"] or ""))
        yield word, Text.assemble(printable(said), (f"   {where}", "dim"))
    for word, file in _first("files", boundary["files"]):
        yield word, Text(printable(f"{file['path']}   {changed(file)}"))
    for word, default in _first("defaults", boundary["defaults"]):
        said = f"{default['setting']} of {default['of']}: {default['before']} → {default['after']}"
        yield word, Text(printable(said), "yellow")
    needs = boundary["dependencies"]
    shown = needs if verbose else needs[:MOST_SHOWN]
    for word, need in _first("needs", shown):
        yield word, Text(printable(f"{need['name']} {wanted(need)}"))
    if len(shown) < len(needs):
        yield "", Text(f"and {len(needs) - len(shown)} more", "dim")
    python = boundary["python"]
    if python["before"] != python["after"]:
        yield "python", Text(printable(f"{python['before']} → {python['after']}"))
    for kind, rows in (("switches", switches(boundary)), ("packages", crossed(boundary))):
        for word, row in _first(kind, rows):
            yield word, Text(printable(varied(row)), "bold" if row["carries"] else "")
    for word, said in _first("note", boundary.get("notes", ())):
        yield word, Text(printable(said))
    for word, said in _first("unknown", boundary["unknown"]):
        yield word, Text(printable(said), "yellow")


def switches(boundary: Record) -> Sequence[Record]:
    """The variations of switches; none in a record of before there were any."""
    rows: Sequence[Record] = boundary.get("switches", ())
    return rows


def crossed(boundary: Record) -> Sequence[Record]:
    """The builds that were tried with packages of the other one; as above."""
    rows: Sequence[Record] = boundary.get("cross_tests", ())
    return rows


def varied(row: Record) -> str:
    """A variation of a build at the boundary, what came of it, and what that says."""
    changes = [f"{one} {value}" for one, value in row["changes"].items()]
    some = ", ".join(changes[:MOST_SHOWN]) + (", …" if len(changes) > MOST_SHOWN else "")
    fault = {"shown": "shows the fault", "not shown": "does not show the fault"}
    # a reason of `check` begins with the defect and says that much itself
    unknown = "not known: " + str(row["reason"]).rpartition("not known: ")[2]
    came = fault.get(row["fault"], unknown) if row["fault"] else "not decided yet"
    if row["fault"] == "not shown" and row["chance"]:
        came += f", but for a chance of {row['chance']:.1%}"
    if row["carries"]:
        came += ": this brings it" if row["fault"] == "shown" else ": this takes it away"
        if row.get("moved"):
            came += f", and the default of {', '.join(row['moved'])} moved here"
    return f"{name(row['build'])} with {some}: {came}"


def _first(word: str, things: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Each thing with the word before the first one."""
    for number, thing in enumerate(things):
        yield "" if number else word, thing


def wanted(need: Record) -> str:
    """How a dependency changed; a condition that both sides have is left out."""
    sides = [str(need[side] or "–") for side in ("before", "after")]
    parts = [side.partition(" where ") for side in sides]
    if parts[0][2] == parts[1][2]:
        sides = [part[0] for part in parts]
    return " → ".join(sides)


def changed(file: Record) -> str:
    """What happened to a file, in lines where they could be counted."""
    if file["change"] != "changed":
        return str(file["change"])
    if file["added"] is None:
        return "changed, too long to count"
    return f"+{file['added']} -{file['removed']}"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {one}" for key, one in value.items())
    return "unknown" if value is None else str(value)


def _trials(record: Record) -> str:
    count = sum(row["by"] == "trial" for row in record["trials"])
    seconds = sum(row["seconds"] for row in record["trials"])
    traffic = record["traffic"]
    said = f"{count} trial{'s'[: count != 1]}, {seconds:.1f} s"
    if traffic["requests"]:
        asked = f"{traffic['requests']} request{'s'[: traffic['requests'] != 1]}"
        said += f" · {asked}, {traffic['bytes'] / 1e6:.1f} MB"
    return said


def print_standing(out: Console, record: Record) -> None:
    """How far a session is: a block a line that is searched."""
    states = [word for word in ("replayed", "finished", "at_work") if record[word]]
    state = states[0].replace("_", " ") if states else "open"
    out.print(Text.assemble((printable(record["run"]["id"]), "bold"), f"   {state}"))
    for line in record["lines"]:
        rows = Table.grid(padding=(0, 2))
        rows.add_column(no_wrap=True, style="bold")
        rows.add_column(overflow="fold")
        what = f"{line['candidates']} candidates, {line['unavailable']} not to be had"
        rows.add_row(printable(line["name"]), Text(f"{WORDS[line['find']]}: {what}"))
        for word, builds in line["states"].items():
            rows.add_row(word, Text(", ".join(map(name, builds)) or "none", STATE_STYLE[word]))
        rows.add_row("trials", Text(str(line["trials"])))
        for word, trial in _first("next", line["next"] or []):
            rows.add_row(word, Text(f"{name(trial['build'])}   {printable(trial['purpose'])}"))
        if result := line["result"]:
            said, style = outcome({"result": result, "find": line["find"]})
            rows.add_row("result", Text(said, style))
            for note in result["notes"]:
                rows.add_row("", Text(printable(note)))
        out.print()
        out.print(Padding(rows, (0, 0, 0, 2)))
    for one in record["variations"]:
        out.print()
        out.print(Padding(_tried(one), (0, 0, 0, 2)))


def _tried(one: Record) -> Table:
    """What was varied of the two builds at a boundary, and what came of it."""
    rows = Table.grid(padding=(0, 2))
    rows.add_column(no_wrap=True, style="bold")
    rows.add_column(overflow="fold")
    earlier = "" if one["current"] else "   (no boundary as the lines stand)"
    of = f"of {name(one['bad'])} (bad) and {name(one['good'])} (good){earlier}"
    rows.add_row("variations", Text(of))
    rows.add_row("trials", Text(str(one["trials"])))
    for word, row in _first("result", one["tried"]):
        rows.add_row(word, Text(printable(varied(row)), "bold" if row["carries"] else ""))
    return rows
