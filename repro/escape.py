"""Text from outside, made safe to show: no control character reaches a terminal or a log line."""

from __future__ import annotations

# A message quotes enough to be recognised, never a whole hostile file.
QUOTE_LENGTH = 60


def printable(text: str) -> str:
    """`text` on one line, every character a terminal could act upon written as an escape.

    Controls (C0, C1), line breaks, bidirectional and zero-width marks, lone surrogates and
    unassigned code points become `\\x1b`, `\\u202e`…; all other text is kept as it is.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def quoted(text: str) -> str:
    """`text` as a message quotes it: printable, between backquotes, cut to QUOTE_LENGTH."""
    shown = printable(text[: QUOTE_LENGTH + 1])
    if len(shown) > QUOTE_LENGTH:
        shown = shown[: QUOTE_LENGTH - 1] + "…"
    return f"`{shown}`"
