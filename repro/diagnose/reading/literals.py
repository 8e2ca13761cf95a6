"""Which lines are worth reading: those that hold one of the literals that parsers ask for.

The search runs over bytes, before any line becomes text. `ahocorasick-rs` does it in one pass; a
regular expression of the standard library finds the same lines, about a hundred times slower.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

# From a piece of a log, the places where a literal stands; at least one in each line with any.
Search = Callable[[bytes], Iterator[int]]


def literals_of(triggers: Iterable[str]) -> tuple[bytes, ...]:
    """Triggers as bytes, and as a JSON record holds them.

    One that holds another stays: to leave the few out would cost more than to search for them.
    """
    wanted = {trigger.encode() for trigger in triggers}
    return tuple(sorted(wanted | {w.replace(b'"', b'\\"') for w in wanted}))


def search_for(literals: tuple[bytes, ...], *, pure: bool = False) -> Search:
    """A search for lines with one of the literals. `pure`: with the standard library alone."""
    if not pure:
        try:
            import ahocorasick_rs
        except ImportError:
            return _with_re(literals)
        automaton = ahocorasick_rs.BytesAhoCorasick(
            list(literals), implementation=ahocorasick_rs.Implementation.DFA
        )

        def search(piece: bytes) -> Iterator[int]:
            return (start for _, start, _ in automaton.find_matches_as_indexes(piece))

        return search
    return _with_re(literals)


def is_fast() -> bool:
    """Whether the one-pass search is installed."""
    import importlib.util

    return importlib.util.find_spec("ahocorasick_rs") is not None


def _with_re(literals: tuple[bytes, ...]) -> Search:
    pattern = re.compile(b"|".join(map(re.escape, literals)))

    def search(piece: bytes) -> Iterator[int]:
        return (found.start() for found in pattern.finditer(piece))

    return search
