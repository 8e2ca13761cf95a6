"""What the prose of a page says about experiments: sentences that a claim of the rules fits.

Reading takes a page's logs and plain symptoms; this goes through the sentences between them once
more, whole paragraphs at a time, because what was tried and came out is seldom said in one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ..escape import printable
from .facts import TEXT_LENGTH, Certainty, Fact, Reading
from .reading.page_signs import LARGEST
from .reading.pages import segments

SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=\S)|\s+(?=[-*•] )")
BREAK = re.compile(r"^\s*($|[-*•>#|] ?|\d+[.)] )")
MARKUP = re.compile(r"`+|\*\*|__")
SAYS = "says"  # the topic of a sentence that only the rules' claims sort
LONGEST = 1_000  # characters of a sentence
MOST = 200  # sentences of a page


def with_claims(reading: Reading, paths: Iterable[Path], claims: Mapping[str, str]) -> Reading:
    """The reading with a fact for each sentence of its prose that a claim fits."""
    prose = {source.name: index for index, source in enumerate(reading.sources) if _prose(source)}
    if not prose:
        return reading
    patterns = [re.compile(pattern, re.IGNORECASE) for pattern in claims.values()]
    found: list[Fact] = []
    for path in paths:
        name = printable(str(path))
        parts = _parts(path)
        for number, (text, first) in enumerate(parts, start=1):
            index = prose.get(f"{name}#{number}" if len(parts) > 1 else name)
            if index is None:
                continue
            for line, sentence in list(sentences(text, first))[:MOST]:
                if any(pattern.search(sentence) for pattern in patterns):
                    found.append(_fact(index, line, sentence))
    facts = sorted((*reading.facts, *found), key=lambda fact: (fact.source, fact.line))
    places = {id(fact): place for place, fact in enumerate(facts)}
    incidents = tuple(
        replace(one, facts=tuple(places[id(reading.facts[index])] for index in one.facts))
        for one in reading.incidents
    )
    return replace(reading, facts=tuple(facts), incidents=incidents)


def sentences(text: str, first: int = 1) -> Iterator[tuple[int, str]]:
    """Sentences of a text with the numbers of the lines they begin in, paragraph by paragraph."""
    block: list[str] = []
    begin = first
    for number, line in enumerate([*text.split("\n"), ""], start=first):
        if BREAK.match(line):
            yield from _split(block, begin)
            block, begin = [], number
        if not block:
            begin = number
        if line.strip():
            block.append(MARKUP.sub("", line.strip()))


def _split(block: list[str], begin: int) -> Iterator[tuple[int, str]]:
    text = " ".join(block)
    starts = []
    length = 0
    for line in block:
        starts.append(length)
        length += len(line) + 1
    at = 0
    for sentence in SENTENCE.split(text):
        place = text.find(sentence, at)
        row = max((i for i, start in enumerate(starts) if start <= place), default=0)
        at = place + len(sentence)
        if sentence.strip():
            yield begin + row, sentence.strip()[:LONGEST]


def _prose(source: object) -> bool:
    return getattr(source, "part", "") == "prose"


def _parts(path: Path) -> list[tuple[str, int]]:
    """The parts of a page, in the order in which reading numbers them; prose only has its text."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST)
    except OSError:
        return []  # a pipe that was read, or a file that has gone: its prose stays as it was read
    parts, _ = segments(content.decode("utf-8", "replace"))
    return [(part.text if part.part == "prose" else "", part.first_line) for part in parts]


def _fact(source: int, line: int, sentence: str) -> Fact:
    text = printable(sentence)
    text = text if len(text) <= TEXT_LENGTH else text[: TEXT_LENGTH - 1] + "…"
    values = {"topic": SAYS, "subject": None}
    return Fact("claim", values, source, line, Certainty.CLAIMED, text=text, last_line=line)
