"""Oracle `stale_metadata` (vllm#41162): are late drafts computed with metadata of early ones?

Two starts, one with each canary: one sees a sequence length that is too short, the other a key or
value that was written over. Of a sound engine every draft is accepted at every position. The
signature is a loss that begins at the third position or later, in one of them at least: the first
draft needs no metadata of the loop, the second is what the loop builds first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...exposure import Value
from ..answer import Answer, Played, Row, Sign, trouble
from ..declare import EngineSpec
from ..observe import Observed
from ..start import Request, Start, start
from ..tokens import continuation, prompt

CANARIES = ("length_canary", "slot_canary")
OWN = "own_model"
FIRST_STALE = 3  # position of a draft in its step, from 1, that can be stale at the earliest


def following(
    spec: EngineSpec,
    settings: Mapping[str, Value],
    package: str,
    played: Mapping[str, Played],
    known: bool,
) -> tuple[str, Start] | None:
    """A start with each canary; one with a model of the user's."""
    if any(trouble(one) for one in played.values()):
        return None
    new = spec.number("new")
    lengths = range(spec.number("first"), spec.number("last") + 1, spec.number("apart"))
    batches = {f"prompt-{n}": (Request("r", prompt(n), new),) for n in lengths}
    for name in CANARIES if known else (OWN,):
        if name not in played:
            one = start(spec, settings, package, batches=batches)
            if known and one.checkpoint is not None:
                one = replace(one, checkpoint=replace(one.checkpoint, kind=name))
            return name, one
    return None


def judge(
    spec: EngineSpec, settings: Mapping[str, Value], played: Mapping[str, Played], known: bool
) -> Answer:
    """What the starts show of the signature."""
    rows: list[Row] = []
    lost: list[tuple[str, int]] = []
    for name, one in played.items():
        if answer := trouble(one):
            return Answer(answer.sign, f"{name}: {answer.reason}", tuple(rows), answer.tail)
        drafts, accepted = acceptance(one.observed)
        rows.append(_row(name, one.observed, drafts, accepted))
        k = int(settings.get("k", spec.k))
        if drafts == 0 or len(accepted) != k:
            why = f"{name}: acceptance by position is not told for {k} drafts a step"
            return Answer(Sign.UNKNOWN, why, tuple(rows))
        if known and (wrong := _wrong(one.observed)):
            return Answer(Sign.OTHER, f"{name}: another failure: {wrong}", tuple(rows))
        first = first_lost(drafts, accepted, known)
        if first is not None:
            lost.append((name, first))
    if not lost:
        return Answer(Sign.NOT_SEEN, "drafts are accepted at every position", tuple(rows))
    early = [(name, first) for name, first in lost if first < FIRST_STALE]
    if early:
        name, first = early[0]
        why = f"{name}: another loss: drafts are lost from position {first} of a step on"
        return Answer(Sign.OTHER, why, tuple(rows))
    told = "; ".join(f"{name}: from draft {first} of a step on" for name, first in lost)
    return Answer(Sign.SEEN, f"late drafts of a step are lost: {told}", tuple(rows))


def acceptance(observed: Observed) -> tuple[int, tuple[int, ...]]:
    """(steps with drafts, accepted by position in a step) over all batches."""
    batches = list(observed.batches.values())
    drafts = sum(batch.count("drafts") or 0 for batch in batches)
    positions = [batch.per_position for batch in batches]
    if len({len(p) for p in positions}) != 1:
        return drafts, ()
    return drafts, tuple(map(sum, zip(*positions, strict=True)))


def first_lost(drafts: int, accepted: tuple[int, ...], known: bool) -> int | None:
    """The first position, from 1, at which drafts are lost: any of a model whose drafts are all
    right; all of them, after a position with some, of another one."""
    for place, count in enumerate(accepted, 1):
        if count < drafts if known else count == 0:
            return place
    return None


def _row(name: str, observed: Observed, drafts: int, accepted: tuple[int, ...]) -> Row:
    kind = name.replace("_", " ")
    question = f"how many drafts are accepted at each position of a step? ({kind})"
    steps = [" ".join(map(str, batch.made("r"))) for batch in observed.batches.values()]
    detail = f"of {drafts} steps; tokens a step: {' | '.join(steps)}"
    line = max((batch.line for batch in observed.batches.values()), default=1)
    return Row(f"accepted_by_position_{name}", question, accepted, detail, (name, line))


def _wrong(observed: Observed) -> str:
    for name, batch in observed.batches.items():
        for request, said in batch.tokens.items():
            if said != continuation(prompt(batch.prompts[request]), len(said)):
                return f"{name} is answered with wrong tokens"
    return ""
