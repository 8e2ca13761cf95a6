"""What a trial is to the search, beyond the verdict of its depth: how much was tried, and another
failure that is looked for in place of the case's sign. Pure, but for `judged`.

An experiment that ran to its end went as far as it was meant to, so its sign has no onset: only a
failure that ended an engine tells how far it takes to come.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .trials import row_of
from .verdicts import Bad, Exposure, Good, Infra, Observation, Verdict

ENDED = "engine_end"  # the probe with which a depth says how an engine ended
HANG = "hang"
# what `check` says of an engine that was ended, and of requests that never were
HANGING = ("no end within", "nothing more for", "did not end")
LONGEST = 200  # characters


def judged(folder: Path, seen: Observation, signature: str) -> Observation:
    """A trial with the verdict that its kept record has for this search."""
    row = row_of(folder, seen)
    return seen if row is None else replace(seen, verdict=verdict(row, seen.verdict, signature))


def exposure(row: Mapping[str, Any]) -> Exposure:
    """What a trial went through, as far as its record tells."""
    tried = row.get("tried") or {}
    return Exposure(requests=tried.get("requests"), tokens=tried.get("tokens"))


def verdict(row: Mapping[str, Any], found: Verdict, signature: str) -> Verdict:
    """The verdict of a trial whose depth came to `found`.

    signature: "" for the case's own. Else a failure of the engine whose words hold it is the fault
    (`hang`: an engine or a request that did not end), an engine that was judged is good, whatever
    the case's own sign, and every other end is what it was.
    """
    if not signature:
        return Good(exposure(row)) if isinstance(found, Good) else found
    if isinstance(found, Infra):
        return found
    for one in row["evidence"]:
        said = str(one["detail"])
        if one["probe"] == ENDED and holds(said, signature):
            return Bad(said[:LONGEST], exposure(row))
    return Good(exposure(row)) if isinstance(found, Bad | Good) else found


def holds(said: str, signature: str) -> bool:
    """Whether the words about an end hold a signature."""
    if signature == HANG:
        return any(words in said for words in HANGING)
    return signature.casefold() in said.casefold()
