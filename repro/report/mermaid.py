"""Charts in Mermaid's language, which GitHub draws.

Labels keep letters, digits and spaces: all else could be of its language.
"""

from __future__ import annotations

import re

from .document import Chart, Timeline

MOST_DRAWN = 40  # moments of a timeline in a chart; more are a table only
TONES = (("bad", "#c02c50"), ("good", "#0f8a5f"), ("unknown", "#c2770c"), ("plain", "#6b7280"))

# of the lines of a chart, which has no legend; the first of its own colours is next to white
PALETTE = (
    ("#3b7dd8", "blue"),
    ("#c2570c", "orange"),
    ("#0f8a5f", "green"),
    ("#9333ea", "violet"),
    ("#c02c50", "red"),
    ("#6b7280", "grey"),
)


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
    """The chart in Mermaid's `xychart-beta`, "" where that cannot draw any of it."""
    series = [(values, color) for _, values, (color, _) in _drawn(chart)]
    if not series or len(chart.x) < 2:
        return ""
    numbers = [value for values, _ in series for value in values]
    low, high = min(0.0, *numbers), max(numbers)
    labels = ", ".join(f'"{_word(label)}"' for label in chart.x)
    colors = ", ".join(color for _, color in series)
    theme = f'{{"xyChart": {{"plotColorPalette": "{colors}"}}}}'
    lines = [
        f'%%{{init: {{"themeVariables": {theme}}}}}%%',
        "xychart-beta",
        f'    title "{_word(chart.title)}"',
        f'    x-axis "{_word(chart.x_label)}" [{labels}]',
        f'    y-axis "{_word(chart.y_label)}" {low:g} --> {high if high > low else low + 1:g}',
    ]
    lines += [f"    {chart.kind} [{', '.join(f'{v:g}' for v in values)}]" for values, _ in series]
    return "\n".join(lines)


def legend(chart: Chart) -> str:
    """Which line is whose: Mermaid has no legend. What it does not draw is said, too."""
    drawn = {name: color for name, _, (_, color) in _drawn(chart)}
    return " · ".join(
        f"{name}: {drawn.get(name, 'not drawn, only in the table')}" for name, _ in chart.series
    )


def _drawn(chart: Chart) -> list[tuple[str, list[float], tuple[str, str]]]:
    """(name, numbers, colour) of what can be drawn: Mermaid has no gaps."""
    found: list[tuple[str, list[float], tuple[str, str]]] = []
    for name, values in chart.series:
        filled = list(values)
        if chart.rest is not None:
            ends = next((n for n, v in enumerate(reversed(filled)) if v is not None), len(filled))
            filled[len(filled) - ends :] = [chart.rest] * ends
        numbers = [value for value in filled if value is not None]
        if numbers and len(numbers) == len(filled) and len(found) < len(PALETTE):
            found.append((name, numbers, PALETTE[len(found)]))
    return found


def _word(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9 .,_-]", " ", text)[:80]
