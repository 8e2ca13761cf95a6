"""Which switches of an engine can be varied: those of the experiment that answers, and no other."""

from __future__ import annotations

import pytest

from specrepro.repro.case import load_cases
from specrepro.repro.check.defects import Question
from specrepro.repro.check.engine.variations import switches


def values(case: str, *defects: str, **fixed: str) -> dict[str, object]:
    """Switch → what the experiment sets it to, None where it leaves that to the engine."""
    [loaded] = load_cases([case])
    assert loaded.case.check is not None
    assert loaded.case.check.engine is not None
    question = Question(defects, fixed, False)
    return {s.name: s.value for s in switches(loaded.case.check.engine.record(), question)}


def test_the_experiment_that_decides_the_defect_says_what_its_switches_are_set_to() -> None:
    assert values("draft-length-gate", "dict-override") == {
        "hf_overrides": "dict",
        "runner": "v1",
        "async": None,
        "prefix_caching": "off",
    }
    assert values("draft-length-gate", "callable-override")["hf_overrides"] == "callable"
    # the first experiment of this case decides no defect: those behind it do
    assert values("gdn-pipeline-state", "one-token-chunk") == {
        "runner": "v1",
        "async": None,
        "prefix_caching": "off",
    }


def test_what_the_user_fixed_is_no_switch_and_a_defect_without_an_experiment_has_none() -> None:
    assert "runner" not in values("draft-length-gate", "dict-override", runner="v1")
    assert values("gdn-pipeline-state", "batch-row-copy") == {}


@pytest.mark.parametrize("case", ["draft-length-gate", "gdn-pipeline-state"])
def test_without_a_defect_it_is_every_experiment_that_decides_one(case: str) -> None:
    assert values(case)["runner"] == "v1"
