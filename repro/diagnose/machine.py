"""Libraries and cards, from the facts of an incident. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .facts import Fact
from .situation import How, Notes
from .values import of_kind, text_of

# compute capability → product names
CARDS = {
    "12.1": r"GB10\b|DGX Spark",
    "12.0": r"RTX 50[5-9]0|RTX PRO [2-6]\d00|RTX [2-6]\d00 .*Blackwell",
    "10.0": r"\bG?B[23]00\b",
    "9.0": r"\bH[128]0+\b|\bG?H200\b|\bH20\b",
    "8.9": r"\bL40S?\b|\bL4\b|RTX 40[5-9]0|RTX 6000 Ada",
    "8.6": r"RTX 30[5-9]0|\bA40\b|\bA10G?\b|RTX A[2-6]000",
    "8.0": r"\bA100\b|\bA30\b|\bA800\b",
}


def note_machine(notes: Notes, facts: Sequence[Fact]) -> None:
    for fact in of_kind(facts, "library"):
        name = str(fact.get("name")).replace("-", "_").removesuffix("_python")
        if name in ("flashinfer", "torch"):
            notes.put(name, text_of(fact.get("version")), [fact])
    cards = of_kind(facts, "gpu")
    notes.put("gpu", [str(f.get("name")) for f in cards if f.get("name")], cards)
    told = [str(f.get("capability")) for f in cards if f.get("capability")]
    named = [c for f in cards if (c := _capability(str(f.get("name"))))]
    notes.put("capability", told, cards)
    notes.put("capability", named, cards, How.DERIVED)


def _capability(name: str) -> str | None:
    return next((c for c, p in CARDS.items() if re.search(p, name, re.IGNORECASE)), None)
