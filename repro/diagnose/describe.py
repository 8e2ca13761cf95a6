"""The engine and its settings in the words of a page, with what is only default. Pure."""

from __future__ import annotations

from .situation import How, Seen, Situation
from .wording import NAMES

ASIDE = {How.DEFAULT: " (default)", How.CLAIMED: " (as is said)"}


def engine_parts(situation: Situation) -> list[str]:
    """`vLLM 0.27.1`, `runner V1`, `TP 2`, …: what is known, in the order of interest."""
    name = situation.value("engine")
    parts = []
    if name:
        release = situation.get("release")
        version = f" {release.values[0]}{_aside(release)}" if release else ", version unknown"
        parts.append(NAMES.get(str(name), str(name)) + version)
    parts += _each(situation)
    return parts


def _each(situation: Situation) -> list[str]:
    parts: list[str] = []
    runner = situation.get("runner")
    if runner:
        parts.append(f"runner {str(runner.values[0]).upper()}{_aside(runner)}")
    for size in ("tp", "pp", "dp"):
        seen = situation.get(size)
        if seen and seen.values[0] not in (0, 1):
            # from the ranks that wrote: there may be more
            least = "≥ " if seen.how is How.DERIVED else ""
            parts.append(f"{size.upper()} {least}{seen.values[0]:g}")
    parts += _speculation(situation)
    backend = situation.get("backend")
    if backend:
        parts.append(str(backend.values[0]))
    for word, field in (("prefix caching", "prefix_caching"), ("async scheduling", "async")):
        seen = situation.get(field)
        if seen:
            parts.append(f"{word} {seen.values[0]}{_aside(seen)}")
    if situation.value("eager") == "yes":
        parts.append("eager")
    if situation.value("hybrid") == "yes":
        parts.append("hybrid")
    cards = situation.get("gpu")
    if cards:
        parts.append(str(cards.values[0]))
    return parts


def _speculation(situation: Situation) -> list[str]:
    spec = situation.value("spec")
    if spec is None:
        return []
    if spec == "off":
        return ["no speculation"]
    method, k = situation.value("method"), situation.value("k")
    return [f"{method or 'drafts'}" + (f" k={k:g}" if isinstance(k, (int, float)) else "")]


def _aside(seen: Seen) -> str:
    return ASIDE.get(seen.how, "")
