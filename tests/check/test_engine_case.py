"""The `check: engine:` part of a case: what it may say, and how it is told what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from specrepro.repro.case import load_case, shipped_cases
from specrepro.repro.check.defects import Question
from specrepro.repro.check.engine.declare import ORACLES
from specrepro.repro.check.engine.experiments import experiments
from specrepro.repro.check.engine.oracles import oracle
from specrepro.repro.errors import CaseError

SHIPPED = {path.stem: path for path in shipped_cases()}


@pytest.mark.parametrize(
    ("old", "new", "key", "words"),
    [
        ("oracle: draft_gate", "oracle: draft_gat", "check.engine.oracle", "did you mean"),
        ("kind: length_canary", "kind: canary", "check.engine.checkpoint.kind", "unknown kind"),
        ("{max_model_len: 512}", "{model: /etc}", "check.engine.arguments.model", "unknown"),
        ("{max_model_len: 512}", "{trust_remote_code: true}", "check.engine", "unknown argument"),
        ("{max_model_len: 512}", "{max_model_len: 1}", "check.engine", "in 16..4194304, not 1"),
        ("max_position_embeddings: 512", "auto_map: 5", "check.engine.overrides", "unknown"),
        ("low: 20,", "lowest: 20,", "check.engine.requests.lowest", "unknown number of draft_gate"),
        (
            "runner: v1}\n      call",
            "runner: v3}\n      call",
            "check.engine",
            "runner is v1 or v2",
        ),
        ("hf_overrides: callable, r", "graphs: eager, r", "check.engine", "unknown setting"),
        ("expect: not seen", "expect: unseen", "check.engine.controls[0].expect", "must be one of"),
        ("served: true", "change: no_such", "check.engine.controls", "unknown change"),
        ("settings: {k: 0}", "settings: {k: -1}", "check.engine.controls", "in 0..16, not -1"),
        (
            "      callable-override: {",
            "      no-such: {",
            "check.engine.defects",
            "unknown defect",
        ),
    ],
)
def test_what_an_experiment_may_not_say_is_refused_where_it_stands(
    old: str, new: str, key: str, words: str, tmp_path: Path
) -> None:
    text = SHIPPED["draft-length-gate"].read_text(encoding="utf-8")
    before, engine, after = text.partition("  engine:\n")
    assert old in after
    path = tmp_path / "draft-length-gate.yaml"
    path.write_text(before + engine + after.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(CaseError) as error:
        load_case(path)
    assert (error.value.key or "").startswith(key)
    assert words in f"{error.value} {error.value.hint}"
    assert error.value.where is not None
    assert int(error.value.where.split(":")[-2]) > before.count("\n")


def test_an_experiment_that_decides_and_shows_nothing_is_refused(tmp_path: Path) -> None:
    text = SHIPPED["gdn-pipeline-state"].read_text(encoding="utf-8")
    before, controls, _ = text.rpartition("    controls:\n")
    path = tmp_path / "gdn-pipeline-state.yaml"
    path.write_text(before, encoding="utf-8")
    assert controls
    with pytest.raises(CaseError, match="neither `defects` to decide nor `controls` to run"):
        load_case(path)


@pytest.mark.parametrize(
    ("old", "new", "key", "words"),
    [
        ("oracle: one_token_chunk", "oracle: one_tok", "check.engine.also[1].oracle", "unknown"),
        ("kind: canary", "kind: plain", "check.engine.also[0].checkpoint.kind", "unknown kind"),
        ("          num_gpu_blocks_override: 12\n", "", "check.engine.also[1].arguments", "needs"),
        ("          one-token-chunk: {", "          zero-draft-rows: {", "check.engine", "already"),
    ],
)
def test_further_experiments_of_a_case_are_checked_as_the_first_is(
    old: str, new: str, key: str, words: str, tmp_path: Path
) -> None:
    text = SHIPPED["gdn-pipeline-state"].read_text(encoding="utf-8")
    before, also, after = text.partition("    also:\n      - oracle")
    assert old in after
    path = tmp_path / "gdn-pipeline-state.yaml"
    path.write_text(before + also + after.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(CaseError) as error:
        load_case(path)
    assert (error.value.key or "").startswith(key)
    assert words in str(error.value)


def test_every_oracle_is_declared_and_played() -> None:
    for name in ORACLES:
        assert callable(oracle(name).judge)


def test_a_fixed_setting_takes_the_place_of_the_one_that_is_looked_for() -> None:
    check = load_case(SHIPPED["draft-length-gate"]).case.check
    assert check is not None
    assert check.engine is not None
    spec, defects = check.engine.record(), check.records()
    each = experiments(spec, defects, Question(), False)
    assert [e.decides for e in each] == [("dict-override",), ("callable-override",)]
    fixed = Question(fixed={"hf_overrides": "config_file"})
    [one] = experiments(spec, defects, fixed, False)
    assert one.decides == ("dict-override", "callable-override")
    assert one.settings == {"hf_overrides": "config_file", "runner": "v1"}


def test_only_the_defects_that_are_asked_for_are_looked_for() -> None:
    check = load_case(SHIPPED["mtp-tail-overflow"]).case.check
    assert check is not None
    assert check.engine is not None
    asked = Question(defects=("unguarded-draft-v2", "silent-row"))
    [one] = experiments(check.engine.record(), check.records(), asked, False)
    assert (one.decides, one.settings["k"]) == (("unguarded-draft-v2",), 4)
