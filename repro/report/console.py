"""The two consoles: stdout holds data and nothing else, stderr everything a person reads besides.

Order of precedence for colour: --color, then NO_COLOR, then what the terminal can do.
"""

from __future__ import annotations

import json
import os
import sys
from contextvars import ContextVar
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from ..errors import CaseError, SpecreproError
from ..escape import printable

if TYPE_CHECKING:
    from rich.console import Console


class Color(StrEnum):
    """Values of --color."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


# Set once, by the global option; a test may set another for its own context.
COLOR: ContextVar[Color] = ContextVar("color", default=Color.AUTO)


def console(*, stderr: bool = False) -> Console:
    """A console on stdout (data) or stderr (the rest) that honours --color, NO_COLOR and width.

    Text is printed as it is: no markup, no emoji codes, no highlighting of numbers. What came from
    outside goes through `printable` first.
    """
    # loaded by those who print a page: JSON, a version or a help needs none of it
    from .raising_console import RaisingConsole

    color = COLOR.get()
    if color is Color.AUTO and os.environ.get("NO_COLOR"):
        color = Color.NEVER
    options: dict[Color, dict[str, Any]] = {
        Color.AUTO: {},
        Color.ALWAYS: {"force_terminal": True, "no_color": False},
        Color.NEVER: {"color_system": None, "no_color": True},
    }
    return RaisingConsole(
        file=sys.stderr if stderr else sys.stdout,
        markup=False,
        emoji=False,
        highlight=False,
        **options[color],
    )


def print_json(value: Any) -> None:
    """One JSON value on stdout, ASCII only: it stays whole in every encoding and terminal."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")


def print_error(error: SpecreproError) -> None:
    """`error: where: key: what`, and `hint: …` on a line of its own, on stderr."""
    key = error.key if isinstance(error, CaseError) else None
    parts = (error.where, key, error.message)
    out = console(stderr=True)
    _line(out, "error", "bold red", ": ".join(part for part in parts if part))
    if error.hint:
        _line(out, "hint", "cyan", error.hint)


def _line(out: Console, word: str, style: str, text: str) -> None:
    # soft_wrap: a path that is broken over two lines cannot be clicked or copied
    out.print(f"{word}:", style=style, end=" ", soft_wrap=True)
    out.print(printable(text), soft_wrap=True)
