"""Text as GitHub-flavoured Markdown: what may stand in a line, a cell, a fence.

GitHub acts on text: it notifies `@somebody`, links `#123`, runs HTML and draws Mermaid. Foreign
text stands in code, where it does none of that; where it must be prose, every character that could
act is escaped, and mentions and references are broken by a character of no width. Rules: GitHub
Flavored Markdown 0.29, sections 2.4 (escapes), 4.5 (fences), 4.10 (tables), 6.3 (code spans).
"""

from __future__ import annotations

import html
import re

from ..escape import printable
from .document import Line, Link, Mono, Piece, Strong, plain

LONGEST_PROSE = 4_000  # characters of one piece of a line
LONGEST_CELL = 500  # characters of a cell of a table
LONGEST_LINE = 2_000  # characters of one line of code
_ACTS = re.compile(r"([\\`*_\[\]<>|~&$])")
# a heading, a list, a quotation or a rule would begin so
_BEGINS = re.compile(r"^(\s*(?:\d{1,9}(?=[.)])|(?=[#+=:-])))([.)#+=:-])")
# where a mention, a reference, a link or a picture (`:100:`, also in `a.py:100: error`) would begin
_CALLS = re.compile(
    r"((?:@|#|://|www\.|GH-)(?=\w)|(?<!:):(?=(?:100|1234|[+-]1|[a-z][\w+-]{0,40}):(?!:)))"
)
BREAK = "\u200b"
SAFE_URL = re.compile(r"https://[A-Za-z0-9./_~%?=&#+:-]{1,500}")


def line(pieces: Line) -> str:
    """A line: prose, code and links. At its beginning nothing opens a list or a heading."""
    return _BEGINS.sub(r"\1\\\2", "".join(_piece(piece) for piece in pieces))


def _piece(piece: Piece) -> str:
    match piece:
        case str():
            return prose(piece)
        case Mono():
            return mono(piece.text)
        case Strong():
            return f"**{prose(piece.text)}**" if piece.text.strip() else ""
        case Link():
            if SAFE_URL.fullmatch(piece.url):
                return f"[{prose(piece.text)}](<{piece.url}>)"
            return prose(piece.text)


def prose(text: str) -> str:
    """Foreign text that is read as it was written and does nothing."""
    return _ACTS.sub(r"\\\1", _CALLS.sub(rf"\1{BREAK}", _short(text)))


def _short(text: str) -> str:
    """Printable, and not endless."""
    if len(text) > LONGEST_PROSE:
        text = f"{text[:LONGEST_PROSE]}… {len(text) - LONGEST_PROSE:,} characters cut"
    return printable(text)


def in_html(text: str) -> str:
    """Foreign text inside a block of HTML, where Markdown's escapes are not read (GFM 4.6)."""
    return html.escape(_CALLS.sub(rf"\1{BREAK}", _short(text)))


def mono(text: str) -> str:
    """A code span around any text (GFM 6.3): a fence longer than any in it."""
    safe = _short(text) or " "
    longest = max((len(run) for run in re.findall("`+", safe)), default=0)
    fence = "`" * (longest + 1)
    space = " " if safe.startswith("`") or safe.endswith("`") else ""
    return f"{fence}{space}{safe}{space}{fence}"


def cell(pieces: Line) -> str:
    """A line in a cell (GFM 4.10): no pipe, no line break, not endless."""
    cut = pieces
    if len(plain(pieces)) > LONGEST_CELL:
        cut = (f"{plain(pieces)[:LONGEST_CELL]}…",)
    # prose has escaped its pipes; in code a pipe needs it too, for the table is cut up first
    return "".join(
        mono(piece.text).replace("|", "\\|") if isinstance(piece, Mono) else _piece(piece)
        for piece in cut
    )


def code_lines(text: str) -> list[str]:
    """The lines of a text as they may stand in a fence."""
    return [_shown(one) for one in text.rstrip("\n").split("\n")]


def fence_of(lines: list[str]) -> str:
    """A fence that no line of a text ends (GFM 4.5)."""
    longest = max((len(run) for one in lines for run in re.findall("`+", one)), default=0)
    return "`" * max(3, longest + 1)


def _shown(text: str) -> str:
    """One line of code: printable but for tabs, and not longer than a reader can use."""
    safe = printable(text.expandtabs(8))
    if len(safe) > LONGEST_LINE:
        safe = f"{safe[:LONGEST_LINE]}… {len(safe) - LONGEST_LINE:,} characters cut"
    return safe
