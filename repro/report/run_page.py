"""The page of a run in a terminal, written from the stored record alone.

Every string of the record may come from a case file, a kernel or a log; `printable` stands between
each of them and the terminal.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..escape import printable
from ..store import runs_folder
from .join_table import join_section
from .lane_table import LaneTable, legend, own_trials
from .matrix_page import matrix_section
from .places_page import print_places
from .run_grid import sweep_grid
from .upstream import shorthand

Record = Mapping[str, Any]

VERDICT_STYLE = {
    "REPRODUCED": "bold green",
    "NOT REPRODUCED": "bold red",
    "INCONCLUSIVE": "bold yellow",
}


def print_run(out: Console, record: Record, *, quiet: bool = False, verbose: bool = False) -> None:
    """A panel a case; with `quiet` a line a case; with `verbose` every finding and reason."""
    cases = record["cases"]
    for number, case in enumerate(cases):
        if quiet:
            line = headline(case).append(f"   {case_seconds(case):.1f} s", "dim")
            out.print(line, soft_wrap=True)
            continue
        if number:
            out.print()
        out.print(panel(case, stored_as(record), verbose=verbose))
    if not quiet and len(cases) > 1:
        out.print()
        out.print(_closing(record))
    if not quiet:
        print_places(out, record)


def stored_as(record: Record) -> str:
    """The command that prints the page of a run again."""
    path = Path(record["run"]["path"])
    if path.parent == runs_folder(None):
        return "specrepro runs show latest"
    return shlex.join(["specrepro", "runs", "show", path.name, "--runs", str(path.parent)])


def headline(case: Record) -> Text:
    """The case, its verdict, and how far the upstream cause is settled."""
    verdict, cause = str(case["verdict"]), str(case["cause"])
    text = Text.assemble(
        (printable(case["id"]), "bold"), "   ", (verdict, VERDICT_STYLE.get(verdict, "bold"))
    )
    if verdict == "REPRODUCED" and cause != "confirmed":
        text.append(" as a fault model")
    text.append(f" · upstream cause {cause}")
    return text


def _headed(case: Record) -> Table:
    """The headline with the seconds beside it; a narrow terminal folds the words, not the time."""
    row = Table.grid(padding=(0, 3, 0, 0))
    row.add_column(overflow="fold")
    row.add_column(no_wrap=True, style="dim")
    row.add_row(headline(case), f"{case_seconds(case):.1f} s")
    return row


def case_seconds(case: Record) -> float:
    """Seconds of work in the lanes, the longest lane counted."""
    lanes: dict[str, float] = {}
    for trial in case["trials"]:
        lanes[trial["lane"]] = lanes.get(trial["lane"], 0.0) + trial["seconds"]
    return max(lanes.values(), default=0.0)


def panel(case: Record, stored: str, *, verbose: bool = False) -> Group:
    """Everything about one case. stored: the command that prints it again."""
    parts: list[RenderableType] = [
        _headed(case),
        Text.assemble(
            printable(case["title"]),
            "   ",
            (shorthand(case["report"]), "cyan"),
            (f" (docs/faults/{case['class']}.md)" if case["shipped"] else "", "dim"),
        ),
        Text(),
    ]
    rows = Table.grid(padding=(0, 2))
    rows.add_column(no_wrap=True, style="dim", min_width=7)
    rows.add_column(overflow="fold")
    for label, body in _facts(case):
        rows.add_row(label, body)
    if rows.row_count:
        parts += [_indent(rows), Text()]
    if case["sweep"]:
        parts.append(_indent(Text("at the point of the case itself:", "dim")))
    if own_trials(case):
        parts += [_indent(LaneTable(case)), _indent(legend(case))]
    elif idle := _idle(case):
        parts.append(_indent(Text(printable(f"– not run: {idle}"), "dim")))
    if section := matrix_section(case):
        parts += [Text(), _indent(section)]
    if joined := join_section(case):
        parts += [Text(), _indent(joined)]
    parts += [_indent(part) for part in _more(case, stored, verbose)]
    return Group(*parts)


def _facts(case: Record) -> list[tuple[str, RenderableType]]:
    facts: list[tuple[str, RenderableType]] = []
    if case["verdict"] != "REPRODUCED":
        facts += [("why", Text(printable(reason))) for reason in case["reasons"][:5]]
    facts += [("device", Text(printable(said), "bold yellow")) for said in unwell(case)]
    shown = case["shown"]
    if not shown:
        return facts
    facts.append(("what", Text(printable(what(shown["finding"], shown.get("tensor"))))))
    if shown["who"]:
        facts.append(("who", Text(printable(shown["who"]))))
    source = shown["finding"]["source"]
    if source:
        facts.append(("where", _where(source, shown["excerpt"])))
    facts += [("effect", Text(printable(note))) for note in shown["notes"]]
    return facts


def unwell(case: Record) -> list[str]:
    """That the GPU was not well behind a trial, a line each."""
    return [
        f"not well after {trial['variant']} in lane {trial['lane']}: {one['detail']}; what was "
        "seen until then stays"
        for trial in case["trials"]
        for one in trial["evidence"]
        if one["source"] == "GPU afterwards"
    ]


def what(finding: Record, tensor: str | None) -> str:
    """A finding as a sentence."""
    kind = str(finding["kind"])
    name = tensor or finding["tensor"] or "unknown memory"
    elements, count = finding["elements"], finding["count"]
    if kind == "acceptance_loss":
        return (
            f"request {finding['request']}: {finding['got']} of {finding['expected']} verified "
            f"drafts accepted; first lost in launch {finding['launch']}"
        )
    if kind == "oversized_allocation":
        return (
            f"the block id read past {name} asks for {_bytes(finding['got'])}, "
            f"of {_bytes(finding['expected'])}"
        )
    if kind == "wrong_value":
        return f"{name}: expected {finding['expected']}, got {finding['got']}"
    access = "write" if kind.endswith("write") else "read" if kind.endswith("read") else kind
    text = f"{access} of {finding['width']} bytes"
    if elements:
        text += f" at element {elements[0]} of {name}"
    if finding["bytes_past_end"] == 0:
        text += ", first byte past its end"
    elif finding["bytes_past_end"]:
        text += f", {finding['bytes_past_end']} bytes past its end"
    elif kind.startswith("foreign"):
        text += f", which is {finding['lands_in']}"
    if count:
        text += f", {count} element{'s'[: count != 1]}"
    return text


def _where(source: Record, excerpt: Sequence[Sequence[Any]]) -> RenderableType:
    lines: list[RenderableType] = [
        Text(f"{printable(source['file'])}:{source['line']}", "cyan", overflow="fold")
    ]
    for number, line in excerpt:
        here = number == source["line"]
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f"{'▶' if here else ' '} {number:4} │ ", "red" if here else "dim")
        text.append(printable(line.rstrip().replace("\t", "    ")), "" if here else "dim")
        lines.append(text)
    return Group(*lines)


def _idle(case: Record) -> str:
    """Why lanes did nothing at all for the case; "" where each did something."""
    ran = {t["lane"] for t in case["trials"] if t["status"] != "skipped"}
    idle: dict[str, dict[str, None]] = {}
    for trial in case["trials"]:
        if trial["lane"] not in ran:
            idle.setdefault(trial["reason"], {})[trial["lane"]] = None
    return "; ".join(f"{', '.join(lanes)}: {reason}" for reason, lanes in idle.items())


def _more(case: Record, stored: str, verbose: bool) -> list[RenderableType]:
    parts: list[RenderableType] = []
    rows = Table.grid(padding=(0, 2))
    rows.add_column(no_wrap=True, style="dim", min_width=7)
    rows.add_column(overflow="fold")
    for label, text in _faces(case):
        rows.add_row(label, Text(printable(text)))
    if table := _steps(case):
        parts += [Text(), table]
    if grid := sweep_grid(case):
        parts += [Text(), grid]
    if verbose:
        for trial in case["trials"]:
            for finding in trial["findings"]:
                name = f"{trial['variant']} in {trial['lane']}, launch {finding['launch']}"
                said = what(finding, None)
                rows.add_row("found", Text(printable(f"{name}: {said}")))
        for gap in case["unobserved"]:
            rows.add_row("unseen", Text(printable(gap)))
    if case["again"]:
        rows.add_row("again", Text(printable(shlex.join(case["again"])), "green"))
    rows.add_row("stored", Text(printable(stored), "green"))
    return [*parts, Text(), rows]


def _faces(case: Record) -> list[tuple[str, str]]:
    """What the points showed that the case describes besides its own one."""
    if case["sweep"]:
        return []
    faces: dict[str, list[Record]] = {}
    for trial in case["trials"]:
        if trial["control"] is not None:
            continue
        changed = {k: v for k, v in trial["point"].items() if v != case["named"].get(k)}
        if changed:
            label = ", ".join(v if isinstance(v, str) else f"{k}={v}" for k, v in changed.items())
            faces.setdefault(label, []).append(trial)
    said = []
    for number, (label, trials) in enumerate(faces.items()):
        ran = [t for t in trials if t["status"] != "skipped"]
        decided = [t for t in ran if t["status"] in ("fault", "clean")]
        bad = [t for t in decided if not t["as_expected"] and not t["stopped"]]
        unknown = dict.fromkeys(t["variant"] for t in ran if t not in decided)
        worst = [t for t in ran if t["status"] == "fault" and t["findings"]]
        parts = []
        # a device may show less of it than the lanes that check every access
        located = [t for t in worst if any(f["elements"] for f in t["findings"])]
        if worst:
            told = (located or worst)[-1]
            finding = next(
                (f for f in told["findings"] if not str(f["kind"]).endswith("read")),
                told["findings"][0],
            )
            parts += [what(finding, None), *told["notes"]]
        clean = dict.fromkeys(t["variant"] for t in ran if t["status"] == "clean")
        if clean:
            parts.append(f"clean: {', '.join(clean)}")
        if bad:
            parts.append(f"not as expected: {', '.join(dict.fromkeys(t['variant'] for t in bad))}")
        if unknown:
            parts.append(f"unknown: {', '.join(unknown)}")
        if not ran:
            parts.append("not run")
        said.append(("" if number else "faces", f"{label}: " + " · ".join(parts)))
    return said


def _steps(case: Record) -> Table | None:
    """The table a scenario made of the steps of the shown trial, if it made one."""
    shown = case["shown"]
    if not shown or case["sweep"]:
        return None
    for trial in case["trials"]:
        same = all(trial[key] == shown[key] for key in ("variant", "lane", "point"))
        told = trial["metrics"].get("table") if same else None
        if told:
            table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
            for column in told["columns"]:
                table.add_column(printable(str(column)), justify="right")
            for row in told["rows"]:
                table.add_row(*(printable(str(cell)) for cell in row))
            return table
    return None


def _closing(record: Record) -> Text:
    verdicts = [str(case["verdict"]) for case in record["cases"]]
    counts = [f"{verdicts.count(v)} {v}" for v in VERDICT_STYLE if v in verdicts]
    seconds = record["run"]["seconds"]
    return Text(f"{len(verdicts)} cases: {', '.join(counts)}   {seconds:.1f} s", "bold")


def _bytes(count: float) -> str:
    return f"{count / 2**30:,.0f} GiB"


def _indent(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, 2))
