"""Oracle `one_token_chunk`: does a prompt of one token start from the state that it finds?

A pool of few blocks, all of which are used by requests with longer prompts. Then prompts of one
token are served, one after the other. Their first token shows whether the recurrent state of the
block they got was taken for theirs. The same prompt on the fresh engine is the control.
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

MAIN = "recycling"
FRESH, USED, RECYCLED = "fresh", "used", "recycled"
LONG = 40  # tokens of the prompts that use the blocks
APART = 11  # tokens of the text between the starts of two requests


def following(
    spec: EngineSpec,
    settings: Mapping[str, Value],
    package: str,
    played: Mapping[str, Played],
    known: bool,
) -> tuple[str, Start] | None:
    """One start: a prompt of one token, then as many longer ones as there are blocks, then again
    prompts of one token."""
    if not known:
        raise UntestableError("this experiment takes a model whose every token is known")
    if settings.get("k"):
        raise UntestableError(
            "this experiment is made without speculation, whose blocks are used otherwise"
        )
    if played:
        return None
    new, blocks = spec.number("new"), int(spec.arguments["num_gpu_blocks_override"])
    batches = {FRESH: (Request("r", prompt(1, CYCLE[0]), new),)}
    for number in range(blocks):
        first = CYCLE[number * APART % len(CYCLE)]
        batches[f"{USED}-{number}"] = (Request("r", prompt(LONG, first), new),)
    for number in range(spec.number("prompts")):
        first = CYCLE[(5 + number * APART) % len(CYCLE)]
        batches[f"{RECYCLED}-{number}"] = (Request("r", prompt(1, first), new),)
    return MAIN, start(spec, settings, package, batches=batches)


def judge(
    spec: EngineSpec, settings: Mapping[str, Value], played: Mapping[str, Played], known: bool
) -> Answer:
    """What the answers to prompts of one token show."""
    del settings, known
    if MAIN not in played:
        return Answer(Sign.UNKNOWN, "the engine was not started")
    if answer := trouble(played[MAIN]):
        return answer
    observed = played[MAIN].observed
    blocks = (observed.engine or {}).get("num_gpu_blocks")
    used, recycled = _of(observed.batches, USED), _of(observed.batches, RECYCLED)
    if FRESH not in observed.batches or len(recycled) != spec.number("prompts"):
        return Answer(Sign.UNKNOWN, "not every request was served")
    wrong = [(n, b) for n, b in recycled if _first_wrong(b, 5 + n * APART)]
    row = Row(
        "wrong_after_one_token",
        "how many prompts of one token, in blocks that were used before, are answered wrongly?",
        f"{len(wrong)} of {len(recycled)}",
        _said(wrong) or "the first token after each is right",
        (MAIN, (wrong or recycled)[0][1].line),
    )
    rows = (Row("blocks", "how many blocks has the pool?", blocks, ""), row)
    if _first_wrong(observed.batches[FRESH], 0):
        return Answer(Sign.OTHER, "another failure: wrong on a fresh engine already", rows)
    if any(_first_wrong(b, n * APART) for n, b in used):
        return Answer(Sign.OTHER, "another failure: longer prompts are answered wrongly", rows)
    if wrong:
        why = f"{row.value} prompts of one token are answered from another request's state"
        return Answer(Sign.SEEN, f"{why}: {_said(wrong)}", rows)
    if not isinstance(blocks, int) or blocks > len(used):
        return Answer(Sign.UNKNOWN, "whether a block was used before is not known", rows)
    return Answer(Sign.NOT_SEEN, "prompts of one token are answered alike in used blocks", rows)


def _of(batches: Mapping[str, Batch], kind: str) -> list[tuple[int, Batch]]:
    """(number, batch) of the requests of a kind."""
    numbers = range(len(batches))
    return [(n, batches[f"{kind}-{n}"]) for n in numbers if f"{kind}-{n}" in batches]


def _first_wrong(batch: Batch, place: int) -> bool:
    """Whether the first token after a prompt, which begins at a place of the text, is wrong."""
    text = prompt(batch.prompts["r"], CYCLE[place % len(CYCLE)])
    return batch.tokens.get("r", ())[:1] != continuation(text, 1)


def _said(wrong: list[tuple[int, Batch]]) -> str:
    if not wrong:
        return ""
    number, batch = wrong[0]
    first = CYCLE[(5 + number * APART) % len(CYCLE)]
    [right] = continuation((first,), 1)
    said = ", ".join(map(str, batch.tokens.get("r", ())[:1])) or "nothing"
    return f"after token {first} comes {said}, and {right} is right"
