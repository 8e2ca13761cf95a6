"""Hypotheses and controls in a case file: what is accepted, and how mistakes are named."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.case import load_case
from specrepro.repro.errors import CaseError

TRIED = "  - {id: a, title: At two, sets: {step: 2}, reported: {outcome: right}}\n"
UNTRIED = "  - {id: b, title: At one, sets: {step: 1}, command: try it, minutes: 5}\n"
FACTS = "  - {id: f, title: Facts, facts: {fails_in: 0.32.0, cache_hit: false, runners: [v1]}}\n"
HYPOTHESES = "hypotheses:\n  - {variant: guess, title: A guess}\n"


@pytest.fixture
def open_case(good: str) -> str:
    """The small case with a variant that nothing is expected of."""
    return good.replace("  sound:", "  guess: {guard: none}\n  sound:")


def parts(*controls: str, hypotheses: str = HYPOTHESES) -> str:
    return hypotheses + "controls:\n" + "".join(controls)


def test_a_hypothesis_needs_no_expectation_and_controls_are_typed(
    open_case: str, write: Callable[..., Path], scenarios: Any
) -> None:
    case = load_case(write(open_case + parts(TRIED, UNTRIED, FACTS)), scenarios).case
    assert [h.variant for h in case.hypotheses] == ["guess"]
    tried, untried, facts = case.controls
    assert tried.reported is not None
    assert (tried.reported.outcome, tried.reported.stage) == ("right", None)
    assert (untried.sets, untried.minutes, untried.reported) == ({"step": 1}, 5, None)
    assert facts.facts is not None
    assert facts.facts.runners == ("v1",)


def test_with_hypotheses_a_case_may_expect_nothing_but_a_clean_variant(
    open_case: str, write: Callable[..., Path], scenarios: Any
) -> None:
    expected = "  - {variant: broken, when: {step: 2}, finding: {kind: trap, op: kv_write}}\n"
    text = open_case.replace(expected, "").replace("  broken: {guard: none}\n", "")
    assert load_case(write(text + parts(TRIED)), scenarios).case.expect[0].clean


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        (parts(TRIED, hypotheses=HYPOTHESES + "  - {variant: guess, title: -}\n"),
         "hypotheses[1].variant", "for a second time"),
        (parts(UNTRIED), "hypotheses", "no entry of `controls` has a reported outcome"),
        (parts(TRIED, TRIED), "controls[1].id", "for a second time"),
        (parts(TRIED.replace("step: 2", "stepp: 2")), "controls[0].sets.stepp", "unknown param"),
        (parts(TRIED.replace("step: 2", "step: 3")), "controls[0].sets.step", "must be one of"),
        (parts(TRIED.replace("step: 2", "length: 7")), "controls[0].sets.step", "does not divide"),
        (parts(TRIED.replace("right", "fine")), "controls[0].reported.outcome", "must be "),
        (parts(TRIED.replace("right}", "right, stge: 1}")), "controls[0].reported.stge", "unknown"),
        (parts(TRIED, UNTRIED.replace(", command: try it", "")), "controls[1]", "`command`"),
        (parts(TRIED, FACTS.replace("0.32.0", "new")), "controls[1].facts.fails_in", "a release"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_by_its_key(
    open_case: str,
    write: Callable[..., Path],
    scenarios: Any,
    text: str,
    key: str,
    words: str,
) -> None:
    with pytest.raises(CaseError) as refused:
        load_case(write(open_case + text), scenarios)
    assert refused.value.key == key
    assert words in refused.value.message


@pytest.mark.parametrize(
    ("variant", "words"),
    [("brokn", "unknown variant `brokn`"), ("sound", "a hypothesis is run, not expected")],
)
def test_a_hypothesis_names_a_variant_that_nothing_is_expected_of(
    good: str, write: Callable[..., Path], scenarios: Any, variant: str, words: str
) -> None:
    text = parts(TRIED, hypotheses=f"hypotheses:\n  - {{variant: {variant}, title: A guess}}\n")
    with pytest.raises(CaseError) as refused:
        load_case(write(good + text), scenarios)
    assert refused.value.key == "hypotheses[0].variant"
    assert words in refused.value.message


def test_controls_without_hypotheses_are_refused(
    good: str, write: Callable[..., Path], scenarios: Any
) -> None:
    with pytest.raises(CaseError, match="the case has no `hypotheses`"):
        load_case(write(good + "controls:\n" + TRIED), scenarios)
