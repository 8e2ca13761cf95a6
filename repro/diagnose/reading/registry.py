"""All parsers of lines, and which of them a line is for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from . import (
    collectives,
    commands,
    coredumps,
    cuda_errors,
    dumps,
    endings,
    environment,
    false_clues,
    kernel_log,
    metrics,
    other_engines,
    sanitizer_lines,
    startup,
    tracebacks,
)
from .line import Parser
from .literals import Search, is_fast, literals_of, search_for

# Their order is the order of facts of one line.
PARSERS: tuple[Parser, ...] = tuple(
    parser
    for module in (
        startup,
        commands,
        environment,
        other_engines,
        metrics,
        kernel_log,
        sanitizer_lines,
        coredumps,
        cuda_errors,
        tracebacks,
        collectives,
        dumps,
        endings,
        false_clues,
    )
    for parser in module.PARSERS
)


@cache
def literals() -> tuple[bytes, ...]:
    """The literals of all parsers."""
    return literals_of(trigger for parser in PARSERS for trigger in parser.triggers)


@cache
def search(*, pure: bool = False) -> Search:
    """The search for lines that some parser wants."""
    return search_for(literals(), pure=pure)


def wanted(text: str) -> Iterator[Parser]:
    """The parsers that a line is for, in order."""
    return (PARSERS[number] for number in sorted(parsers_of()(text)))


@cache
def parsers_of(*, pure: bool = False) -> Callable[[str], set[int]]:
    """From a line to the numbers of its parsers, by one pass where that is installed."""
    pairs = [(trigger, n) for n, parser in enumerate(PARSERS) for trigger in parser.triggers]
    if pure or not is_fast():
        return lambda text: {number for trigger, number in pairs if trigger in text}
    import ahocorasick_rs

    automaton = ahocorasick_rs.AhoCorasick([trigger for trigger, _ in pairs])
    numbers = [number for _, number in pairs]

    def places(text: str) -> set[int]:
        hits = automaton.find_matches_as_indexes(text, overlapping=True)
        return {numbers[pattern] for pattern, _, _ in hits}

    return places
