"""Hypotheses against a build: what an outcome of an engine tells of a fault model, and what not."""

from __future__ import annotations

import pytest

from specrepro.repro.measured import Measured, MeasuredCell, Standing, measured_cells, standing


@pytest.mark.parametrize(
    ("modelled", "measured", "tells"),
    [
        ("wrong_output", "right", Standing.NOT_THERE),
        ("wrong_output", "wrong_output", Standing.COMPATIBLE),
        # an engine without protected memory goes on where a model stops
        ("illegal_access", "wrong_output", Standing.COMPATIBLE),
        ("illegal_access", "right", Standing.NOT_THERE),
        # it does not act there: a build that is wrong may have another fault
        ("right", "wrong_output", Standing.NOT_TOLD),
        ("right", "right", Standing.NOT_TOLD),
        ("wrong_output", None, Standing.NOT_TOLD),
        (None, "right", Standing.NOT_TOLD),
    ],
)
def test_a_cell_tells_only_where_the_hypothesis_acts_and_the_engine_came_to_something(
    modelled: str | None, measured: str | None, tells: Standing
) -> None:
    assert MeasuredCell("e", modelled, measured).tells is tells


def test_one_right_answer_outweighs_what_another_fault_may_have_done() -> None:
    wrong = MeasuredCell("a", "wrong_output", "wrong_output")
    right = MeasuredCell("b", "wrong_output", "right")
    silent = MeasuredCell("c", "right", "right")
    assert standing([wrong, silent]) is Standing.COMPATIBLE
    assert standing([wrong, right]) is Standing.NOT_THERE
    assert standing([silent]) is standing([]) is Standing.NOT_TOLD


def test_an_experiment_that_was_not_modelled_has_an_empty_cell() -> None:
    experiment = Measured("tail", "at the end", {}, "right", "sound")
    assert measured_cells([experiment], {}) == (MeasuredCell("tail", None, "right"),)
