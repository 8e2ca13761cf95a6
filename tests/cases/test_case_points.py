from pathlib import Path

import pytest

from specrepro.repro.case import load_case, named_point, override, points, settings
from specrepro.repro.case.points import refuse_contradiction
from specrepro.repro.errors import CaseError, UsageError
from specrepro.repro.scenarios.declare import Parameter

DEFAULTS = {"length": 4, "step": 2, "rate": 0.5, "mode": "up", "loud": False}


@pytest.fixture
def case(good, write, scenarios):
    return load_case(write(good), scenarios).case


def test_the_named_point_holds_every_parameter(case, scenarios) -> None:
    assert points(case, scenarios=scenarios) == [DEFAULTS | {"length": 8}]
    assert named_point(case, scenarios["stairs"]) == DEFAULTS | {"length": 8}


def test_settings_of_a_variant_include_the_defaults(good, write, scenarios) -> None:
    case = load_case(write(good.replace("{guard: none}", "{}")), scenarios).case
    assert settings(case, "broken", scenarios["stairs"]) == {"guard": "none"}
    assert settings(case, "sound", scenarios["stairs"]) == {"guard": "full"}


def test_a_sweep_is_the_cross_product_after_the_named_point_each_point_once(
    good, write, scenarios
) -> None:
    text = good.replace("{length: [6, 8, 10]}", "{length: [4, 8, 8], step: [1, 2]}")
    case = load_case(write(text), scenarios).case
    pairs = [(p["length"], p["step"]) for p in points(case, True, scenarios)]
    assert pairs == [(8, 2), (4, 1), (4, 2), (8, 1)]


def test_a_range_includes_both_ends(good, write, scenarios) -> None:
    text = good.replace("{length: 8, step: 2}", "{step: 1}").replace("[6, 8, 10]", '"6..10"')
    case = load_case(write(text), scenarios).case
    lengths = [point["length"] for point in points(case, True, scenarios)]
    assert lengths == [4, 6, 7, 8, 9, 10]


def test_a_sweep_that_an_override_makes_contradict_itself_is_refused_whole(case, scenarios) -> None:
    changed = override(case, {"step": "4"}, scenarios)
    with pytest.raises(UsageError, match=r"4 does not divide length 6 \(length=6, step=4\)"):
        points(changed, True, scenarios)


HALF = ("  sound: {guard: full}\n", "  sound: {guard: full}\n  half: {guard: half}\n")
HALF_CLEAN = ("variant: sound, clean", "variant: half, clean: true}\n  - {variant: sound, clean")


def test_only_the_variants_that_were_asked_for_must_go_with_the_points(
    good, write, scenarios
) -> None:
    text = good.replace(*HALF).replace(*HALF_CLEAN).replace("step: 2}\nsw", "step: 1}\nsw")
    text = text.replace("when: {step: 2}, ", "")
    case = override(load_case(write(text), scenarios).case, {"step": "2"}, scenarios)
    assert [p["length"] for p in points(case, True, scenarios, ("sound", "broken"))] == [8, 6, 10]
    with pytest.raises(UsageError, match="variant half: guard: half a guard needs another step"):
        points(case, True, scenarios)
    declaration, named = scenarios["stairs"], named_point(case, scenarios["stairs"])
    refuse_contradiction(case, named, declaration, ("sound", "broken"))
    with pytest.raises(UsageError, match="variant half"):
        refuse_contradiction(case, named, declaration, ("half",))


def test_a_case_without_a_sweep_cannot_be_swept(good, write, scenarios) -> None:
    case = load_case(write(good.replace("sweep: {length: [6, 8, 10]}\n", "")), scenarios).case
    with pytest.raises(UsageError, match="small-case has no sweep"):
        points(case, True, scenarios)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("length", "6", 6),
        ("rate", "1", 1.0),
        ("rate", "0.25", 0.25),
        ("mode", "down", "down"),
        ("loud", "TRUE", True),
    ],
)
def test_an_override_has_the_type_that_is_declared(case, scenarios, name, text, value) -> None:
    changed = override(case, {name: text}, scenarios)
    (point,) = points(changed, scenarios=scenarios)
    assert point == DEFAULTS | {"length": 8} | {name: value}
    assert type(point[name]) is type(value)
    assert case.params == {"length": 8, "step": 2}


def test_an_override_fixes_its_parameter_in_the_sweep(good, write, scenarios) -> None:
    text = good.replace("{length: [6, 8, 10]}", "{length: [6, 8], step: [1, 2]}")
    case = override(load_case(write(text), scenarios).case, {"length": "10"}, scenarios)
    pairs = [(p["length"], p["step"]) for p in points(case, True, scenarios)]
    assert pairs == [(10, 2), (10, 1)]


@pytest.mark.parametrize(
    ("values", "words", "hint"),
    [
        (
            {"lenght": "6"},
            "unknown parameter `lenght` of case small-case; it has",
            "`length`",
        ),
        ({"length": "six"}, "length must be a whole number in 1..100, not `six`", "specrepro show"),
        ({"length": "-1"}, "in 1..100, not -1", "specrepro show small-case"),
        ({"qqqq": "1"}, "it has length, step", "specrepro show small-case"),
        ({"length": "6.0"}, "not `6.0`", None),
        ({"length": "1_0"}, "not `1_0`", None),
        ({"length": "0"}, "in 1..100, not 0", None),
        ({"length": "9" * 5000}, "in 1..100", None),
        ({"length": ""}, "not ``", None),
        ({"rate": "nan"}, "rate must be a number in 0..1", None),
        ({"rate": "inf"}, "rate must be a number in 0..1", None),
        ({"mode": "dwn"}, "one of `up`, `down`", "`down`"),
        ({"loud": "yes"}, "true or false, not `yes`", None),
        ({"guard": "full"}, "`guard` is set by a variant", "broken, sound"),
        ({"mode\x1b[2J": "1"}, "`mode\\x1b[2J`", None),
    ],
)
def test_an_override_that_is_not_allowed_says_what_is(case, scenarios, values, words, hint) -> None:
    with pytest.raises(UsageError) as caught:
        override(case, values, scenarios)
    assert words in caught.value.message
    assert not isinstance(caught.value, CaseError)
    assert hint is None or hint in caught.value.hint


@pytest.mark.parametrize(
    ("parameter", "allowed"),
    [
        (Parameter(1, int, low=1), "a whole number, at least 1"),
        (Parameter(1, int, high=9), "a whole number, at most 9"),
        (Parameter(True, bool), "true or false"),
        (Parameter("a", str, choices=("a", "b")), "one of `a`, `b`"),
    ],
)
def test_what_is_allowed_reads_as_the_end_of_a_sentence(parameter, allowed) -> None:
    assert parameter.allowed() == allowed


def test_every_shipped_case_loads_under_its_own_name() -> None:
    from specrepro.repro.case import load_cases, shipped_cases

    paths = shipped_cases()
    loaded = load_cases([str(path) for path in paths])
    assert [Path(path).stem for path in paths] == [one.case.id for one in loaded]
    assert "mtp-tail-overflow" in [one.case.id for one in loaded]
    for one in loaded:
        if one.case.sweep:
            assert len(points(one.case, True)) > 1
