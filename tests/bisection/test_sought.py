"""What a trial is to the search: how much was tried, and another failure that is looked for."""

from __future__ import annotations

from typing import Any

import pytest

from specrepro.repro.bisection.sought import verdict
from specrepro.repro.bisection.tally import tallies
from specrepro.repro.bisection.verdicts import (
    Bad,
    Exposure,
    Good,
    Infra,
    Observation,
    Other,
    Untestable,
    Verdict,
)


def row(*ends: str, requests: int = 4, tokens: int = 900) -> dict[str, Any]:
    evidence = [{"probe": "engine_end", "value": "other", "detail": end} for end in ends]
    measured = {"probe": "output_tokens", "value": "right", "detail": "CUDA error"}
    tried = {"requests": requests, "tokens": tokens}
    return {"evidence": [measured, *evidence], "tried": tried}


CRASH = "another failure, while it served: RuntimeError: CUDA error: an illegal memory access"


@pytest.mark.parametrize(
    ("signature", "end", "found", "now"),
    [
        ("illegal memory access", CRASH, Other("x"), Bad),
        ("Illegal Memory", CRASH, Other("x"), Bad),
        ("TypeError", CRASH, Other("x"), Other),
        ("hang", CRASH, Other("x"), Other),
        ("hang", "no end within 300 s; it served", Untestable("r", "f"), Bad),
        ("hang", "requests of beside did not end", Other("x"), Bad),
        ("hang", "nothing more for 40 s after an error; it served", Untestable("r", "f"), Bad),
        # what is measured is no end of an engine
        ("CUDA error", "the engine exit status 3", Other("x"), Other),
        ("CUDA error", CRASH, Infra("no network"), Infra),
    ],
)
def test_a_failure_that_is_looked_for_is_the_fault_and_another_one_is_not(
    signature: str, end: str, found: Verdict, now: type[Verdict]
) -> None:
    said = verdict(row(end), found, signature)
    assert type(said) is now
    if isinstance(said, Bad):
        assert said == Bad(end, Exposure(requests=4, tokens=900))


@pytest.mark.parametrize("found", [Bad("dict-override"), Good()])
def test_an_engine_that_was_judged_did_not_fail_whatever_the_cases_own_sign(found: Verdict) -> None:
    assert verdict(row(), found, "illegal") == Good(Exposure(requests=4, tokens=900))


def test_a_clean_trial_keeps_how_much_was_tried_and_a_sign_has_no_onset() -> None:
    assert verdict(row(), Good(), "") == Good(Exposure(requests=4, tokens=900))
    assert verdict(row(), Bad("dict-override"), "") == Bad("dict-override")
    assert verdict({"evidence": []}, Good(), "") == Good()


def test_a_trial_that_ended_before_the_failure_is_known_to_come_counts_for_nothing() -> None:
    seen = [
        Observation("a", 1, verdict(row(CRASH, tokens=11_000), Other("x"), "illegal"), 1.0),
        Observation("b", 1, verdict(row(tokens=2_000), Good(), "illegal"), 1.0),
        Observation("c", 1, verdict(row(tokens=12_000), Good(), "illegal"), 1.0),
    ]
    found = tallies(seen, others=3)
    assert (found["b"].full, found["b"].short) == (0, 1)
    assert (found["c"].full, found["c"].short) == (1, 0)
