"""What people say: what helps, what was said not to help, what was tried; and what is of no use."""

from __future__ import annotations

from pathlib import Path

import pytest

from specrepro.repro.diagnose.record import diagnosis_record
from specrepro.repro.diagnose.rules import load
from specrepro.repro.diagnose.session import Diagnosis, diagnose, main_incident
from specrepro.repro.diagnose.survey import read_all
from specrepro.repro.report.diagnose_words import extent

REPORT = Path(__file__).parent / "corpus" / "reports" / "one-chat.md"
LOG = (
    "(EngineCore pid=1) ERROR 09-01 10:00:00 [core.py:9] torch.AcceleratorError: CUDA error: an "
    "illegal memory access was encountered"
)


def said(folder: Path, sentence: str) -> Diagnosis:
    page = folder / "page.md"
    page.write_text(f"{sentence}\n\n```\n{LOG}\n```\n", encoding="utf-8")
    found = main_incident(diagnose(read_all([page])))
    assert found is not None
    return found


def claims(folder: Path, sentence: str) -> set[str]:
    seen = said(folder, sentence).situation.get("claim")
    return set(map(str, seen.values)) if seen else set()


@pytest.mark.parametrize(
    ("sentence", "claim", "held"),
    [
        ("With `--no-async-scheduling` it is stable.", "async_off_works", True),
        ("`--no-async-scheduling` does not help.", "async_off_works", False),
        ("`--no-async-scheduling` does not fix it.", "async_off_works", False),
        (
            "`--no-async-scheduling`: still crashes, works only for a minute",
            "async_off_works",
            False,
        ),
        ("With async scheduling off it does not crash.", "async_off_works", True),
        ("- `--enforce-eager`: OK (6 h)", "eager_works", True),
        ("`--enforce-eager` does not help.", "eager_works", False),
        ("`--enforce-eager` does not help.", "eager_fails", True),
        ("It works with eager, but still crashes with graphs.", "eager_works", True),
        ("It dies when the batch goes 8 -> 7.", "padding", True),
        ("It dies only when the batch goes 8 -> 7.", "one_shape", False),
        ("We use FlashInfer.", "flashinfer_on", True),
        ("It runs without FlashInfer attention.", "flashinfer_on", False),
    ],
)
def test_a_claim_is_what_the_sentence_says(
    sentence: str, claim: str, held: bool, tmp_path: Path
) -> None:
    assert (claim in claims(tmp_path, sentence)) is held


def test_what_the_reporter_has_tried_is_not_proposed(tmp_path: Path) -> None:
    settings = "vLLM 0.27.1, Qwen3-Next, MTP k=3, prefix caching is on, `num_speculative_tokens` 3."
    for tried, proposed in (("", True), (" With `--no-async-scheduling` it is stable.", False)):
        found = said(tmp_path, settings + tried)
        assert found.proposals
        ids = {one.experiment.id for one in found.proposals}
        assert ("async-off" in ids) is proposed, tried


def test_a_fix_that_this_release_has_is_no_way_out() -> None:
    reading = read_all([REPORT])  # vLLM 0.27.1; one of the fixes is of 0.24.0
    record = diagnosis_record(reading, diagnose(reading))
    [likely] = [row for row in record["classes"] if row["standing"] == "likely"]
    known = load().of("accepted-count-race")
    assert known is not None
    assert likely["id"] == known.id
    assert [fix.first for fix in known.fixes] == ["0.24.0", None]
    assert [fix["first"] for fix in likely["fixes"]] == [None]
    lines = len(REPORT.read_text(encoding="utf-8").splitlines())
    assert extent(record) == f"{lines} lines, 5 sources"
