"""What was measured, as lines of the page. Pure: measurements in, Markdown out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from page import table

from .workloads import SUBJECTS, Planted, subject

AIMS = {"least": (10, 30), "median": (50, 200)}  # of the ratio: wanted, hoped for


@dataclass(frozen=True, slots=True)
class Measured:
    """One child. CPU seconds of the first execution in it, of the least later one, of all of it.

    said: what it printed.
    """

    first: float
    again: float
    process: float
    said: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Cell:
    """A subject, size and state, under triton-viz and under the emulator with all checks, and with
    those that are on by default; one Measured a round.
    """

    name: str
    size: str
    state: str
    viz: Sequence[Measured]
    own: Sequence[Measured]
    default: Sequence[Measured]

    @property
    def runs_in_both(self) -> bool:
        return bool(self.viz[0].said["outcome"] != "fails")

    def ratios(self, which: str) -> list[float]:
        """triton-viz / emulator, round by round."""
        return [
            getattr(viz, which) / getattr(own, which)
            for viz, own in zip(self.viz, self.own, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Grid:
    """One launch of `programs`. seconds: CPU. peak: bytes more than before it."""

    op: str
    programs: int
    threads: int
    seconds: float
    peak: int


def section(
    cells: Sequence[Cell],
    grids: Sequence[Grid],
    compiled: Mapping[str, float],
    versions: Mapping[str, str],
    rounds: int,
    kernels: Path,
) -> list[str]:
    """The lines of the page below title and command."""
    checks = ", ".join(cells[0].own[0].said["checks"])
    fewer = ", ".join(cells[0].default[0].said["checks"])
    decided = ", ".join(sorted({cell.name for cell in cells if cell.own[0].said["decided"]}))
    return [
        f"The peer's environment: {', '.join(f'{n} {v}' for n, v in versions.items())}. The same "
        "kernel files and inputs, one thread; each figure from a process of its own, the tools in "
        f"turn, {rounds} rounds. Checks of the emulator: bounds, {checks} (all) or bounds, {fewer} "
        "(default). triton-viz decides about addresses with a solver and stores nothing, so the "
        "emulator too is asked for findings alone, as `specrepro emulate` asks it: it decides "
        f"about all blocks at once where no address depends on what is loaded ({decided}) and "
        "executes all others, outputs and all. Each input was then run once more with outputs: "
        "those of sound inputs were compared with numpy, and as much was found.",
        "",
        *summary(cells),
        "",
        "### CPU time",
        "",
        "Milliseconds of one execution, compiling and importing aside: the first of a process (the "
        "emulator's reads and lowers the PTX there), then the least of up to four more. The "
        "columns of ratios are triton-viz / emulator with all checks: median of the rounds, the "
        "least in brackets. `process`: everything from start to exit, imports too. *fails*: no "
        "result to compare with.",
        "",
        *times(cells),
        "",
        "### What is found",
        "",
        "One fault in the last program. The emulator was to name kind, tensor, element and line of "
        "every wrong access, and nothing else; on sound inputs, nothing. triton-viz takes an "
        "address for valid that lies in any tensor of the launch: where the allocator puts "
        "value_cache behind key_cache it passes the first overrun, in one process and not in "
        "the next.",
        "",
        *detection(cells, kernels),
        "",
        "### Compiling",
        "",
        "CPU seconds from kernel.py to PTX (a cubin is made with it), once a kernel, Triton "
        "already imported: " + ", ".join(f"{op} {s:.2f}" for op, s in compiled.items()) + ".",
        "",
        "### Grid and memory",
        "",
        "All checks, sound inputs, one head and 64 positions a program for paged_decode. Memory: "
        "how far the launch raised the peak of the resident set, buffers aside.",
        "",
        *by_grid(grids),
    ]


def summary(cells: Sequence[Cell]) -> list[str]:
    """Ratios over sizes and states, for the kernels whose fault triton-viz finds."""
    names = [name for name in SUBJECTS if found_by_viz(cells, name)]
    rows = [ratio_row(name, [c for c in cells if c.name == name]) for name in names]
    rows.append(ratio_row("**all of them**", [cell for cell in cells if cell.name in names]))
    blind = ", ".join(name for name in SUBJECTS if name not in names)
    wanted = " and ".join(f"{name} {low}, better {high}" for name, (low, high) in AIMS.items())
    return [
        "CPU time, triton-viz / emulator with all checks, as median (least) over sizes and inputs, "
        f"of the kernels whose fault triton-viz finds (aims: {wanted}):",
        "",
        *table(("kernel", "× again", "× first", "× process"), rows),
        "",
        f"No ratio is taken for {blind}: triton-viz fails or does not look at the access (below); "
        "what it spent is in the next table all the same.",
    ]


def found_by_viz(cells: Sequence[Cell], name: str) -> bool:
    faulty = [cell for cell in cells if cell.name == name and cell.state == "faulty"]
    return all(cell.viz[0].said["outcome"] == "found" for cell in faulty)


def ratio_row(title: str, cells: Sequence[Cell]) -> tuple[str, ...]:
    columns = []
    for which in ("again", "first", "process"):
        ratios = [cell.ratios(which) for cell in cells]
        columns.append(f"{number(median(map(median, ratios)))} ({number(min(map(min, ratios)))})")
    return (title, *columns)


def number(ratio: float) -> str:
    if ratio < 0.05:
        return "<0.05"
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"


def times(cells: Sequence[Cell]) -> list[str]:
    rows = []
    for cell in cells:
        if cell.name.startswith("scatter,"):
            continue
        chosen = subject(cell.name)
        programs = chosen.build(*chosen.sizes[cell.size], faulty=False).programs
        ratios = [spread(cell.ratios(w)) for w in ("again", "first", "process")]
        viz = [f"{shortest(cell.viz, w):.1f}" for w in ("first", "again")]
        rows.append(
            (
                cell.name,
                f"{cell.size}, {programs}",
                cell.state,
                " / ".join(viz) if cell.runs_in_both else "*fails*",
                f"{shortest(cell.own, 'first'):.1f} / {shortest(cell.own, 'again'):.2f}",
                f"{shortest(cell.default, 'again'):.2f}",
                *(ratios if cell.runs_in_both else ("–",) * 3),
            )
        )
    return table(
        (
            "kernel",
            "programs",
            "input",
            "viz first / again",
            "emulator first / again",
            "default checks",
            "× again",
            "× first",
            "× process",
        ),
        rows,
    )


def shortest(runs: Sequence[Measured], which: str) -> float:
    """Milliseconds."""
    return 1000 * float(min(getattr(run, which) for run in runs))


def spread(ratios: Sequence[float]) -> str:
    return f"{number(median(ratios))} ({number(min(ratios))})"


def detection(cells: Sequence[Cell], kernels: Path) -> list[str]:
    """One row a subject: on the smallest size, and whether the others say the same."""
    names = list(dict.fromkeys(cell.name for cell in cells))
    rows = []
    for name in names:
        faulty = [cell for cell in cells if cell.name == name and cell.state == "faulty"]
        sound = [cell for cell in cells if cell.name == name and cell.state == "sound"]
        planted = [(c, plants(c)) for c in faulty]
        lines = source_lines(kernels, subject(name).op)
        first, wanted = planted[0]
        rows.append(
            (
                name,
                "; ".join(f"{p.kind} of {p.tensor}[{p.element}], line {lines(p)}" for p in wanted),
                own_verdict(planted, sound, lines),
                "; ".join(dict.fromkeys(v for c, p in planted for v in viz_verdicts(c, p, lines))),
                "; ".join(dict.fromkeys(viz_sound(c) for c in sound)),
            )
        )
        if first.size != "small":
            raise ValueError(f"{name} begins with {first.size}")
    header = ("kernel", "planted (small)", "emulator", "triton-viz", "triton-viz, sound input")
    return table(header, rows)


def plants(cell: Cell) -> tuple[Planted, ...]:
    chosen = subject(cell.name)
    planted: tuple[Planted, ...] = chosen.build(*chosen.sizes[cell.size], faulty=True).planted
    return planted


def source_lines(kernels: Path, op: str) -> Any:
    """A function from a planted fault to the line of the kernel that does it."""
    text = (kernels / "kernels" / op / "kernel.py").read_text(encoding="utf-8").splitlines()

    def line(planted: Planted) -> int:
        found = [n for n, each in enumerate(text, start=1) if planted.statement in each]
        if len(found) != 1:
            raise ValueError(f"{planted.statement!r} is on lines {found} of {op}")
        return found[0]

    return line


def own_verdict(planted: Sequence[tuple[Cell, Any]], sound: Sequence[Cell], lines: Any) -> str:
    """`all, exactly` or what is wrong, over all sizes, rounds and sets of checks."""
    troubles = []
    for cell, wanted in planted:
        expected = {(p.kind, p.tensor, p.element, lines(p)) for p in wanted}
        for run in (*cell.own, *cell.default):
            got = {(f["kind"], f["tensor"], f["element"], f["line"]) for f in run.said["found"]}
            troubles += [f"missed {each}" for each in sorted(expected - got)]
            troubles += [f"besides {each}" for each in sorted(got - expected, key=repr)]
    for cell in sound:
        for run in (*cell.own, *cell.default):
            troubles += [f"false {f}" for f in run.said["found"]]
            troubles += [f"wrong output {name}" for name in run.said["wrong_outputs"]]
    return "; ".join(dict.fromkeys(troubles)) or "all, exactly; silent on sound input"


def viz_verdicts(cell: Cell, wanted: Sequence[Planted], lines: Any) -> list[str]:
    """One a round; addresses, and with them what it takes for valid, differ between processes."""
    return [viz_verdict(run.said, wanted, lines) for run in cell.viz]


def viz_verdict(said: Mapping[str, Any], wanted: Sequence[Planted], lines: Any) -> str:
    if said["outcome"] == "fails":
        return f"fails: {said['error']}"
    if said["outcome"] == "quiet":
        return "**missed**"
    only = said["found"][0]
    right = [p for p in wanted if p.tensor == only["tensor"] and lines(p) == only["line"]]
    more = "" if len(wanted) == 1 else f" (1 of {len(wanted)}: ends there)"
    place = f"{only['tensor']}, line {only['line']}"
    if not right:
        return f"another place: {place}"
    if right[0] is not wanted[0]:
        return f"{place} only; **missed** the one before"
    return f"{place}{more}"


def viz_sound(cell: Cell) -> str:
    said = cell.viz[0].said
    if said["outcome"] == "found":
        return f"**false**: {said['found'][0]['tensor']}, line {said['found'][0]['line']}"
    return "silent" if said["outcome"] == "quiet" else "fails too"


def by_grid(grids: Sequence[Grid]) -> list[str]:
    rows = [
        (
            g.op,
            f"{g.programs}",
            f"{g.threads}",
            f"{1000 * g.seconds:.2f}",
            f"{1e6 * g.seconds / g.threads:.2f}",
            f"{g.peak / 2**20:.1f}",
            f"{g.peak / g.threads:.0f}",
        )
        for g in grids
    ]
    header = ("kernel", "programs", "threads", "CPU ms", "CPU µs a thread", "MiB", "bytes a thread")
    return table(header, rows)
