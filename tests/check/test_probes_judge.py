"""From readings to a verdict: what is present, what acts, by default or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.check.defects import BuildVerdict, Defect, Judgement, Question, Route, judge
from specrepro.repro.check.exposure import Exposure, Value, exposure, parse, possible
from specrepro.repro.check.survey import status
from specrepro.repro.errors import Exit, UsageError

AFFECTED, CLEAR, OPEN = BuildVerdict


@dataclass(frozen=True)
class Said:
    value: str | None
    detail: str = "nobody knows"


def defaults(
    runner: str = "v1", scheduling: str = "on", caching: str = "off"
) -> dict[str, Mapping[str, str] | None]:
    return {
        "default_runner": {"dense pp1": "v2", "dense pp2": "v2", "hybrid pp1": runner,
                           "hybrid pp2": runner},
        "default_async": {f"{r} pp{n}{a}": scheduling for r in ("v1", "v2") for n in (1, 2)
                          for a in ("", " align")},
        "default_prefix_caching": {"dense": "on", "hybrid": caching},
    }  # fmt: skip


def verdict(
    defects: list[Defect], question: Question | None = None, **facts: str | None
) -> Judgement:
    said = {name: Said(value) for name, value in facts.items()}
    return judge(defects, said, defaults(), question or Question())


ONE = Defect("one", "is wrong", (Route({"p": ("bad",)}, {"runner": "v1"}),))
TWO = Defect("two", "is wrong too", (Route({"q": ("bad", "worse")}),))


@pytest.mark.parametrize(
    ("p", "q", "wanted"),
    [
        ("bad", "good", AFFECTED),
        ("good", "worse", AFFECTED),
        ("good", "good", CLEAR),
        ("good", None, OPEN),
        (None, "good", OPEN),
        (None, "bad", AFFECTED),
    ],
)
def test_a_build_is_affected_if_any_defect_acts_and_open_if_one_is_not_known(
    p: str | None, q: str | None, wanted: BuildVerdict
) -> None:
    assert verdict([ONE, TWO], p=p, q=q).verdict is wanted


def test_a_fact_that_does_not_hold_outweighs_one_that_is_not_known() -> None:
    both = Defect("both", "needs two facts", (Route({"p": ("bad",), "q": ("bad",)}),))
    assert verdict([both], p=None, q="good").verdict is CLEAR
    assert verdict([both], p=None, q="bad").verdict is OPEN
    assert "nobody knows" in verdict([both], p=None, q="bad").reasons[0]


def test_a_second_route_is_enough() -> None:
    either = Defect("either", "two ways", (Route({"p": ("bad",)}), Route({"q": ("bad",)})))
    assert verdict([either], p="good", q="bad").verdict is AFFECTED


def test_a_latent_defect_is_shown_and_counts_only_by_name() -> None:
    latent = Defect("latent", "a gap", (Route({"p": ("bad",)}),), latent=True)
    shown = verdict([latent, TWO], p="bad", q="good")
    assert (shown.verdict, shown.exposure) == (CLEAR, ())
    assert [(s.defect, s.state, s.counted) for s in shown.standings] == [
        ("latent", "present", False),
        ("two", "absent", True),
    ]
    assert verdict([latent, TWO], Question(("latent",)), p="bad", q="good").verdict is AFFECTED


def test_a_defect_that_is_not_known_but_latent_leaves_the_verdict_alone() -> None:
    latent = Defect("latent", "a gap", (Route({"p": ("bad",)}),), latent=True)
    assert verdict([latent, TWO], p=None, q="good").verdict is CLEAR


def test_one_defect_asked_for_leaves_the_others_out() -> None:
    asked = verdict([ONE, TWO], Question(("two",)), p="bad", q="good")
    assert (asked.verdict, asked.exposure) == (CLEAR, ())


def test_a_fixed_setting_closes_the_routes_that_need_another() -> None:
    assert verdict([ONE], Question(fixed={"runner": "v2"}), p="bad").verdict is CLEAR
    assert verdict([ONE], Question(fixed={"runner": "v1"}), p="bad").verdict is AFFECTED


@pytest.mark.parametrize(
    ("needed", "fixed", "wanted"),
    [
        # the runner is v2 for dense models, v1 for hybrids
        ({"runner": "v1"}, {}, Exposure(True, ("hybrid",))),
        ({"runner": "v2"}, {}, Exposure(True, ("dense",))),
        ({"runner": "v1", "model": "dense"}, {}, Exposure(False, ())),
        ({"runner": "v1"}, {"model": "dense"}, Exposure(False, ())),
        ({"runner": "v1"}, {"runner": "v1"}, Exposure(True, ("dense", "hybrid"))),
        ({"async": "off"}, {}, Exposure(False, ())),
        ({"async": "off"}, {"async": "off"}, Exposure(True, ("dense", "hybrid"))),
        ({"prefix_caching": "on"}, {}, Exposure(True, ("dense",))),
        ({"graphs": "full"}, {}, Exposure(True, ("dense", "hybrid"))),
        ({"max_model_len": "auto"}, {}, Exposure(False, ())),
        # what is the user's own to choose is no matter of defaults
        ({"k": 3, "hf_overrides": "dict", "pp": 2}, {}, Exposure(True, ("dense", "hybrid"))),
    ],
)
def test_exposure_follows_the_defaults_of_a_world(
    needed: dict[str, Value], fixed: dict[str, Value], wanted: Exposure
) -> None:
    assert exposure(needed, fixed, defaults()) == wanted


def test_asynchronous_scheduling_is_looked_up_for_the_runner_pipeline_and_caching() -> None:
    tables = defaults(caching="on")
    given = dict(tables["default_async"] or {})
    tables["default_async"] = given | {"v1 pp1 align": "off"}
    assert exposure({"async": "off"}, {}, tables) == Exposure(True, ("hybrid",))
    assert exposure({"async": "off", "pp": 2}, {}, tables) == Exposure(False, ())
    assert exposure({"async": "off"}, {"pp": 4}, tables) == Exposure(False, ())
    fixed: dict[str, Value] = {"prefix_caching": "off"}
    assert exposure({"async": "off"}, fixed, tables) == Exposure(False, ())


def test_a_default_that_is_not_known_is_neither_yes_nor_no() -> None:
    tables = defaults() | {"default_runner": None}
    assert exposure({"runner": "v1"}, {}, tables) == Exposure(None, ())
    assert exposure({"runner": "v1", "max_model_len": "auto"}, {}, tables) == Exposure(False, ())
    facts = {"p": Said("bad")}
    assert judge([ONE], facts, tables, Question()).verdict is AFFECTED
    assert judge([ONE], facts, tables, Question(default_only=True)).verdict is OPEN


def test_defaults_only_leaves_out_what_must_be_set() -> None:
    auto = Defect("auto", "when fitted", (Route({"p": ("bad",)}, {"max_model_len": "auto"}),))
    assert verdict([auto], p="bad").verdict is AFFECTED
    only = Question(default_only=True)
    assert verdict([auto], only, p="bad").verdict is CLEAR
    fixed = Question(fixed={"max_model_len": "auto"}, default_only=True)
    assert verdict([auto], fixed, p="bad").verdict is AFFECTED
    # an unknown code fact of a route that is not the default's leaves nothing open
    assert verdict([auto], only, p=None).verdict is CLEAR


@given(needed=st.integers(1, 9), given_=st.integers(1, 9))
def test_a_number_is_the_least_that_is_needed(needed: int, given_: int) -> None:
    assert possible({"k": needed}, {"k": given_}) is (given_ >= needed)


def test_settings_of_a_command_line_are_read_by_their_kind() -> None:
    assert parse({"k": "3", "runner": "v2"}) == {"k": 3, "runner": "v2"}
    for wrong in ({"k": "x"}, {"k": "0"}, {"runner": "v3"}, {"runer": "v2"}, {"k": "9" * 30}):
        with pytest.raises(UsageError):
            parse(wrong)
    with pytest.raises(UsageError) as raised:
        parse({"runer": "v2"})
    assert raised.value.hint is not None
    assert "runner" in raised.value.hint


@pytest.mark.parametrize(
    ("verdicts", "wanted"),
    [
        ([CLEAR, CLEAR], Exit.OK),
        ([CLEAR, OPEN], Exit.UNTESTABLE),
        ([OPEN, AFFECTED, CLEAR], Exit.FAULT),
        ([], Exit.UNTESTABLE),
    ],
)
def test_the_status_of_a_range(verdicts: list[BuildVerdict], wanted: Exit) -> None:
    assert status(verdicts) is wanted
