"""What the engine was told: names of settings, from the facts of an incident. Pure.

What is not said here may be a default of the release (`defaults.py`), once all else is known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .conditions import version
from .facts import Certainty, Fact
from .machine import note_machine
from .situation import How, Notes, derived
from .sizes import note_lengths, note_sizes
from .switches import note_environment, note_switches
from .values import frames_text, number, of_kind, text_of

# The surest place of an argument first.
ORIGINS = ("effective", "given", "log", "command", "prose")
ENGINE_ORIGINS = ("dump", "init", "banner", "wheel", "collect_env", "frame", "image", "prose")
RELEASE = re.compile(r"v?\d+\.\d+(\.\d+)?(\.post\d+)?(\+cu\d+|\+cpu|\+rocm\S*)?")
CUDA_SUFFIX = re.compile(r"[-+](cu\d+|cpu|rocm\S*|x86_64|aarch64|openai)\S*$")


def note_settings(notes: Notes, facts: Sequence[Fact], engines: Mapping[str, Any]) -> None:
    """Put every setting that is known into `notes`."""
    arguments = _arguments(facts)
    _engine(notes, facts)
    _model(notes, facts, engines)
    _speculation(notes, facts, arguments)
    note_switches(notes, facts, arguments)
    note_sizes(notes, facts, arguments)
    note_lengths(notes, facts, arguments)
    note_environment(notes, facts)
    note_machine(notes, facts)


def _arguments(facts: Sequence[Fact]) -> dict[str, Fact]:
    """Engine arguments by name, the surest of each."""

    def rank(fact: Fact) -> tuple[bool, int]:
        origin = str(fact.get("origin"))
        place = ORIGINS.index(origin) if origin in ORIGINS else len(ORIGINS)
        return fact.certainty is Certainty.CLAIMED, place

    found: dict[str, Fact] = {}
    for fact in facts:
        # an option that prose names was tried, or is proposed: it is not how this engine ran
        given = fact.kind == "engine_argument" and fact.get("origin") != "prose"
        if given and fact.get("value") is not None:
            name = str(fact.get("name")).replace("-", "_")
            if name not in found or rank(fact) < rank(found[name]):
                found[name] = fact
    return found


def _engine(notes: Notes, facts: Sequence[Fact]) -> None:
    named = [fact for fact in of_kind(facts, "engine") if fact.get("name")]
    for fact in named:
        notes.put("engine", str(fact.get("name")), [fact])

    def rank(fact: Fact) -> tuple[bool, int]:
        origin = str(fact.get("origin"))
        place = ENGINE_ORIGINS.index(origin) if origin in ENGINE_ORIGINS else 9
        return fact.certainty is Certainty.CLAIMED, place

    for fact in sorted(named, key=rank):
        text = CUDA_SUFFIX.sub("", str(fact.get("version") or ""))
        if fact.get("name") == notes.first("engine") and RELEASE.fullmatch(text) and version(text):
            notes.put("release", text.removeprefix("v"), [fact])
    for fact in of_kind(facts, "runner"):
        how = How.DERIVED if fact.get("origin") == "frame" else None
        notes.put("runner", str(fact.get("version")).lower(), [fact], how)


def _model(notes: Notes, facts: Sequence[Fact], engines: Mapping[str, Any]) -> None:
    told = [fact for fact in of_kind(facts, "architecture") if fact.get("role") != "draft"]
    notes.put("architecture", [str(fact.get("name")) for fact in told], told)
    said = told or [f for f in of_kind(facts, "model") if f.get("role") != "draft"]
    text = " ".join(str(fact.get("name")) for fact in said[:4])
    modes = [f for f in of_kind(facts, "mamba_cache_mode") if f.get("mode") not in (None, "none")]
    methods = of_kind(facts, "speculation")
    method = " ".join(str(fact.get("method")) for fact in methods)
    gdn = [f for f in of_kind(facts, "attention_backend") if f.get("role") == "gdn"]
    frames = [f for f in facts if f.kind == "python_exception" and "mamba" in frames_text(f)]
    if modes or gdn:
        notes.put("hybrid", "yes", modes + gdn)
    elif re.search(engines["hybrid"], text, re.IGNORECASE):
        notes.put("hybrid", "yes", said, derived(said))
    elif re.search(engines["hybrid"], method, re.IGNORECASE):
        notes.put("hybrid", "yes", methods, derived(methods))
    elif frames:
        notes.put("hybrid", "yes", frames, How.DERIVED)
    elif text and re.search(engines["dense"], text, re.IGNORECASE):
        notes.put("hybrid", "no", said, derived(said))
    for name in ("moe", "multimodal"):
        if re.search(engines[name], text):
            notes.put(name, "yes", said, derived(said))


def _speculation(notes: Notes, facts: Sequence[Fact], arguments: Mapping[str, Fact]) -> None:
    told = of_kind(facts, "speculation")
    metrics = of_kind(facts, "spec_metrics")
    off = [fact for fact in told if fact.get("enabled") is False]
    on = [fact for fact in told if fact.get("enabled") is not False]
    if on:
        notes.put("spec", "on", on)
    elif metrics:
        notes.put("spec", "on", metrics[:1], How.DERIVED)
    elif off:
        notes.put("spec", "off", off)
    lengths = {fact.get("k") for fact in on if fact.certainty is Certainty.CLAIMED}
    for fact in on:
        if fact.certainty is Certainty.OBSERVED or len(lengths - {None}) == 1:
            notes.put("k", number(fact.get("k")), [fact])
        notes.put("method", text_of(fact.get("method")), [fact])
    argument = arguments.get("speculative_config.num_speculative_tokens")
    if argument:
        notes.put("spec", "on", [argument])
        notes.put("k", number(argument.get("value")), [argument])
    rates = [f for f in metrics if isinstance(f.get("per_position"), tuple)]
    if rates:
        notes.put("k", len(rates[-1].get("per_position") or ()), rates[-1:], How.DERIVED)  # type: ignore[arg-type]
    # a command line that was seen and does not speak of drafts does not draft
    whole = [fact for fact in of_kind(facts, "command") if fact.get("line")]
    if not on and not metrics and not argument and whole and "spec" not in _lines(whole):
        notes.put("spec", "off", whole, How.DERIVED)


def _lines(facts: Sequence[Fact]) -> str:
    return " ".join(str(fact.get("line")) for fact in facts)
