"""Where the trials of a run were played, for the terminal, and which places were avoided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from ..escape import printable

MOST_SHOWN = 16  # places that a page names


def print_places(out: Console, record: Mapping[str, Any]) -> None:
    """A line a place; nothing for a run in one process tree on at most one GPU."""
    places, avoided = record.get("places", ()), record.get("avoided", ())
    if places or avoided:
        out.print()
    for place in places[:MOST_SHOWN]:
        words = [place["node"], *place["gpus"]]
        words += [str(place[key]) for key in ("gpu_type", "driver") if place[key]]
        count = place["trials"]
        line = f"{count} trial{'s'[: count != 1]} on {' · '.join(words)}"
        out.print(Text(printable(line), "dim"), soft_wrap=True)
    if len(places) > MOST_SHOWN:
        out.print(Text(f"and {len(places) - MOST_SHOWN} places more", "dim"))
    for one in avoided:
        line = f"avoided: {one['place']}: {one['reason']}"
        out.print(Text(printable(line), "yellow"), soft_wrap=True)
