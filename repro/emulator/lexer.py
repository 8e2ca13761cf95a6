"""PTX text as tokens."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..errors import UnsupportedError

MAX_GAP = 100  # characters between the name of a section and its brace
MAX_TEXT = 32 << 20  # bytes; the largest PTX of a wheel seen is a tenth of it

# Every alternative ends somewhere, so that no text is looked through twice.
_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*(?:.*?\*/|.*)', re.DOTALL | re.ASCII)
_SECTION = re.compile(r"^[ \t]*\.section[^{}\n]*", re.MULTILINE)
_TOKEN = re.compile(
    r'"[^"\n]*"|[.%]?[\w$]+(?:(?:\.|::)[\w$]+)*|[-+@!|,;:<>=\[\](){}~]|\S', re.ASCII
)
INLINE = ("// begin inline asm", "// end inline asm")
_KNOWN = frozenset("-+@!|,;:<>=[](){}~")


class Token(NamedTuple):
    text: str
    line: int


def tokens(text: str) -> list[Token]:
    """All tokens of `text`, without comments and sections (debug data); ends with an empty one.

    UnsupportedError on characters that are no PTX, and on text longer than MAX_TEXT.
    """
    if len(text) > MAX_TEXT:
        raise UnsupportedError(f"PTX of {len(text)} characters, {MAX_TEXT} at most")
    if INLINE[0] in text:
        text = _first_locations(text)
    text = _COMMENT.sub(_blank, text)
    text = _without_sections(text)
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        for match in _TOKEN.finditer(line):
            word = match[0]
            if len(word) == 1 and not (word.isalnum() or word in _KNOWN or word in "_$%."):
                raise UnsupportedError(f"character {word!r} is no PTX", where=f"PTX line {number}")
            if word[0] == "." and "." in word[1:]:  # `.reg.b16`
                found += [Token(f".{part}", number) for part in word[1:].split(".")]
            else:
                found.append(Token(word, number))
    found.append(Token("", text.count("\n") + 1))
    return found


def _first_locations(text: str) -> str:
    """`text` with one `.loc` in each piece of inline assembly.

    LLVM counts the lines of such a piece as lines of the source: from its second line on it names
    the statements below the one that it belongs to.
    """
    lines = text.split("\n")
    seen = None
    for number, line in enumerate(lines):
        word = line.strip()
        if word in INLINE:
            seen = 0 if word == INLINE[0] else None
        elif seen is not None and word.startswith(".loc"):
            lines[number] = "" if seen else line
            seen += 1
    return "\n".join(lines)


def _without_sections(text: str) -> str:
    """`text` with debug data blanked, line by line; it holds no nested braces."""
    kept, at = [], 0
    for match in _SECTION.finditer(text):
        if match.start() < at:
            continue
        start = text.find("{", match.end())
        end = text.find("}", start) + 1
        if start < 0 or end == 0:
            break
        if start - match.end() > MAX_GAP or text[match.end() : start].strip():
            continue  # no section: the parser refuses it
        kept += [text[at : match.start()], "\n" * text.count("\n", match.start(), end)]
        at = end
    return "".join([*kept, text[at:]])


def _blank(match: re.Match[str]) -> str:
    word = match[0]
    if word[0] == '"':
        return word
    return "\n" * word.count("\n") or " "
