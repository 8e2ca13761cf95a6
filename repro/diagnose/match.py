"""Classes against a situation: what stands for and against each, and where it stands. Pure.

Evidence adds up as logarithms of odds: the prior of the class and the weights of all clues that
hold; what a person only claims counts half, a default three quarters. What must hold and
demonstrably does not excludes, and so does a release whose code was read and lacks the defect.
`docs/diagnose.md` says the same to users.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from string import Formatter
from typing import NamedTuple

from . import conditions
from .names import SIGNS
from .rules import FaultClass, Need, Releases
from .situation import SURENESS, How, Ref, Seen, Situation

LIKELY = 0.7  # odds of 2 to 1
POSSIBLE = -2.0  # odds of 1 to 7
BEHIND = 1.5  # a class this far behind the best one is possible at most
UNKNOWN_NEED = -0.7  # for each need that cannot be told
SHARE = {How.OBSERVED: 1.0, How.DERIVED: 1.0, How.DEFAULT: 0.75, How.CLAIMED: 0.5}
# What a need that does not hold is worth, where its value is not sure enough to exclude.
UNSURE = {How.DEFAULT: -1.2, How.CLAIMED: -1.5}
SHOWN = 60  # characters of a value in a sentence


class Standing(StrEnum):
    """Where a class stands."""

    LIKELY = "likely"
    POSSIBLE = "possible"
    EXCLUDED = "excluded"
    UNKNOWN = "unknown"


class Statement(NamedTuple):
    """One thing that was weighed. refs: the lines it rests on. weight: None for an exclusion."""

    text: str
    refs: tuple[Ref, ...] = ()
    weight: float | None = None
    how: How = How.OBSERVED


class Ranked(NamedTuple):
    """A class and where it stands. unmet: needs that cannot be told from what was given."""

    fault_class: FaultClass
    standing: Standing
    score: float
    pro: tuple[Statement, ...] = ()
    contra: tuple[Statement, ...] = ()
    unmet: tuple[str, ...] = ()


def match(classes: Sequence[FaultClass], situation: Situation) -> tuple[Ranked, ...]:
    """All classes, the likeliest first; excluded and unknown ones behind, by number."""
    weighed = [_weigh(one, situation) for one in classes]
    best = max((r.score for r in weighed if r.standing is Standing.LIKELY), default=0.0)
    settled = [
        _behind(ranked) if ranked.standing is Standing.LIKELY and ranked.score < best - BEHIND
        else ranked
        for ranked in weighed
    ]  # fmt: skip
    order = list(Standing)
    return tuple(sorted(settled, key=lambda r: (order.index(r.standing), -_order(r), _number(r))))


def left(ranked: Iterable[Ranked]) -> list[Ranked]:
    """The classes that are still in question."""
    return [r for r in ranked if r.standing in (Standing.LIKELY, Standing.POSSIBLE)]


def _order(ranked: Ranked) -> float:
    return ranked.score if ranked.standing in (Standing.LIKELY, Standing.POSSIBLE) else 0.0


def _number(ranked: Ranked) -> int:
    return int(ranked.fault_class.number[1:])


def _behind(ranked: Ranked) -> Ranked:
    return Ranked(
        ranked.fault_class, Standing.POSSIBLE, ranked.score, ranked.pro, ranked.contra, ranked.unmet
    )


def _weigh(one: FaultClass, situation: Situation) -> Ranked:
    shut, unsure, unmet = _needs(one, situation)
    for statement in _releases(one, situation):
        (unsure if statement.weight else shut).append(statement)
    pro: list[Statement] = []
    contra = list(unsure)
    signs = False
    for clue in one.clues:
        if conditions.holds(clue.when, situation) is True:
            seen = conditions.evidence(clue.when, situation)
            fitting = dict(zip((n for n in clue.when if situation.get(n)), seen, strict=True))
            statement = _statement(clue.says, seen, situation, clue.weight, fitting)
            (pro if clue.weight > 0 else contra).append(statement)
            signs = signs or (clue.weight > 0 and not SIGNS.keys().isdisjoint(clue.when))
    score = one.prior + UNKNOWN_NEED * len(unmet)
    score = round(score + sum(s.weight or 0 for s in (*pro, *contra)), 2)
    explains = not set(one.explains).isdisjoint(_symptoms(situation))
    if shut:
        return Ranked(one, Standing.EXCLUDED, score, tuple(pro), tuple(shut), tuple(unmet))
    standing = Standing.UNKNOWN
    if explains and pro and score >= POSSIBLE:
        sure = signs and not unmet and score >= LIKELY
        standing = Standing.LIKELY if sure else Standing.POSSIBLE
    if not explains:
        pro, contra = [], []
    pro.sort(key=lambda s: -(s.weight or 0))
    contra.sort(key=lambda s: s.weight or 0)
    return Ranked(one, standing, score, tuple(pro), tuple(contra), tuple(unmet))


def _symptoms(situation: Situation) -> tuple[object, ...]:
    seen = situation.get("symptom")
    return seen.values if seen else ()


def _needs(
    one: FaultClass, situation: Situation
) -> tuple[list[Statement], list[Statement], list[str]]:
    """What excludes the class, what speaks against it, and what cannot be told."""
    shut: list[Statement] = []
    unsure: list[Statement] = []
    unmet: list[str] = []
    for need in one.must:
        if need.unless is not None and conditions.holds(need.unless, situation) is True:
            continue
        answer = conditions.any_holds(need.whens, situation)
        if answer is None or (answer is False and _beyond(need, situation)):
            unmet.append(need.says)
        elif answer is False:
            seen = [s for when in need.whens for s in conditions.evidence(when, situation)]
            how = _weakest(seen)
            text = f"needs {need.says}; here {_what(need, situation)}"
            if how in UNSURE:
                mark = "by default" if how is How.DEFAULT else "as is said"
                text = f"{text} ({mark})"
                unsure.append(Statement(text, _refs(seen), UNSURE[how], how))
            else:
                shut.append(Statement(text, _refs(seen), None, how))
    return shut, unsure, unmet


def _beyond(need: Need, situation: Situation) -> bool:
    """Whether a need asks for a symptom where the first failure is not in what was given."""
    return any("symptom" in when for when in need.whens) and set(_symptoms(situation)) <= {
        "consequence"
    }


def _what(need: Need, situation: Situation) -> str:
    """The values that a need met: `runner v1`."""
    names = list(dict.fromkeys(name for when in need.whens for name in when))
    told = [f"{_plain(name)} {_shown(seen)}" for name in names if (seen := situation.get(name))]
    return ", ".join(told) or "none was seen"


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _releases(one: FaultClass, situation: Situation) -> list[Statement]:
    """What the release says, where the engine's code was read there: one that was observed
    excludes, one that is only said speaks against."""
    found: list[Statement] = []
    seen = situation.get("release")
    if seen is None:
        return found
    for releases in one.versions:
        if releases.part or releases.beneath or not releases.read:
            continue
        if situation.value("engine") != releases.of:
            continue
        waived = releases.unless and conditions.holds(releases.unless, situation) is True
        if not waived and _lacks(releases, str(seen.values[0])):
            text = f"{releases.of} {seen.values[0]}: {releases.says}"
            found.append(Statement(text, seen.refs, UNSURE.get(seen.how), seen.how))
    return found


def _lacks(releases: Releases, release: str) -> bool:
    """Whether the code of a release was read and does not have the defect."""
    at = conditions.version(release)
    low, _, high = (releases.read or "").partition("..")
    begin, end = conditions.version(low), conditions.version(high)
    if at is None or begin is None or end is None or not begin <= at <= end:
        return False
    first, fixed, until = (
        conditions.version(text) if text else None
        for text in (releases.first, releases.fixed, releases.until)
    )
    before = first is not None and at < first
    after = fixed is not None and at >= fixed and (until is None or at < until)
    return before or after


def _statement(
    says: str,
    seen: Sequence[Seen],
    situation: Situation,
    weight: float,
    fitting: Mapping[str, Seen],
) -> Statement:
    how = _weakest(seen)
    text = filled(says, situation, fitting)
    return Statement(text, _refs(seen), round(weight * SHARE[how], 2), how)


def filled(says: str, situation: Situation, fitting: Mapping[str, Seen] | None = None) -> str:
    """A sentence of a rule with the values of the names in it.

    fitting: of names that have several values, those that the rule is about.
    """
    parts = []
    for text, name, _, _ in Formatter().parse(says):
        parts.append(text)
        if name:
            seen = (fitting or {}).get(name) or situation.get(name)
            parts.append(_shown(seen) if seen else "?")
    return "".join(parts)


def _shown(seen: Seen) -> str:
    texts = [f"{v:g}" if isinstance(v, float) else str(v) for v in seen.values[:4]]
    text = ", ".join(texts)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _weakest(seen: Sequence[Seen]) -> How:
    return max((s.how for s in seen), key=SURENESS.__getitem__, default=How.OBSERVED)


def _refs(seen: Sequence[Seen]) -> tuple[Ref, ...]:
    return tuple(sorted({ref for one in seen for ref in one.refs}))
