"""What to ask for and what to try next, from where the classes stand. Pure.

Experiments are ranked by bits a minute: how much their outcome is expected to tell about which
class it is, by the chances that the classes give for each outcome, over what they cost. Something
that no class describes is always a candidate, so a single class is tested rather than believed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from . import conditions
from .levers import Command, changed
from .match import Ranked, Standing, left
from .rules import Experiment, Knowledge, Outcomes, Question
from .situation import Situation
from .symptoms import DEVICE_FAULTS

# Odds of something that no class describes, as a logarithm.
SOMETHING_ELSE = -1.0
RESTART_MINUTES = 5
ROOT_MINUTES = 10
LEAST_BITS = 0.03
LEAST_SHARE = 0.2  # of the bits of the most telling one
MOST = 3
MOST_ASKED = 6
MOST_GPUS = 64
# Where a class says nothing of an experiment: the fault comes again, more likely than not.
UNSAID: Outcomes = {"again": 0.7, "clean": 0.3}
UNSAID_KINDS: Outcomes = {"other": 1.0}
FIELD = re.compile(r"\{(\w+)\}")


class Proposal(NamedTuple):
    """An experiment to try. bits: what it is expected to tell; separates: the two classes whose
    chances it moves furthest apart."""

    experiment: Experiment
    command: str
    ask: str
    bits: float
    minutes: int
    separates: tuple[str, ...]


class Asked(NamedTuple):
    """Something that is missing, and how to get it."""

    question: Question
    classes: tuple[str, ...]


def missing(ranked: Sequence[Ranked], situation: Situation, known: Knowledge) -> list[Asked]:
    """What is not known and would move a class that is in question, the most telling first."""
    standing = left(ranked)
    most = None
    if not standing:
        # nothing is in question yet: what would bring any class that explains it into question
        seen = situation.get("symptom")
        symptoms = set(seen.values) if seen else set()
        open_ = [r for r in ranked if r.standing is Standing.UNKNOWN]
        standing = [r for r in open_ if symptoms & set(r.fault_class.explains)]
        most = MOST_ASKED
    found = []
    for question in known.questions:
        if any(situation.get(name) or name in situation.absent for name in question.names):
            continue
        if not _askable(question, situation):
            continue
        wanted = [r.fault_class.id for r in standing if question.id in r.fault_class.asks]
        if wanted:
            found.append(Asked(question, tuple(wanted)))
    return found[:most]


def _askable(question: Question, situation: Situation) -> bool:
    if question.engine and situation.value("engine") not in (None, question.engine):
        return False
    return not (question.unless and conditions.holds(question.unless, situation) is True)


def proposals(
    ranked: Sequence[Ranked], situation: Situation, known: Knowledge, command: str | None
) -> list[Proposal]:
    """Experiments for the classes that are left, the most telling for its cost first.

    Where none is left after a fault of the device: for those that would explain it.
    """
    in_question = left(ranked)
    standing = in_question or _explaining(ranked, situation)
    if not standing:
        return []
    chances = _chances([r.score for r in standing])
    parsed = Command.of(command) if command else None
    found = []
    names = dict.fromkeys(name for r in standing for name in r.fault_class.experiments)
    for name in names:
        experiment = _fitted(known.experiments[name], situation)
        if not _sensible(experiment, situation):
            continue
        told = [r.fault_class.experiments.get(name) for r in standing]
        tables = _tables(told)
        bits = information(chances, tables)
        if bits < LEAST_BITS:
            continue
        ids = [r.fault_class.id for r in standing]
        found.append(
            Proposal(
                experiment,
                changed(parsed, experiment),
                _filled(experiment.ask, situation),
                round(bits, 2),
                minutes(experiment),
                _apart(ids, tables) if in_question else (),
            )
        )
    least = LEAST_SHARE * max((p.bits for p in found), default=0.0)
    found = [p for p in found if p.bits >= least]
    found.sort(key=lambda p: (-p.bits / p.minutes, p.minutes))
    return found[:MOST]


def _explaining(ranked: Sequence[Ranked], situation: Situation) -> list[Ranked]:
    seen = situation.get("symptom")
    faults = DEVICE_FAULTS.intersection(map(str, seen.values)) if seen else frozenset()
    open_ = [r for r in ranked if r.standing is Standing.UNKNOWN]
    return [r for r in open_ if faults & set(r.fault_class.explains)]


def minutes(experiment: Experiment) -> int:
    """What an experiment costs, with the restart and the way to root that it takes."""
    cost = experiment.minutes + RESTART_MINUTES * experiment.restart
    return cost + ROOT_MINUTES * experiment.root


def information(chances: Sequence[float], tables: Sequence[Outcomes]) -> float:
    """Expected bits of an outcome about which candidate it is; `chances` add up to 1."""
    total: dict[str, float] = {}
    inside = 0.0
    for chance, table in zip(chances, tables, strict=True):
        inside += chance * _entropy(table.values())
        for outcome, share in table.items():
            total[outcome] = total.get(outcome, 0.0) + chance * share
    return max(0.0, _entropy(total.values()) - inside)


def _entropy(shares: Iterable[float]) -> float:
    return -sum(share * math.log2(share) for share in shares if share > 0)


def _chances(scores: Sequence[float]) -> list[float]:
    """Chances of the candidates, the last of them something that no class describes.

    Taken at half the log-odds: clues of one log overlap, and a class that looks certain would leave
    nothing to test.
    """
    weights = [math.exp(score / 2) for score in (*scores, SOMETHING_ELSE)]
    return [weight / sum(weights) for weight in weights]


def _tables(told: Sequence[Outcomes | None]) -> list[Outcomes]:
    kinds = any(table is not None and "again" not in table for table in told)
    unsaid = UNSAID_KINDS if kinds else UNSAID
    tables: list[Outcomes] = [unsaid if table is None else table for table in told]
    return [*tables, unsaid]


def _sensible(experiment: Experiment, situation: Situation) -> bool:
    for when in (experiment.unless, experiment.tried):
        if when and conditions.holds(when, situation) is True:
            return False
    if experiment.needs and conditions.holds(experiment.needs, situation) is not True:
        return False
    for_vllm = experiment.set or experiment.drop or experiment.spec or experiment.env
    engine = situation.value("engine")
    return not for_vllm or engine in (None, "vllm") or _general(experiment)


def _general(experiment: Experiment) -> bool:
    """Whether all that an experiment changes is CUDA's, not an engine's."""
    return not (experiment.set or experiment.drop or experiment.spec) and all(
        name.startswith(("CUDA_", "PYTORCH_", "NCCL_")) for name in experiment.env or ()
    )


def _apart(ids: Sequence[str], tables: Sequence[Outcomes]) -> tuple[str, ...]:
    """The two candidates whose outcomes differ most; the second is "" where it is no class."""
    names = [*ids, ""]
    best: tuple[float, tuple[str, ...]] = (0.0, ())
    for i, one in enumerate(tables):
        for j in range(i + 1, len(tables)):
            far = _distance(one, tables[j])
            if far > best[0] + 1e-9:
                best = (far, (names[i], names[j]))
    return tuple(name for name in best[1] if name)


def _distance(one: Outcomes, other: Outcomes) -> float:
    names = {*one, *other}
    return sum(abs(one.get(name, 0.0) - other.get(name, 0.0)) for name in names) / 2


def _fitted(experiment: Experiment, situation: Situation) -> Experiment:
    """The experiment with the numbers of this log in its variables."""
    if not experiment.env:
        return experiment
    count = situation.value("tp")
    devices = range(count - 1, -1, -1) if isinstance(count, int) and 1 < count <= MOST_GPUS else ()
    reversed_ = ",".join(map(str, devices)) or UNKNOWN_NUMBER["gpus_reversed"]
    given = {
        name: str(value).replace("{gpus_reversed}", reversed_)
        for name, value in experiment.env.items()
    }
    return experiment._replace(env=given)


def _filled(text: str, situation: Situation) -> str:
    """The words of an experiment with the numbers of this log."""
    values = _numbers(situation)
    return FIELD.sub(lambda match: values.get(match[1], UNKNOWN_NUMBER.get(match[1], "?")), text)


UNKNOWN_NUMBER = {
    "gate_below": "just under (draft length - k)",
    "gate_above": "just over it",
    "tail_margin": "2k",
    "gpus_reversed": "LAST,…,0",
}


def _numbers(situation: Situation) -> Mapping[str, str]:
    draft, k = situation.value("draft_len"), situation.value("k")
    found: dict[str, str] = {}
    if isinstance(k, (int, float)):
        found["tail_margin"] = f"{2 * int(k):,}"
        if isinstance(draft, (int, float)):
            found["gate_below"] = f"{int(draft) - int(k) - 64:,}"
            found["gate_above"] = f"{int(draft) - int(k) + 64:,}"
    return found
