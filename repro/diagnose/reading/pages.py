"""Pages of text with logs in them: an issue and its comments, as Markdown, JSON or HTML.

Each fenced block is a source of its own; what is around the blocks is prose, one source an author.
Lines keep the numbers that they have in the file (of JSON and HTML: in the text that it holds).
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser

from .patterns import lazily

# Blocks beyond this many are counted as unread.
MOST_BLOCKS = 1000

_FENCE = lazily(r"^[ \t>*\-]{0,16}(?P<fence>`{3,}|~{3,}) {0,3}(?P<language>[\w+\-]{0,24})")
_QUOTE = lazily(r"^ {0,3}(?:> ?){1,8}")
_AUTHOR = lazily(r"^author:\t(?P<name>\S{1,64})$")
_HEADER = lazily(r"^(?:association|edited|status|state|labels|comments|assignees|url|number):\t")
_TAG = lazily(
    r"</?(?:details|summary|p|br|b|i|em|strong|code|pre|sub|sup|div|span|img|a)\b[^>]{0,300}>"
)
_NO_LOG = frozenset({"diff", "cpp", "cuda", "cu", "rust", "js", "patch"})


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a page. `text` has one line for each of its lines, from number `first_line` on."""

    part: str
    text: str
    first_line: int
    author: str | None = None
    language: str = ""
    quoted: bool = False

    @property
    def is_told(self) -> bool:
        """Whether nothing was observed there by the author: a program's source, or a log that is
        quoted from somebody else."""
        return self.quoted or self.language in _NO_LOG


def segments(text: str) -> tuple[list[Segment], int]:
    """The parts of a page, and how many blocks were too many."""
    parts: list[Segment] = []
    for author, body, first in _bodies(text):
        parts += _markdown(body, author, first)
    blocks = [part for part in parts if part.part == "block"]
    over = set(map(id, blocks[MOST_BLOCKS:]))
    return [part for part in parts if id(part) not in over], len(over)


def _bodies(text: str) -> Iterator[tuple[str | None, str, int]]:
    """Texts by author; of a plain page the page."""
    start = text.lstrip()[:1]
    if start in ("{", "["):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            document = None
        found = list(_json_bodies(document, 0))
        if found:
            line = 1
            for author, body in found:
                yield author, body, line
                line += body.count("\n") + 1
            return
    elif re.match(r"(?i)\s*<(?:!doctype html|html|pre|body)\b", text):
        reader = _Html()
        reader.feed(text)
        yield None, reader.markdown(), 1
        return
    yield None, text, 1


def _json_bodies(node: object, depth: int) -> Iterator[tuple[str | None, str]]:
    if depth > 6:
        return
    if isinstance(node, list):
        for item in node[:2000]:
            yield from _json_bodies(item, depth + 1)
    elif isinstance(node, dict):
        if isinstance(body := node.get("body"), str):
            title = node.get("title")
            head = f"{title}\n\n" if isinstance(title, str) else ""
            yield _login(node), head + body
        for value in node.values():
            if isinstance(value, dict | list):
                yield from _json_bodies(value, depth + 1)


def _login(node: dict[str, object]) -> str | None:
    for key in ("user", "author"):
        who = node.get(key)
        if isinstance(who, dict) and isinstance(login := who.get("login"), str):
            return login[:64]
    return None


class _Html(HTMLParser):
    """Text of an HTML page, `<pre>` as fenced blocks."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._deaf = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "pre":
            self._parts.append("\n```\n")
        elif tag in ("script", "style"):
            self._deaf += 1
        elif tag in ("p", "br", "div", "li", "tr", "h1", "h2", "h3"):
            self._parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "pre":
            self._parts.append("\n```\n")
        elif tag in ("script", "style"):
            self._deaf = max(0, self._deaf - 1)

    def handle_data(self, data: str) -> None:
        if not self._deaf:
            self._parts.append(data)

    def markdown(self) -> str:
        return "".join(self._parts)


@dataclass(slots=True)
class _Splitter:
    """Goes through the lines of a page. Prose keeps its place: lines of blocks are empty in it."""

    author: str | None
    first: int
    prose: list[str]
    block: list[str]
    block_first: int = 0
    fence: str = ""
    language: str = ""
    quoted: bool = False

    def end_block(self) -> Iterator[Segment]:
        if self.fence and any(line.strip() for line in self.block):
            text = "\n".join(self.block)
            place = (self.block_first, self.author, self.language, self.quoted)
            yield Segment("block", text, *place)
        self.fence, self.block = "", []

    def end_prose(self, number: int) -> Iterator[Segment]:
        if any(line.strip() for line in self.prose):
            yield Segment("prose", "\n".join(self.prose), self.first, self.author)
        self.prose, self.first = [], number


def _markdown(text: str, author: str | None, first: int) -> Iterator[Segment]:
    page = _Splitter(author, first, [], [])
    for number, line in enumerate(text.split("\n"), start=first):
        line = line.rstrip("\r")
        if found := _AUTHOR.match(line):
            # the next comment; a block that was not closed ends with its author
            yield from page.end_block()
            yield from page.end_prose(number)
            page.author = found["name"]
            page.prose.append("")
            continue
        fence = _FENCE.match(line)
        if page.fence:
            page.prose.append("")
            if fence and fence["fence"].startswith(page.fence) and not fence["language"]:
                yield from page.end_block()
            else:
                page.block.append(_plain(_QUOTE.sub("", line) if line.startswith(">") else line))
        elif fence:
            page.prose.append("")
            page.fence = fence["fence"]
            page.language = fence["language"].lower()
            page.quoted = line.lstrip().startswith(">")
            page.block_first = number + 1
        elif _HEADER.match(line):
            page.prose.append("")
        else:
            page.prose.append(_plain(_TAG.sub(" ", _QUOTE.sub("", line))))
    yield from page.end_block()
    yield from page.end_prose(0)


def _plain(line: str) -> str:
    return html.unescape(line).replace("\n", " ") if "&" in line else line
