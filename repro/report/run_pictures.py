"""Pictures of the trial that a run shows: its tensor, its pipeline, its block table, its tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from .document import Block, BlockTable, Chart, Copy, MemoryMap, Pipeline, Span, Turn

Record = Mapping[str, Any]

SHOWN = 20  # wrong accesses drawn in a map
COPIES = 6  # rows of block tables
TICKS = 32  # of a pipeline, from shortly before the first that went wrong
BEFORE = 4


def trial_of(case: Record, shown: Record) -> Record | None:
    """The trial that the shown finding is of."""
    keys = ("variant", "lane", "point")
    same = (t for t in case["trials"] if all(t[key] == shown[key] for key in keys))
    return next(same, None)


def pictures(trial: Record, shown: Record) -> Iterator[Block]:
    """What of the trial can be drawn."""
    yield from _map(trial, shown)
    yield from _pipeline(trial)
    yield from _block_table(trial)


def acceptance(trial: Record) -> Iterator[Block]:
    """New tokens by engine step of the trial, where its scenario counted them."""
    steps = trial["metrics"].get("tokens_by_step")
    if not isinstance(steps, Mapping) or not steps:
        return
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
        rest=0.0,  # a request that has ended makes no token
    )


def _map(trial: Record, shown: Record) -> Iterator[Block]:
    """The tensor that was hit and where, from the findings about it."""
    finding = shown["finding"]
    size = _size(str(shown.get("tensor") or ""))
    if not finding["elements"] or size is None:
        return
    places = Counter(
        (int(f["elements"][0]), int(f["elements"][1]), _short(f))
        for f in trial["findings"]
        if f["tensor"] == finding["tensor"] and f["elements"]
    )
    spans = [
        Span(first, last, label if count == 1 else f"{label}, {count} times", bad=True)
        for (first, last, label), count in sorted(places.items())
    ]
    yield MemoryMap(str(shown["tensor"]), size, spans[:SHOWN], max(0, len(spans) - SHOWN))


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


def _pipeline(trial: Record) -> Iterator[Block]:
    """When each stage was told of a step and began it, and which of them have findings."""
    told = trial["metrics"].get("turns")
    if not told:
        return
    hit = {int(f["launch"]) for f in trial["findings"] if f["launch"] is not None}
    strayed = {(int(s["stage"]), int(s["step"])) for s in trial["metrics"].get("strayed", ())}
    turns = []
    for one in told:
        first, last = (int(number) for number in one["launches"])
        stage, step, started = int(one["stage"]), int(one["step"]), one["started"]
        turns.append(
            Turn(
                stage,
                step,
                int(one["issued"]),
                None if started is None else int(started),
                f"{first}-{last}",
                any(first <= launch <= last for launch in hit),
                (stage, step) in strayed,
            )
        )
    begin = max(0, min((t.issued for t in turns if t.bad or t.strayed), default=0) - BEFORE)
    kept = [turn for turn in turns if begin <= turn.issued < begin + TICKS]
    yield Pipeline(
        "Steps on the stages of the pipeline",
        max(turn.stage for turn in turns) + 1,
        kept,
        len(turns) - len(kept),
    )


def _block_table(trial: Record) -> Iterator[Block]:
    """Copies of states that went elsewhere, each by its row of the block table."""
    told = trial["metrics"].get("strayed")
    if not told:
        return
    copies = [
        Copy(
            f"stage {one['stage']}, step {one['step']}, request {one['request']}, "
            f"group {one['group']}",
            [int(block) for block in one["row"]],
            _ends(one["meant"]),
            _ends(one["used"]),
        )
        for one in told
    ]
    title = "State blocks that were meant, and those that the block table led to"
    yield BlockTable(title, copies[:COPIES], max(0, len(copies) - COPIES))


def _ends(told: Record) -> list[tuple[int, int | None]]:
    ends = (told["from"], told["to"])
    return [(int(column), None if block is None else int(block)) for column, block in ends]
