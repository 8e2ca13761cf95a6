"""Which trials a case comes to."""

import pytest

from specrepro.repro.case import load_cases, override
from specrepro.repro.errors import UsageError
from specrepro.repro.plan import plan
from specrepro.repro.records import Status

[TAIL] = load_cases(["mtp-tail-overflow"])
CPU = ("reference", "emulator")


def test_the_own_point_runs_every_variant_and_a_face_those_it_speaks_of() -> None:
    steps = plan(TAIL.case, TAIL.case, lanes=CPU).steps
    by_face = {
        face: [s.variant for s in steps if s.point["placement"] == face]
        for face in ("unmapped", "neighbour", "garbage_size")
    }
    assert by_face["unmapped"] == list(TAIL.case.variants)
    assert by_face["neighbour"] == by_face["garbage_size"]
    assert by_face["neighbour"] == ["faulty", "fixed", "degraded", "padded"]


def test_literal_expectations_hold_at_the_points_of_the_file_only() -> None:
    moved = override(TAIL.case, {"seq_len": "61"})
    [step] = plan(moved, TAIL.case, variants=("faulty",)).steps
    assert step.point["seq_len"] == 61
    assert step.wanted.literal == ()
    assert step.wanted.status is Status.CLEAN  # 61 + 3 fits in 64


def test_a_parameter_set_to_its_own_value_keeps_the_literal_expectation() -> None:
    same = override(TAIL.case, {"seq_len": "62"})
    [step, *_] = plan(same, TAIL.case, variants=("faulty",)).steps
    assert step.wanted.literal[0]["first_element"] == 1024


def test_a_sweep_adds_the_cross_product_with_the_closed_form_as_oracle() -> None:
    steps = plan(TAIL.case, TAIL.case, sweep=True, variants=("faulty",)).steps
    unmapped = [s for s in steps if s.point["placement"] == "unmapped"]
    assert len(unmapped) == 9 * 5
    for step in unmapped:
        n, k = int(step.point["seq_len"]), int(step.point["num_speculative_tokens"])
        assert (step.wanted.status is Status.FAULT) == (64 - k < n <= 63)


def test_a_variant_is_a_fix_only_if_all_is_clean() -> None:
    fixes = {s.variant: s.wanted.fix for s in plan(TAIL.case, TAIL.case).steps}
    assert fixes == {
        "faulty": False,
        "fixed": True,
        "degraded": True,
        "padded": True,
        "faulty_routing": False,
        "fixed_routing": True,
    }


@pytest.mark.parametrize(
    ("asked", "hint"),
    [({"variants": ("fixd",)}, "did you mean `fixed`?"), ({"lanes": ("emulatr",)}, "`emulator`")],
)
def test_an_unknown_name_is_refused_with_the_nearest(
    asked: dict[str, tuple[str, ...]], hint: str
) -> None:
    with pytest.raises(UsageError) as refused:
        plan(TAIL.case, TAIL.case, **asked)
    assert hint in (refused.value.hint or "")


def test_a_lane_like_no_other_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError) as refused:
        plan(TAIL.case, TAIL.case, lanes=("nope",))
    assert refused.value.hint == f"lanes: {', '.join(TAIL.case.lanes)}"


@pytest.mark.parametrize("sweep", [False, True])
def test_a_point_that_contradicts_itself_is_refused_for_the_variant_asked_for(sweep: bool) -> None:
    odd = override(TAIL.case, {"block_size": "5"})
    with pytest.raises(UsageError, match=r"variant fixed: block_size: 5 does not divide"):
        plan(odd, TAIL.case, sweep=sweep, variants=("fixed",))
