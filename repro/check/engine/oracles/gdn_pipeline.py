"""Oracle `gdn_pipeline` (vllm#63505): whether a hybrid in pipeline stages answers as in one.

The same requests go to one stage and to several, with the same number of tokens in every chunk: a
prompt that is cut elsewhere is rounded elsewhere, and greedy tokens of a random model turn on that
alone (not those of kind `canary`, whose text is wired in). The signature is an answer that differs.
An engine that does not start in stages, as where a stage has no attention layer and prefix caching
is on, is another failure.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...exposure import Value
from ..answer import Answer, Played, Row, Sign, trouble
from ..declare import EngineSpec
from ..observe import Observed
from ..start import Request, Start, start
from ..tokens import prompt

ONE, SEVERAL = "one_stage", "stages"
VOCABULARY = 500  # of the tiny model, less the tokens that mean something


def following(
    spec: EngineSpec,
    settings: Mapping[str, Value],
    package: str,
    played: Mapping[str, Played],
    known: bool,
) -> tuple[str, Start] | None:
    """One stage, then as many as `pp` says."""
    del known
    for name, stages in ((ONE, 1), (SEVERAL, int(settings.get("pp", 3)))):
        if name not in played:
            if any(trouble(one) for one in played.values()):
                return None
            given = {**settings, "pp": stages}
            return name, start(spec, given, package, batches=_batches(spec))
    return None


def judge(
    spec: EngineSpec, settings: Mapping[str, Value], played: Mapping[str, Played], known: bool
) -> Answer:
    """What the two starts show of the signature."""
    del spec, settings, known
    for name, start_ in played.items():
        if answer := trouble(start_):
            return Answer(answer.sign, f"{name}: {answer.reason}", (), answer.tail)
    if SEVERAL not in played:
        return Answer(Sign.UNKNOWN, "the stages were not started")
    one, several = played[ONE].observed, played[SEVERAL].observed
    stages = (several.engine or {}).get("pipeline_stages")
    rows = [
        Row("pipeline_stages", "in how many stages does the engine run?", stages, ""),
        _row(one, several),
    ]
    differing = differences(one, several)
    if differing is None:
        return Answer(Sign.UNKNOWN, "not every request was answered by both", tuple(rows))
    if differing:
        name, place = differing[0]
        why = f"{len(differing)} answers differ, first {name} from token {place + 1} on"
        return Answer(Sign.SEEN, why, tuple(rows))
    why = f"{stages} stages answer as one does, token for token"
    return Answer(Sign.NOT_SEEN, why, tuple(rows))


def differences(one: Observed, several: Observed) -> list[tuple[str, int]] | None:
    """(request, first token that differs, from 0); None where an answer is missing."""
    found = []
    if not one.batches or one.batches.keys() != several.batches.keys():
        return None
    for name, batch in one.batches.items():
        other = several.batches[name]
        if not batch.tokens or batch.tokens.keys() != other.tokens.keys():
            return None
        for request, said in batch.tokens.items():
            answered = other.tokens[request]
            if len(said) != len(answered) or not said:
                return None
            pairs = zip(said, answered, strict=True)
            places = [i for i, (a, b) in enumerate(pairs) if a != b]
            found += [(f"{name}/{request}", places[0])] if places else []
    return found


def _row(one: Observed, several: Observed) -> Row:
    question = "which requests are answered otherwise in stages than in one?"
    differing = differences(one, several)
    tried = ", ".join(
        f"{name}: {'+'.join(str(n) for n in batch.prompts.values())}"
        for name, batch in one.batches.items()
    )
    value = None if differing is None else ", ".join(name for name, _ in differing) or "none"
    line = max((batch.line for batch in several.batches.values()), default=1)
    return Row("differing_answers", question, value, f"prompts: {tried}", (SEVERAL, line))


def _batches(spec: EngineSpec) -> dict[str, tuple[Request, ...]]:
    """A short prompt, a cold long one, the long one again, three at once that fit into one step
    together: whether they come in one or one after the other, none is cut."""
    new, long = spec.number("new"), spec.number("long")
    if spec.checkpoint is not None and spec.checkpoint.kind == "canary":
        text = prompt(long + 200)
    else:
        text = tuple((i * 37 + 11) % VOCABULARY + 3 for i in range(long + 200))
    return {
        "short": (Request("r", text[:40], new),),
        "cold": (Request("r", text[:long], new),),
        "warm": (Request("r", text[:long], new),),
        "mixed": (
            Request("a", text[: long // 2], new),
            Request("b", text[5:90], new),
            Request("c", text[100 : 100 + long // 2], new),
        ),
    }
