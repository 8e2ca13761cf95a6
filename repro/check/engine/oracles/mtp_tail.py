"""Oracle `mtp_tail` (vllm#40756): what the draft model is fed where a sequence is about to end.

For every k one start: a request that runs into max_model_len alone, then beside a neighbour. Every
pass of the draft model is recorded with its positions and slots, and the blocks that each request
holds. The signature is a row that would be written, and either is at a position from max_model_len
on or lies in a slot that is not its own: that of its position in its request's blocks. A masked row
(slot -1) is written nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...exposure import Value
from ..answer import Answer, Played, Row, Sign, trouble
from ..declare import EngineSpec
from ..observe import Batch, Observed
from ..start import Request, Start, start
from ..tokens import CYCLE, continuation, prompt

SINGLE, PAIR = "single", "pair"
ENDING, NEIGHBOUR = "ending", "neighbour"
OTHER_TEXT = CYCLE[100]  # where the neighbour's prompt begins
MASKED = -1


@dataclass(frozen=True, slots=True)
class Fed:
    """One row of a draft pass. block: the one its slot lies in; owners: of that block, by name."""

    request: str
    position: int
    slot: int
    expected: int | None
    block: int
    owners: tuple[str, ...]
    line: int

    def told(self) -> str:
        whose = " and ".join(f"request {o}" for o in self.owners) or "no request"
        right = "it has no slot" if self.expected is None else f"its own is {self.expected}"
        return (
            f"position {self.position} of request {self.request} goes to slot {self.slot} in block "
            f"{self.block}, of {whose}; {right}"
        )


def following(
    spec: EngineSpec,
    settings: Mapping[str, Value],
    package: str,
    played: Mapping[str, Played],
    known: bool,
) -> tuple[str, Start] | None:
    """A start for every k, until one says nothing."""
    del known
    if any(trouble(one) for one in played.values()):
        return None
    for k in _ks(spec, settings):
        if f"k{k}" not in played:
            limit = int(spec.arguments["max_model_len"])
            ending = Request(ENDING, prompt(limit - spec.number("before")), limit)
            beside = prompt(spec.number(NEIGHBOUR), OTHER_TEXT)
            other = Request(NEIGHBOUR, beside, spec.number("neighbour_new"))
            batches = {SINGLE: (ending,), PAIR: (ending, other)}
            given = {**settings, "k": k}
            return f"k{k}", start(spec, given, package, record=("draft",), batches=batches)
    return None


def judge(
    spec: EngineSpec, settings: Mapping[str, Value], played: Mapping[str, Played], known: bool
) -> Answer:
    """What the starts show of the signature."""
    rows: list[Row] = []
    limit = int(spec.arguments["max_model_len"])
    outside: list[tuple[str, Fed]] = []
    for name, one in played.items():
        if answer := trouble(one):
            return Answer(answer.sign, f"{name}: {answer.reason}", tuple(rows), answer.tail)
        fed = feed(one.observed)
        if fed is None:
            why = f"{name}: a record of the draft model is not one of the driver's"
            return Answer(Sign.UNKNOWN, why, tuple(rows))
        if not fed:
            return Answer(Sign.UNKNOWN, f"{name}: no pass of the draft model was seen", tuple(rows))
        bad = [row for row in fed if row.slot != MASKED and wrong(row, limit)]
        outside += [(name, row) for row in bad]
        rows.append(_row(name, one.observed, fed, bad))
        if complaint := _served(one.observed, limit, known):
            return Answer(Sign.OTHER, f"{name}: another failure: {complaint}", tuple(rows))
    if outside:
        name, first = outside[0]
        return Answer(Sign.SEEN, f"{name}: {first.told()}; {len(outside)} such rows", tuple(rows))
    return Answer(
        Sign.NOT_SEEN, f"all that is drafted stays below {limit} and in its own slots", tuple(rows)
    )


def wrong(row: Fed, limit: int) -> bool:
    """Whether a row that is written is at no position of a sequence, or not in its own slot."""
    return row.position >= limit or row.slot != row.expected


def feed(observed: Observed) -> list[Fed] | None:
    """Every row that the draft model was fed; None where a record of it is not one of ours."""
    size = (observed.engine or {}).get("block_size")
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        return None
    found: list[Fed] = []
    for note in observed.notes:
        if note.get("o") == "draft":
            rows = _pass(note, size)
            if rows is None:
                return None
            found += rows
    return found


def _pass(note: Mapping[str, Any], size: int) -> list[Fed] | None:
    held, rows, step = note.get("blocks"), note.get("rows"), note.get("step")
    if not isinstance(held, dict) or not isinstance(rows, list) or type(step) is not int:
        return None
    if not all(map(_whole, held.values())):
        return None
    found: list[Fed] = []
    for row in rows:
        if not isinstance(row, list) or len(row) != 3 or not all(map(_whole, row[1:])):
            return None
        request, positions, slots = row
        # a row whose blocks are no request's has no place of its own
        own = held.get(request, []) if isinstance(request, str) else []
        name = request if isinstance(request, str) else "?"
        for position, slot in zip(positions, slots, strict=False):
            place, offset = divmod(position, size)
            expected = own[place] * size + offset if 0 <= place < len(own) else None
            block = slot // size
            owners = tuple(r for r, ids in held.items() if block in ids)
            line = int(note["line"])
            found.append(Fed(name, position, slot, expected, block, owners, line))
    return found


def _whole(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int for value in values)


def _ks(spec: EngineSpec, settings: Mapping[str, Value]) -> range:
    if "k" in settings:
        return range(int(settings["k"]), int(settings["k"]) + 1)
    return range(1, spec.number("most_k") + 1)


def _row(name: str, observed: Observed, fed: list[Fed], bad: list[Fed]) -> Row:
    single = observed.batches.get(SINGLE)
    steps = _digits(single, ENDING) if single else "not served"
    masked = sum(row.slot == MASKED for row in fed)
    details = [f"{len(fed)} rows, {masked} of them masked", f"tokens a step: {steps}"]
    if bad:
        details.append(f"{len(bad)} out of place, the first: {bad[0].told()}")
    pair = observed.batches.get(PAIR)
    if pair:
        details.append(f"its neighbour: {_digits(pair, NEIGHBOUR)}")
    where = bad[0] if bad else max(fed, key=lambda row: row.position)
    highest = max((row.position for row in fed if row.slot != MASKED), default=None)
    question = "up to which position is the draft model fed, with a slot?"
    detail = "; ".join(details)
    return Row(f"last_draft_position_{name}", question, highest, detail, (name, where.line))


def _digits(batch: Batch, request: str) -> str:
    return " ".join(map(str, batch.made(request)))


def _served(observed: Observed, limit: int, known: bool) -> str:
    """What is wrong with what was answered; "" for nothing."""
    for name, batch in observed.batches.items():
        for request, said in batch.tokens.items():
            first = OTHER_TEXT if request == NEIGHBOUR else CYCLE[0]
            length = batch.prompts[request]
            if known and said != continuation(prompt(length, first), len(said)):
                return f"request {request} of {name} is answered with wrong tokens"
            if request == ENDING and length + len(said) != limit:
                return f"request {request} of {name} ends at {length + len(said)}, not at {limit}"
    return ""
