"""The two builds at a boundary that is confirmed, and how they came up. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..check.exposure import MODELS, PIPELINES, Value
from .question import Find
from .record import Stage
from .verdicts import Bad, Observation, effective


@dataclass(frozen=True, slots=True)
class Pair:
    """The two builds at a boundary, and what opens them. settings: of the bad one, as its engine
    came up. moved: switches whose default, in such settings, is another one on the other side."""

    bad: str
    good: str
    words: Mapping[str, str]
    settings: Mapping[str, str] = field(default_factory=dict)
    moved: frozenset[str] = frozenset()

    def other(self, build: str) -> str:
        return self.good if build == self.bad else self.bad


def pair(
    stage: Stage, defaults: Sequence[Mapping[str, Any]], fixed: Mapping[str, Value]
) -> Pair | None:
    """The builds of a confirmed boundary; None where it is not confirmed. defaults: as the part
    `defaults` of a boundary. fixed: settings of the question."""
    result = stage.result
    if str(result.kind) not in set(Find) or result.build is None or result.previous is None:
        return None
    bad, good = result.build, result.previous
    if stage.find is Find.FIRST_GOOD:
        bad, good = good, bad
    words = {c.build: c.word for c in stage.line.candidates if c.build in {bad, good}}
    settings: dict[str, str] = {}
    for event in effective(list(stage.events)):
        if isinstance(event, Observation) and event.build == bad and isinstance(event.verdict, Bad):
            for acting in (stage.rows.get(event.log) or {}).get("exposure", ()):
                settings |= {str(k): str(v) for k, v in acting["settings"].items()}
    moved = {str(d["setting"]) for d in defaults if _applies(str(d["of"]), {**settings, **fixed})}
    return Pair(bad, good, words, settings, frozenset(moved))


def _applies(of: str, settings: Mapping[str, Value]) -> bool:
    """Whether a default of these settings, as in `v1 pp2 align`, is that of an engine in others;
    what nobody said of it does not speak against it."""
    stages = f"pp{min(int(settings.get('pp', 1)), max(PIPELINES))}"
    for word in of.split():
        if word in MODELS:
            known = settings.get("model", word) == word
        elif word == "align":
            known = settings.get("prefix_caching", "on") == "on"
        elif word.startswith("pp"):
            known = word == stages
        else:
            known = settings.get("runner", word) == word
        if not known:
            return False
    return True
