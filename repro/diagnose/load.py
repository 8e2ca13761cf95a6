"""How busy the engine was and how long its requests, and what people say: names of signs. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .facts import Fact
from .situation import How, Notes, surest_first
from .timeline import Course
from .values import float_of, int_of

# claims of the rules that are symptoms
SYMPTOMS = {
    "illegal_access": "illegal_access",
    "out_of_memory": "out_of_memory",
    "device_assert": "device_assert",
    "garbage": "garbage",
    "hang": "hang",
    "low_acceptance": "acceptance_loss",
}


# claims that something helps; a sentence may deny it with the same words
CURES = ("_works", "_clears")
DENIED = re.compile(
    r"\b(do|does|did)(n't| not|nt)( \w+)? (help|fix|cure|change|work|matter|make|solve|clear)"
    r"|\bno (help|change|effect|difference|fix|cure)\b"
    r"|\bnot? (fixed|cured|clean|stable|gone|fine|ok)\b"
    r"|\b(still|also) (crash|fail|die|fault|hang|happen|occur)|\bnor\b|\bmakes it worse",
    re.IGNORECASE,
)
END = re.compile(r"[,;]|\bbut\b|\bwhile\b")


def note_load(notes: Notes, course: Course) -> None:
    loads = [f for f in course.facts if f.kind == "load"]
    busy = [f for f in loads if isinstance(f.get("running"), int)]
    dumps = [f for f in course.facts if f.kind == "scheduler_dump"]
    counts = [f for f in dumps if isinstance(f.get("requests"), int)]
    if counts:
        notes.put("running", int_of(counts[-1], "requests"), counts[-1:])
    elif busy:
        notes.put("running", int_of(busy[-1], "running"), busy[-1:])
    rates = [f for f in loads if isinstance(f.get("prefix_hit_rate"), (int, float))]
    if rates:
        best = max(rates, key=lambda f: float_of(f, "prefix_hit_rate"))
        rate = float_of(best, "prefix_hit_rate")
        notes.put("prefix_hit_rate", rate, [best])
        notes.put("prefix_hits", "yes" if rate > 0 else "no", [best])
        notes.put("prefix_caching", "on" if rate > 0 else None, [best], How.DERIVED)
    bad = [f for f in loads if isinstance(f.get("corrupted"), int)]
    notes.put("corrupted", max((int_of(f, "corrupted") for f in bad), default=None), bad[-1:])


def note_request_lengths(notes: Notes, facts: Sequence[Fact]) -> None:
    dumps = [f for f in facts if f.kind == "scheduler_dump" and isinstance(f.get("longest"), int)]
    if not dumps:
        return
    longest = max(dumps, key=lambda f: int_of(f, "longest"))
    tokens = int_of(longest, "longest")
    notes.put("longest", tokens, [longest])
    target, draft, k = (notes.first(n) for n in ("target_len", "draft_len", "k"))
    k = int(k) if isinstance(k, (int, float)) else 8
    if isinstance(target, (int, float)):
        room = int(target) - tokens
        notes.put("tail_room", room, [longest])
        if room < k + 2:
            notes.put("near_limit", "yes", [longest])
        elif room > 64 and room > target / 10:
            notes.put("near_limit", "no", [longest])
    if isinstance(draft, (int, float)):
        notes.put("past_draft_length", "yes" if tokens + k > draft else "no", [longest])


def note_claims(notes: Notes, facts: Sequence[Fact], claims: Mapping[str, str]) -> None:
    told: dict[str, Fact] = {}
    for fact in surest_first(facts):
        if fact.kind == "claim":
            for name, pattern in claims.items():
                found = re.search(pattern, fact.text, re.IGNORECASE) if name not in told else None
                if found and not (name.endswith(CURES) and _denied(found)):
                    told[name] = fact
    notes.each("claim", told.items())
    if "hybrid_model" in told:
        notes.put("hybrid", "yes", [told["hybrid_model"]], How.CLAIMED)
    runners = [version for version in ("v1", "v2") if f"runner_{version}" in told]
    if len(runners) == 1:  # "both runners fail" names neither
        notes.put("runner", runners[0], [told[f"runner_{runners[0]}"]], How.CLAIMED)
    if "pipeline" in told:
        _pipeline(notes, told["pipeline"])
    if "prefix_on" in told:
        notes.put("prefix_caching", "on", [told["prefix_on"]], How.CLAIMED)
    if "flashinfer_on" in told:
        notes.put("backend", "FLASHINFER", [told["flashinfer_on"]], How.CLAIMED)
    symptoms = [name for claim, name in SYMPTOMS.items() if claim in told]
    if symptoms and "symptom" not in notes.seen:
        notes.put("symptom", symptoms, [told[c] for c in SYMPTOMS if c in told], How.CLAIMED)


def _denied(found: re.Match[str]) -> bool:
    """Whether what is said to help is said not to: `async off does not fix it`."""
    behind = END.split(found.string[found.end() : found.end() + 30], maxsplit=1)[0]
    return DENIED.search(found[0] + behind) is not None


def _pipeline(notes: Notes, fact: Fact) -> None:
    """Stages as they are said, where the ranks that wrote allow for more than they show."""
    said = re.search(r"\bPP\D{0,3}(\d{1,2})|pipeline\D{1,20}(\d{1,2})", fact.text, re.IGNORECASE)
    stages = int(said[1] or said[2]) if said else 2
    have = notes.seen.get("pp")
    if have is not None and have.how is How.DERIVED and int(have.values[0]) < stages:
        del notes.seen["pp"]
    notes.put("pp", stages, [fact], How.CLAIMED)
