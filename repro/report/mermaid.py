"""Charts in Mermaid's language, which GitHub draws.

Labels keep letters, digits and spaces: all else could be of its language.
"""

from __future__ import annotations

import re

from .document import Chart, Timeline

MOST_DRAWN = 40  # moments of a timeline in a chart; more are a table only
TONES = (("bad", "#c02c50"), ("good", "#0f8a5f"), ("unknown", "#c2770c"), ("plain", "#6b7280"))


def flow(timeline: Timeline) -> str:
    """The timeline as a flow chart of Mermaid, "" where it is too short or too long for one."""
    moments = timeline.moments
    if not 2 <= len(moments) <= MOST_DRAWN:
        return ""
    lines = ["flowchart LR"]
    lines += [
        f'    n{number}["{_word(moment.label)}: {_word(moment.text)[:40]}"]:::{moment.tone}'
        for number, moment in enumerate(moments)
    ]
    lines.append("    " + " --> ".join(f"n{number}" for number in range(len(moments))))
    lines += [f"    classDef {tone} stroke:{color},stroke-width:2px" for tone, color in TONES]
    return "\n".join(lines)


def mermaid(chart: Chart) -> str:
    """The chart in Mermaid's `xychart-beta`, "" where that cannot draw it: it has no gaps."""
    series = [values for _, values in chart.series if None not in values]
    if not series or len(chart.x) < 2:
        return ""
    numbers = [value for values in series for value in values if value is not None]
    low, high = min(0.0, *numbers), max(numbers)
    labels = ", ".join(f'"{_word(label)}"' for label in chart.x)
    lines = [
        "xychart-beta",
        f'    title "{_word(chart.title)}"',
        f'    x-axis "{_word(chart.x_label)}" [{labels}]',
        f'    y-axis "{_word(chart.y_label)}" {low:g} --> {high if high > low else low + 1:g}',
    ]
    for values in series:
        lines.append(f"    {chart.kind} [{', '.join(f'{v:g}' for v in values if v is not None)}]")
    return "\n".join(lines)


def _word(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9 .,_-]", " ", text)[:80]
