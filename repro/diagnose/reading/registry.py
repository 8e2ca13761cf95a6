"""All parsers of lines, and which of them a line is for."""

from __future__ import annotations

from collections.abc import Iterator
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
from .literals import Search, literals_of, search_for

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
    for parser in PARSERS:
        for trigger in parser.triggers:
            if trigger in text:
                yield parser
                break
