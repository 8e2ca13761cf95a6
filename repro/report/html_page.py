"""A document as one HTML file: read offline, printed, in light and dark, with no script in it.

The templates (`page/`) escapes everything by itself (jinja2's autoescape), and a policy
in the page forbids whatever would be loaded or run. Charts are pygal's SVG without its script.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from ..errors import UntestableError
from ..escape import printable
from .document import (
    Chart,
    Code,
    Document,
    Line,
    Link,
    Mono,
    Strong,
)
from .drawings import band, blocks, pipeline
from .gfm import SAFE_URL
from .redact import summary

LONGEST_LINE = 10_000  # characters of one line of text
MOST_LINES = 20_000  # lines of one log; the middle is left out
COLORS = ("#3b7dd8", "#c2570c", "#0f8a5f", "#9333ea", "#c02c50", "#6b7280")
DASHES = ("none", "7, 4", "2, 4", "10, 3, 2, 3")
GUIDE = "rgba(127, 127, 127, 0.4)"
MOST_COUNTED = 10  # up to here whole numbers get a line each


def html(document: Document) -> str:
    """The whole file. UntestableError where the extra `report` is not installed."""
    try:
        import jinja2
    except ModuleNotFoundError as error:
        raise UntestableError(
            "HTML is written with jinja2 and pygal", hint="pip install 'specrepro[report]'"
        ) from error
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        kind=lambda part: type(part).__name__,
        pieces=_pieces,
        lines=_lines,
        chart=_chart,
        band=band,
        pipeline_of=pipeline,
        blocks=blocks,
        shown=lambda text: _short(str(text)),
    )
    template = environment.get_template("document.html")
    style = _template("style.css")
    removed = summary(dict(document.removed))
    return template.render(document=document, style=style, removed=removed) + "\n"


def _template(name: str) -> str:
    return files(__package__).joinpath("page", name).read_text(encoding="utf-8")


def _short(text: str) -> str:
    if len(text) > LONGEST_LINE:
        text = f"{text[:LONGEST_LINE]}… {len(text) - LONGEST_LINE:,} characters cut"
    return printable(text)


def _pieces(line: Line) -> list[tuple[str, str, str]]:
    """(element, text, address) of the pieces of a line."""
    found = []
    for piece in line:
        match piece:
            case str():
                found.append(("", _short(piece), ""))
            case Mono():
                found.append(("code", _short(piece.text), ""))
            case Strong():
                found.append(("strong", _short(piece.text), ""))
            case Link():
                safe = SAFE_URL.fullmatch(piece.url) is not None
                found.append(("a" if safe else "", _short(piece.text), piece.url if safe else ""))
    return found


def _lines(code: Code) -> str:
    """The text of code, line by line printable; of a long one the beginning and the end."""
    lines = code.text.rstrip("\n").split("\n")
    if len(lines) > MOST_LINES:
        half, gone = MOST_LINES // 2, len(lines) - MOST_LINES
        lines = [*lines[:half], f"… {gone:,} lines left out …", *lines[-half:]]
    return "\n".join(_short(line.expandtabs(8)) for line in lines)


def _chart(chart: Chart, at: str) -> Any:
    """The SVG of a chart, as markup. at: its place in the document, `2.3`. Its numbers are in a
    table beside it."""
    import markupsafe

    pygal = _pygal()
    from pygal.style import Style

    style = Style(
        background="transparent",
        plot_background="transparent",
        foreground="currentColor",
        foreground_strong="currentColor",
        foreground_subtle="currentColor",
        guide_stroke_color=GUIDE,
        major_guide_stroke_color=GUIDE,
        opacity="1",
        stroke_width="inherit",  # of the series, or it would be 1 for all
        title_font_size=13,
        legend_font_size=13,
        font_family="inherit",
        colors=COLORS,
    )
    kinds = {"line": pygal.Line, "bar": pygal.Bar}
    drawn = kinds[chart.kind](
        js=[],
        width=760,
        height=300,
        style=style,
        x_title=printable(chart.x_label),
        y_title=printable(chart.y_label),
        show_minor_x_labels=False,
        truncate_label=16,
        legend_at_bottom=True,
        include_x_axis=True,
        max_scale=6,
        disable_xml_declaration=True,
    )
    drawn.uuid = at.replace(".", "-")  # in its style a point would begin a class
    drawn.x_labels = [printable(label) for label in chart.x]
    step = max(1, len(chart.x) // 16)
    drawn.x_labels_major = drawn.x_labels[::step]
    numbers = [value for _, values in chart.series for value in values if value is not None]
    if numbers and max(numbers) <= MOST_COUNTED and all(v == int(v) >= 0 for v in numbers):
        drawn.y_labels = range(int(max(numbers)) + 1)  # tokens are not counted in tenths
    for number, (name, values) in enumerate(chart.series):
        # the first is widest, so that it is seen below one that runs with it
        width, dashes = max(2, 5 - 2 * number), DASHES[number % len(DASHES)]
        drawn.add(printable(name), list(values), stroke_style={"width": width, "dasharray": dashes})
    return markupsafe.Markup(_without_script(drawn.render(), chart.title))  # noqa: S704


def _pygal() -> Any:
    """pygal, without the finder of map plugins that it leaves behind.

    The finder has no `find_spec`, so that every import of the process after it warns.
    """
    import sys

    import pygal

    sys.meta_path[:] = [one for one in sys.meta_path if type(one).__module__ != "pygal"]
    return pygal


def _without_script(drawn: str, title: str) -> str:
    """The SVG without its script and comments, named for who cannot see it."""
    from xml.etree import ElementTree

    ElementTree.register_namespace("", "http://www.w3.org/2000/svg")
    root = ElementTree.fromstring(drawn)  # noqa: S314 - pygal has written it a moment ago
    for parent in list(root.iter()):
        for child in list(parent):
            name = child.tag.rpartition("}")[2] if isinstance(child.tag, str) else "comment"
            if name in ("script", "comment"):
                parent.remove(child)
    root.set("role", "img")
    root.set("aria-label", printable(title))
    return ElementTree.tostring(root, encoding="unicode")
