"""What the probes of greedy rejection share: two requests whose drafts are compared with the
target's tokens, then a draft token that is a placeholder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..probe import Bench, Outcome, Tensor, UnclearError
from .rejection_kernel import PLACEHOLDER

DRAFTS, REQUESTS = 2, 2
COLUMNS = DRAFTS + 1  # of a request's row of tokens: its drafts, and the bonus
TARGETS = ([3, 0], [7, 2])
UNSET, BONUS = -7, 5
VALUES = {
    "rejected": "no, the target's token comes out, and nothing after it",
    "accepted": "yes, it goes on as if the draft had been right",
    "outside": "it touches what is another request's, or nobody's",
}
# Launches for these drafts of each request: the findings, and the tensor of the tokens, COLUMNS a
# request and UNSET before. The target's tokens are TARGETS, as many of each as there are drafts.
Sample = Callable[[Bench, Sequence[Sequence[int]]], tuple[list[Mapping[str, Any]], Tensor]]


def run(bench: Bench, sample: Sample) -> Outcome:
    """Right drafts, also with none for one request, must come out and touch nothing else; then the
    first draft of each request is a placeholder."""
    for drafts in (TARGETS, ([], TARGETS[1]), (TARGETS[0], [])):
        found, tokens = sample(bench, drafts)
        if found:
            return _outside(f"right drafts {list(drafts)}", found)
        _control(drafts, tokens.values)
    found, tokens = sample(bench, [[PLACEHOLDER, kept[1]] for kept in TARGETS])
    if found:
        return _outside(f"draft token {PLACEHOLDER}", found)
    rows = [tokens.values[n * COLUMNS :][:COLUMNS] for n in range(REQUESTS)]
    said = f"draft token {PLACEHOLDER}: the tokens are {_shown(rows[0])} and {_shown(rows[1])}"
    if rows == [[target[0], UNSET, UNSET] for target in TARGETS]:
        return Outcome("rejected", said)
    wrong = [
        {**bench.wrong_value(tokens, n * COLUMNS + column, expected), "request": n}
        for n, row in enumerate(rows)
        for column, expected in enumerate([TARGETS[n][0], UNSET, UNSET])
        if row[column] != expected
    ]
    return Outcome("accepted", said, wrong)


def _control(drafts: Sequence[Sequence[int]], values: Sequence[Any]) -> None:
    """Refuse a kernel that does not give out right drafts, or the token after them by itself.

    Runner V2 samples that one elsewhere since 0.21.0."""
    for number, kept in enumerate(drafts):
        row = list(values[number * COLUMNS :][:COLUMNS])
        rest = [UNSET] * (COLUMNS - len(kept))
        if row not in ([*kept, *rest], [*kept, BONUS, *rest[1:]]):
            raise UnclearError(f"right drafts {list(kept)} came out as {_shown(row)}")


def _outside(said: str, found: Sequence[Mapping[str, Any]]) -> Outcome:
    one = found[0]
    said += f": {one['kind']} of element {one['elements'][0]} of {one['tensor']}"
    return Outcome("outside", said, found)


def _shown(row: Sequence[Any]) -> list[Any]:
    return ["unset" if token == UNSET else token for token in row]
