"""Logs of every fault class, built from the forms of the engines' lines, with the right answers.

`corpus/<class>/expected.yaml` says of each log what fails first, where classes must or may stand,
and why that is right; it was written by reasoning from what is known of the faults, not by running
this code. `corpus/pairs/` has two logs that differ in the one line that decides between classes,
`corpus/reports/` whole reports as people write them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from specrepro.repro.case import FAULT_CLASSES
from specrepro.repro.diagnose.match import Standing
from specrepro.repro.diagnose.session import Diagnosis, diagnose, main_incident
from specrepro.repro.diagnose.survey import read_all
from specrepro.repro.diagnose.wording import told

CORPUS = Path(__file__).parent / "corpus"
NAMES = ("clean", "cut", "mixed", "misleading")
SIDES = ("one", "other")
MORE = ("pairs", "reports")


def expectations() -> Iterator[Any]:
    for file in sorted(CORPUS.glob("*/expected.yaml")):
        if file.parent.name == "pairs":
            continue
        for name, expected in yaml.safe_load(file.read_text(encoding="utf-8")).items():
            yield pytest.param(file.parent, name, expected, id=f"{file.parent.name}-{name}")


def pairs() -> Iterator[Any]:
    text = (CORPUS / "pairs" / "expected.yaml").read_text(encoding="utf-8")
    for name, expected in yaml.safe_load(text).items():
        yield pytest.param(name, expected, id=name)


def led(paths: list[Path]) -> Diagnosis:
    diagnosis = main_incident(diagnose(read_all(paths)))
    assert diagnosis is not None
    return diagnosis


def standings(diagnosis: Diagnosis) -> dict[str, str]:
    return {ranked.fault_class.id: str(ranked.standing) for ranked in diagnosis.classes}


@pytest.mark.parametrize(("folder", "name", "expected"), list(expectations()))
def test_a_log_gets_the_answer_that_was_reasoned_out(
    folder: Path, name: str, expected: dict[str, Any]
) -> None:
    diagnosis = led(sorted(folder.glob(f"{name}.*")))
    first = diagnosis.course.first
    if "first" in expected:
        assert first, "no first failure"
        assert expected["first"].lower() in told(first[0]).lower()
    if "ranks" in expected:
        assert [fact.rank for fact in first] == expected["ranks"]
    if "tie" in expected:
        assert (len(first) > 1) is expected["tie"]
    found = standings(diagnosis)
    for one, allowed in expected.get("classes", {}).items():
        assert found[one] in ([allowed] if isinstance(allowed, str) else allowed), (
            one,
            found[one],
            next(r for r in diagnosis.classes if r.fault_class.id == one),
        )
    for one in expected.get("never", ()):
        assert found[one] != "likely", one
    asked = [asked.question.ask for asked in diagnosis.missing]
    for question in expected.get("missing", ()):
        assert question in asked


def test_every_class_has_a_clean_log_and_three_hard_ones() -> None:
    assert {folder.name for folder in CORPUS.iterdir()} == {*FAULT_CLASSES.values(), *MORE}
    for name in FAULT_CLASSES.values():
        text = (CORPUS / name / "expected.yaml").read_text(encoding="utf-8")
        assert set(yaml.safe_load(text)) == set(NAMES), name


@pytest.mark.parametrize(("name", "expected"), list(pairs()))
def test_the_one_line_that_decides_flips_the_answer(name: str, expected: dict[str, Any]) -> None:
    [one], [other] = (sorted((CORPUS / "pairs").glob(f"{name}.{side}.*")) for side in SIDES)
    lines = [path.read_text(encoding="utf-8").splitlines() for path in (one, other)]
    assert sum(a != b for a, b in zip(*lines, strict=True)) == 1
    for path, side in ((one, "one"), (other, "other")):
        diagnosis = led([path])
        first, second = expected[side]
        order = [ranked.fault_class.id for ranked in diagnosis.classes]
        assert standings(diagnosis)[first] in ("likely", "possible"), (side, first)
        assert order.index(first) < order.index(second), side


# Lines of healthy logs that reporters have taken for a cause.
FALSE_CLUES = (
    "(APIServer pid=100) WARNING 09-01 09:00:00 [chat_utils.py:100] Chat template warmup failed",
    "UserWarning: resource_tracker: There appear to be 6 leaked semaphore objects to clean up",
    "huggingface/tokenizers: The current process just got forked, after parallelism has been used.",
    "(APIServer pid=100) WARNING 09-01 09:00:00 [utils.py:1] Default sampling parameters have been "
    "overridden by the model's config",
    "(EngineCore pid=200) ERROR 09-01 10:59:00 [dump_input.py:79] Dumping scheduler output for "
    "model execution: SchedulerOutput(scheduled_new_reqs=[], num_scheduled_tokens={'a': 5}, "
    "total_num_scheduled_tokens=5, scheduled_spec_decode_tokens={'a': [-1, -1, -1, -1]})",
)


@pytest.mark.parametrize("name", sorted(FAULT_CLASSES.values()))
def test_no_standing_changes_by_a_false_clue(name: str, tmp_path: Path) -> None:
    files = sorted((CORPUS / name).glob("clean.*"))
    before = led(files)
    target = next(path for path in files if "dmesg" not in path.name)
    text = target.read_text(encoding="utf-8")
    marked = tmp_path / target.name
    tail = "\n".join(FALSE_CLUES) + "\n"
    if target.suffix == ".md":
        text = text.replace("```\n", f"```\n{tail}", 1)
    marked.write_text(text + ("" if target.suffix == ".md" else tail), encoding="utf-8")
    after = led([marked if path == target else path for path in files])
    likely = {k for k, v in standings(before).items() if v == Standing.LIKELY}
    assert {k for k, v in standings(after).items() if v == Standing.LIKELY} == likely
    assert [told(f) for f in after.course.first] == [told(f) for f in before.course.first]


def test_nothing_but_false_clues_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "healthy.log"
    path.write_text("\n".join(FALSE_CLUES) + "\n", encoding="utf-8")
    assert [one for one in diagnose(read_all([path])) if one.found] == []
