"""The report of a run of cases, from its stored record alone."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .document import (
    Block,
    Bullets,
    Chart,
    Code,
    Document,
    Excerpt,
    Facts,
    Folded,
    Grid,
    Line,
    Link,
    MemoryMap,
    Mono,
    Paragraph,
    Section,
    Span,
    Strong,
    Table,
)
from .hypotheses_document import hypotheses
from .run_page import what
from .upstream import shorthand

Record = Mapping[str, Any]

TONES = {"REPRODUCED": "bad", "NOT REPRODUCED": "good", "INCONCLUSIVE": "unknown"}
SHOWN = 20  # wrong accesses drawn in a map
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
    shown = case["shown"]
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
        yield from _map(case, shown)
        yield from _pipeline(case, shown)
        if shown["notes"]:
            yield Bullets([(str(note),) for note in shown["notes"]])
    table = _lanes(case)
    if table:
        yield table
    yield from _acceptance(case)


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


def _map(case: Record, shown: Record) -> Iterator[Block]:
    """The tensor that was hit and where, from the findings of the shown trial about it."""
    finding = shown["finding"]
    size = _size(str(shown.get("tensor") or ""))
    if not finding["elements"] or size is None:
        return
    for trial in case["trials"]:
        if all(trial[key] == shown[key] for key in ("variant", "lane", "point")):
            places = Counter(
                (int(f["elements"][0]), int(f["elements"][1]), _short(f))
                for f in trial["findings"]
                if f["tensor"] == finding["tensor"] and f["elements"]
            )
            spans = [
                Span(first, last, label if count == 1 else f"{label}, {count} times", bad=True)
                for (first, last, label), count in places.items()
            ]
            yield MemoryMap(str(shown["tensor"]), size, None, spans[:SHOWN])
            return


def _pipeline(case: Record, shown: Record) -> Iterator[Block]:
    """Launches by pipeline stage and step of the shown trial, and where its findings are."""
    for trial in case["trials"]:
        if not all(trial[key] == shown[key] for key in ("variant", "lane", "point")):
            continue
        turns = trial["metrics"].get("launch_stages")
        if not turns:
            return
        hit = {int(f["launch"]) for f in trial["findings"] if f["launch"] is not None}
        stages = sorted({int(stage) for _, _, stage in turns})
        rows: dict[int, list[tuple[str, str]]] = {stage: [] for stage in stages}
        for first, last, stage in turns:
            bad = any(int(first) <= launch <= int(last) for launch in hit)
            text = f"{first}-{last}" + " ✗" * bad
            rows[int(stage)].append((text, "bad" if bad else "plain"))
        longest = max(map(len, rows.values()))
        yield Grid(
            title="Launches by pipeline stage and step; ✗: with findings",
            x_label="step",
            y_label="stage",
            x=[str(step) for step in range(longest)],
            y=[str(stage) for stage in stages],
            cells=[row + [("", "plain")] * (longest - len(row)) for row in rows.values()],
        )
        return


def _short(finding: Record) -> str:
    words = [str(finding["kind"]).replace("_", " ")]
    if finding["request"] is not None:
        words.append(f"by request {finding['request']}")
    if finding["lands_in"]:
        words.append(f"in {finding['lands_in']}")
    return ", ".join(words)


def _size(shape: str) -> int | None:
    """Elements of `key_cache fp16[64, 2, 8]`; None where no shape stands there."""
    inside = shape.rpartition("[")[2].partition("]")[0]
    if "[" not in shape or not inside:
        return None
    size = 1
    for part in inside.split(","):
        if not part.strip().isdigit():
            return None
        size *= int(part)
    return size


def _acceptance(case: Record) -> Iterator[Block]:
    """New tokens by engine step of the shown trial, where its scenario counted them."""
    shown = case["shown"]
    for trial in case["trials"] if shown else ():
        if not all(trial[key] == shown[key] for key in ("variant", "lane", "point")):
            continue
        steps = trial["metrics"].get("tokens_by_step")
        if isinstance(steps, Mapping) and steps:
            series = [
                (str(name), [float(count) for count in counts])
                for name, counts in steps.items()
                if isinstance(counts, list)
            ]
            length = max((len(values) for _, values in series), default=0)
            padded = [(name, [*v, *[None] * (length - len(v))]) for name, v in series]
            yield Chart(
                "New tokens a request by engine step",
                "engine step",
                "tokens",
                [str(step) for step in range(length)],
                padded,
            )
            return


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
