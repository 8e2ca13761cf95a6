"""Oracle `draft_gate` (vllm#58080): a draft that is shorter than its target shuts off the batch.

One start measures all. A search finds the first prompt length after which no draft is accepted; a
short request is served alone and beside a long one. The signature, as measured with the CPU builds
of 0.27.0, 0.28.0, 0.29.0 and 0.32.0 on runner V1:

- every draft is accepted for short prompts, none from one length on, and nothing in between is out
  of order; the last length with a draft is the draft's max_model_len minus k;
- drafts go on being made and verified behind that length: they are wasted, not left out;
- the short request makes one token a step exactly while the long one lives, and one step more;
- every token that is said is right.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

from ...exposure import Value
from ..answer import Answer, Played, Row, Sign, trouble
from ..declare import EngineSpec
from ..observe import Batch, Observed
from ..start import Request, Search, Start, start
from ..tokens import continuation, prompt

MAIN, PLAIN = "speculating", "plain"
PREFIX = "length-"
MAX_MODEL_LEN = re.compile(r"Using max model len (\d{1,9})\b")
ALONE, BESIDE = "alone", "beside"


def following(
    spec: EngineSpec,
    settings: Mapping[str, Value],
    package: str,
    played: Mapping[str, Played],
    known: bool,
) -> tuple[str, Start] | None:
    """The start that measures; for a model whose text is not known, the same requests without
    speculation after it."""
    short = Request("short", prompt(spec.number("short")), spec.number("short_new"))
    long = Request("long", prompt(spec.number("long")), spec.number("long_new"))
    batches = {ALONE: (short,), BESIDE: (short, long)}
    if MAIN not in played:
        high = spec.number("high")
        search = Search("length", prompt(high), spec.number("low"), high, spec.number("new"))
        return MAIN, start(spec, settings, package, searches=(search,), batches=batches)
    if known or PLAIN in played or trouble(played[MAIN]):
        return None
    for length in _lengths(played[MAIN].observed):
        name = f"{PREFIX}{length}"
        batches[name] = (Request("r", prompt(length), spec.number("new")),)
    return PLAIN, start(spec, {**settings, "k": 0}, package, batches=batches)


def judge(
    spec: EngineSpec, settings: Mapping[str, Value], played: Mapping[str, Played], known: bool
) -> Answer:
    """What the starts show of the signature."""
    for one in played.values():
        if answer := trouble(one):
            return answer
    observed = played[MAIN].observed
    if not _lengths(observed) or not {ALONE, BESIDE} <= observed.batches.keys():
        return Answer(Sign.UNKNOWN, "not every request that was to be served was")
    plain = None if known else played[PLAIN].observed
    rows = [*_configuration(observed), *_logged(played[MAIN]), *_measured(observed)]
    wrong = _wrong(observed, plain)
    rows.append(
        Row(
            "output_tokens",
            "is every token right?",
            "wrong" if wrong else "right",
            wrong or _text(known),
        )
    )
    sign, reason = _signature(spec, settings, played[MAIN], wrong, known)
    return Answer(sign, reason, tuple(rows))


def first_lost(observed: Observed) -> tuple[int | None, str]:
    """(the first prompt length without an accepted draft, "") or (None, why there is none to tell).

    The length before it must have been measured too, and no longer one have an accepted draft.
    """
    accepted = {n: _accepted(batch) for n, batch in _lengths(observed).items()}
    if any(count is None for count in accepted.values()) or not accepted:
        return None, "the engine does not count accepted drafts"
    lost = [n for n in sorted(accepted) if not accepted[n]]
    if not lost:
        return None, f"drafts are accepted after every prompt up to {max(accepted)} tokens"
    first = lost[0]
    if first == min(accepted):
        return None, f"no draft is accepted after {first} tokens, the shortest prompt"
    later = [n for n in accepted if n > first and accepted[n]]
    if later:
        return None, f"drafts are accepted after {later[0]} tokens, and none after {first}"
    if first - 1 not in accepted:
        return None, f"{first - 1} tokens were not tried: the border is not known"
    return first, ""


def _signature(
    spec: EngineSpec,
    settings: Mapping[str, Value],
    played: Played,
    wrong: str,
    known: bool,
) -> tuple[Sign, str]:
    observed = played.observed
    if int(settings.get("k", spec.k)) == 0:
        return Sign.NOT_SEEN, "without speculation there are no drafts to lose"
    if wrong:
        return Sign.OTHER, f"another failure: {wrong}"
    lengths = _lengths(observed)
    shortest = lengths[min(lengths)]
    whole = _accepted(shortest) == shortest.count("draft_tokens") if known else _accepted(shortest)
    if not whole:
        return Sign.OTHER, (
            f"another loss: {_fraction(shortest)} drafts are accepted after {min(lengths)} tokens"
        )
    first, why = first_lost(observed)
    slow, life = _slow(observed.batches[BESIDE]), len(observed.batches[BESIDE].made("long"))
    served = bool((observed.engine or {}).get("served"))
    slowed = served or life <= slow <= life + 1  # of a server the steps are not seen
    if first is None:
        if any(_accepted(batch) == 0 for batch in lengths.values()):
            return Sign.UNKNOWN, why
        if not served and slowed and _slow(observed.batches[ALONE]) < slow:
            return Sign.OTHER, f"another loss: {why}, but a long neighbour slows a short request"
        return Sign.NOT_SEEN, why
    draft, k = _draft(played), int(settings.get("k", spec.k))
    if not isinstance(draft, int):
        return Sign.UNKNOWN, "the engine does not tell the draft's max_model_len"
    if not lengths[first].count("draft_tokens"):
        return Sign.NOT_SEEN, f"from {first} tokens on nothing is drafted, so nothing is wasted"
    if first != draft - k + 1:
        return Sign.OTHER, (
            f"another loss: from {first} tokens on; the draft's length {draft} less k {k} would be "
            f"{draft - k}"
        )
    if not slowed:
        return Sign.OTHER, (
            f"drafts are lost from {first} tokens on, but beside a long request of {life} steps a "
            f"short one is slow for {slow}"
        )
    return Sign.SEEN, (
        f"from {first} tokens on every draft is lost, which is the draft's length {draft} less k "
        f"{k}, plus 1"
        + ("" if served else "; a short request makes one token a step while a long one lives")
    )


def _configuration(observed: Observed) -> list[Row]:
    engine = observed.engine or {}
    rows = []
    for name in ("target_max_model_len", "draft_max_model_len"):
        rows.append(Row(name, f"{name} of the engine that was started", engine.get(name), ""))
    return rows


def _draft(played: Played) -> int | None:
    """The draft's max_model_len: of the engine, or the second that a server's log tells."""
    engine = played.observed.engine or {}
    if not engine.get("served"):
        told = engine.get("draft_max_model_len")
        return told if type(told) is int else None
    lengths = [int(m[1]) for _, text in played.said if (m := MAX_MODEL_LEN.search(text))]
    return lengths[1] if len(lengths) == 2 else None


def _logged(played: Played) -> list[Row]:
    """The lengths as a server's log would tell them: the target's, then the draft's."""
    found = [(n, m[1]) for n, text in played.said if (m := MAX_MODEL_LEN.search(text))]
    if not found:
        return []
    value = ", ".join(length for _, length in found)
    detail = "lines `Using max model len` of the log, in their order"
    at = (MAIN, found[-1][0])
    return [Row("logged_lengths", "which lengths does the log tell?", value, detail, at, True)]


def _measured(observed: Observed) -> list[Row]:
    lengths = _lengths(observed)
    first, why = first_lost(observed)
    tried = ", ".join(f"{n}: {_fraction(batch)}" for n, batch in sorted(lengths.items()))
    rows = [
        Row(
            "first_lost_prompt_length",
            "after which prompt length is no draft accepted, for the first time?",
            first,
            why or f"accepted of drafted, by prompt length: {tried}",
            (MAIN, lengths[first].line) if first else None,
        )
    ]
    shortest, longest = lengths[min(lengths)], lengths[max(lengths)]
    for name, batch, n in (
        ("acceptance_short", shortest, min(lengths)),
        ("acceptance_long", longest, max(lengths)),
    ):
        question = f"which part of the drafts is accepted after {n} tokens?"
        rows.append(Row(name, question, _rate(batch), _by_position(batch), (MAIN, batch.line)))
    alone, beside = observed.batches[ALONE], observed.batches[BESIDE]
    detail = (
        f"{len(alone.made('short'))} steps alone, {len(beside.made('short'))} beside a request "
        f"that lives for {len(beside.made('long'))}; tokens a step: {_digits(beside)}"
    )
    question = (
        "how many steps of one token has a short request beside a long one, from the first on?"
    )
    if beside.steps:
        slow = _slow(beside)
        rows.append(Row("neighbour_slow_steps", question, slow, detail, (MAIN, beside.line)))
    return rows


def _lengths(observed: Observed) -> dict[int, Batch]:
    return {
        batch.prompts["r"]: batch
        for name, batch in observed.batches.items()
        if name.startswith(PREFIX) and "r" in batch.prompts
    }


def _accepted(batch: Batch) -> int | None:
    return batch.count("accepted_tokens")


def _rate(batch: Batch) -> float | None:
    accepted, drafted = _accepted(batch), batch.count("draft_tokens")
    return round(accepted / drafted, 3) if accepted is not None and drafted else None


def _fraction(batch: Batch) -> str:
    return f"{batch.count('accepted_tokens')} of {batch.count('draft_tokens')}"


def _by_position(batch: Batch) -> str:
    at = ", ".join(map(str, batch.per_position)) or "not told"
    return f"{_fraction(batch)} drafts; by position {at}"


def _slow(batch: Batch) -> int:
    """Steps from the first one on in which the short request gets one token."""
    made = batch.made("short")
    return next((i for i, count in enumerate(made) if count != 1), len(made))


def _digits(batch: Batch) -> str:
    """Tokens a step of the short request, equal ones together: `1 × 21, 3 × 22, 2`."""
    made = batch.made("short")
    if not made:
        return "not seen"
    borders = [0, *(i for i, (a, b) in enumerate(pairwise(made), 1) if a != b), len(made)]
    runs = [(made[a], b - a) for a, b in pairwise(borders)]
    return ", ".join(f"{count} × {times}" if times > 1 else str(count) for count, times in runs)


def _wrong(observed: Observed, plain: Observed | None) -> str:
    """The first request that was answered with other tokens than it should; "" for none."""
    for name, batch in observed.batches.items():
        for request, said in batch.tokens.items():
            if plain is None:
                right = continuation(prompt(batch.prompts[request]), len(said))
            elif name in plain.batches:
                right = plain.batches[name].tokens.get(request, ())
            else:
                return f"{name} was not served without speculation"
            if said != right:
                return f"request {request} of {name} is answered with wrong tokens"
    return ""


def _text(known: bool) -> str:
    return "as the model's text goes on" if known else "as without speculation"
