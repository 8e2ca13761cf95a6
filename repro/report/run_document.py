"""The report of a run of cases, from its stored record alone."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .document import (
    Block,
    Bullets,
    Code,
    Document,
    Excerpt,
    Facts,
    Folded,
    Grid,
    Line,
    Link,
    Mono,
    Paragraph,
    Section,
    Strong,
    Table,
)
from .hypotheses_document import hypotheses
from .instruments import instrument_table
from .run_page import unwell, what
from .run_pictures import acceptance, pictures, trial_of
from .upstream import shorthand

Record = Mapping[str, Any]

TONES = {"REPRODUCED": "bad", "NOT REPRODUCED": "good", "INCONCLUSIVE": "unknown"}
LEGEND = "✓ as the reference · ✗ not as expected · – not run"
MOST_TRIALS = 500  # rows of the table of trials; the record has them all


def run_document(record: Record) -> Document:
    """One part a case; with one case, that case's result is the report's."""
    cases = record["cases"]
    run = record["run"]
    parts: list[Block] = []
    for case in cases:
        inside = list(_case(case))
        parts += inside if len(cases) == 1 else [Section(str(case["id"]), inside)]
    parts.append(_environment(record))
    verdicts = [str(case["verdict"]) for case in cases]
    return Document(
        title=f"specrepro run: {', '.join(str(case['id']) for case in cases)}"[:200],
        result=_sentence(cases[0]) if len(cases) == 1 else _counts(verdicts),
        tone=TONES.get(verdicts[0], "plain") if len(set(verdicts)) == 1 else "plain",
        parts=parts,
        whole=f"specrepro runs show {run['id']} --json",
        run=str(run["id"]),
        version=str(run["version"]),
    )


def _counts(verdicts: Sequence[str]) -> Line:
    said = [f"{verdicts.count(v)} {v}" for v in TONES if v in verdicts]
    return (f"{len(verdicts)} cases: ", Strong(", ".join(said)))


def _sentence(case: Record) -> Line:
    verdict, cause = str(case["verdict"]), str(case["cause"])
    head: Line = (Mono(str(case["id"])), ": ", Strong(verdict))
    if verdict == "REPRODUCED" and cause != "confirmed":
        return (*head, f" as a fault model; the cause of the report itself is {cause}.")
    if verdict == "REPRODUCED":
        return (*head, "; the cause of the report is confirmed upstream.")
    reasons = "; ".join(str(reason) for reason in case["reasons"][:3])
    return (*head, f": {reasons}." if reasons else ".")


def _case(case: Record) -> Iterator[Block]:
    if lost := unwell(case):
        yield Section("The GPU", [Bullets([(said,) for said in lost])])
    if case["verdict"] != "REPRODUCED":
        yield Section("Why", [Bullets([(str(reason),) for reason in case["reasons"]])])
    yield Facts(list(_about(case)))
    if case["again"]:
        yield Section("Reproduce", [Code(shlex.join(case["again"]), "sh")])
    evidence = list(_evidence(case))
    if evidence:
        yield Section("Evidence", evidence)
    if section := hypotheses(case):
        yield section
    yield from _sweep(case)
    idle = _idle(case)
    # a lane that did not run is named with its reason above
    named = {f"lane {t['lane']}: {t['reason']}" for t in case["trials"] if t["status"] == "skipped"}
    unseen: list[Line] = [(str(gap),) for gap in case["unobserved"] if gap not in named]
    if unseen or idle:
        yield Section("Not observed", [Bullets([*idle, *unseen])])
    yield Folded(f"Every trial of {case['id']}", list(_trials(case)))


def _about(case: Record) -> Iterator[tuple[str, Line]]:
    yield "case", (str(case["title"]),)
    yield "report", (Link(shorthand(str(case["report"])), str(case["report"])),)
    yield "claim", (str(case["claim"]),)
    yield "engine", ("none: the engine's steps are replayed with specrepro's own kernels",)
    yield "sha256 of the case", (Mono(str(case["sha256"])),)


def _evidence(case: Record) -> Iterator[Block]:
    shown, trial = case["shown"], None
    if shown:
        finding = shown["finding"]
        yield Paragraph(
            (
                Strong(what(finding, shown.get("tensor"))),
                f", in variant {shown['variant']}, lane {shown['lane']}. {shown['who'] or ''}",
            )
        )
        if finding["source"] and shown["excerpt"]:
            source = finding["source"]
            lines = [(int(number), str(text)) for number, text in shown["excerpt"]]
            yield Excerpt(str(source["file"]), int(source["line"]), lines)
        trial = trial_of(case, shown)
        if trial is not None:
            yield from pictures(trial, shown)
        if shown["notes"]:
            yield Bullets([(str(note),) for note in shown["notes"]])
    table = _lanes(case)
    if table:
        yield table
    yield from instrument_table(case)
    if shown and trial is not None:
        yield from acceptance(trial)


def _lanes(case: Record) -> Table | None:
    """Variant by instrument at the case's own point."""
    own = [t for t in case["trials"] if t["point"] == case["named"] and t["control"] is None]
    if not own:
        return None
    lanes = [str(lane) for lane in case["lanes"]]
    rows: list[list[Line]] = []
    for variant in dict.fromkeys(trial["variant"] for trial in own):
        by_lane = {t["lane"]: t for t in own if t["variant"] == variant}
        cells: list[Line] = [(Mono(str(variant)),)]
        cells += [(_mark(by_lane[lane]) if lane in by_lane else "–",) for lane in lanes]
        rows.append(cells)
    return Table(["variant", *lanes], rows, LEGEND)


def _mark(trial: Record) -> str:
    if trial["status"] == "skipped":
        return "–"
    said = str(trial["status"])
    if trial["agrees_with_reference"]:
        said += " ✓"
    if trial["stopped"]:
        return f"{said} …"
    return said if trial["as_expected"] else f"{said} ✗"


def _sweep(case: Record) -> Iterator[Block]:
    """Outcome by point in the lane that executes kernels, a grid for each variant that is not
    clean everywhere."""
    swept: Mapping[str, list[Any]] = case["sweep"]
    if not swept:
        return
    if len(swept) > 2:
        names = ", ".join(swept)
        yield Section("Sweep", [Paragraph((f"over {names}: every point is listed below",))])
        return
    lane = "emulator" if "emulator" in case["lanes"] else case["lanes"][0]
    mine = [t for t in case["trials"] if t["lane"] == lane and t["control"] is None]
    parts: list[Block] = []
    for variant in dict.fromkeys(trial["variant"] for trial in mine):
        trials = [trial for trial in mine if trial["variant"] == variant]
        if all(trial["status"] == "clean" for trial in trials):
            clean = f": clean at all {len(trials)} points"
            parts.append(Paragraph((Mono(str(variant)), clean)))
        else:
            parts.append(_grid(str(variant), swept, trials, case["named"]))
    yield Section(f"Sweep, in lane {lane}", parts)


def _grid(
    variant: str, swept: Mapping[str, list[Any]], trials: Sequence[Record], named: Record
) -> Grid:
    across, *down = swept
    others = {k: v for k, v in named.items() if k not in swept}
    at = {_point(trial["point"]): trial for trial in trials}
    rows = [{down[0]: value} for value in swept[down[0]]] if down else [{}]
    cells = [
        [_outcome(at.get(_point({**others, across: x, **row}))) for x in swept[across]]
        for row in rows
    ]
    return Grid(
        title=f"{variant}: ✗ is not as the case expects",
        x_label=str(across),
        y_label=str(down[0]) if down else "",
        x=[str(value) for value in swept[across]],
        y=[str(value) for row in rows for value in row.values()] or [variant],
        cells=cells,
    )


def _point(point: Record) -> str:
    return "\0".join(f"{name}={point[name]!r}" for name in sorted(point))


def _outcome(trial: Record | None) -> tuple[str, str]:
    if trial is None:
        return "", "plain"
    tone = {"fault": "bad", "clean": "good"}.get(str(trial["status"]), "unknown")
    return _mark(trial), tone


def _idle(case: Record) -> list[Line]:
    """Lanes that did not run, by reason."""
    idle: dict[str, dict[str, None]] = {}
    for trial in case["trials"]:
        if trial["status"] == "skipped":
            idle.setdefault(str(trial["reason"]), {})[str(trial["lane"])] = None
    return [(f"{', '.join(lanes)}: {reason}",) for reason, lanes in idle.items()]


def _trials(case: Record) -> Iterator[Block]:
    rows: list[list[Line]] = []
    for trial in case["trials"]:
        if trial["status"] == "skipped":
            continue
        changed = {k: v for k, v in trial["point"].items() if v != case["named"].get(k)}
        point = ", ".join(f"{name}={value}" for name, value in changed.items())
        found = "; ".join(what(finding, None) for finding in trial["findings"][:1])
        more = len(trial["findings"]) - 1
        rows.append(
            [
                (Mono(str(trial["variant"])),),
                (str(trial["lane"]),),
                (" ".join(filter(None, (point, str(trial["control"] or "")))),),
                (_mark(trial),),
                (found + (f"; {more} more" if more > 0 else "") or str(trial["reason"]),),
            ]
        )
    left = len(rows) - MOST_TRIALS
    note = f"{left:,} more are in the record" if left > 0 else ""
    yield Table(["variant", "lane", "point", "outcome", "found"], rows[:MOST_TRIALS], note)


def _environment(record: Record) -> Block:
    said = record["environment"]
    packages = ", ".join(f"{name} {version}" for name, version in said["packages"].items())
    rows: list[tuple[str, Line]] = [
        ("Python", (str(said["python"]),)),
        ("system", (str(said["system"]),)),
        ("packages", (packages,)),
        ("started", (str(record["run"]["started"]),)),
        ("seconds", (f"{record['run']['seconds']:g}",)),
    ]
    return Folded("Environment", [Facts(rows)])
