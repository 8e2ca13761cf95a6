"""The experiments on a real engine: what was measured of vLLM 0.28.0 is measured again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PYTHON = os.environ.get("SPECREPRO_ENGINE_PYTHON")
pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(not PYTHON, reason="SPECREPRO_ENGINE_PYTHON names no Python with vLLM"),
]

Check = Callable[..., dict[str, Any]]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    def run(case: str, *arguments: str) -> dict[str, Any]:
        code = "import sys; from specrepro.cli import main; main()"
        command = [sys.executable, "-c", code, "check", case, "--depth", "engine", "--json"]
        ran = subprocess.run(
            [*command, "--python", str(PYTHON), *arguments],
            capture_output=True,
            text=True,
            timeout=900,
            cwd=tmp_path,
            env=os.environ | {"XDG_STATE_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)},
        )
        [build] = json.loads(ran.stdout)["builds"]
        assert isinstance(build, dict)
        return build | {"status": ran.returncode}

    return run


def values(build: dict[str, Any], defect: str) -> dict[str, Any]:
    return {row["probe"]: row["value"] for row in build["evidence"] if row["defect"] == defect}


def test_a_dict_override_loses_every_draft_behind_the_drafts_length(check: Check) -> None:
    build = check("draft-length-gate", "--defect", "dict-override")
    assert (build["status"], build["verdict"]) == (1, "AFFECTED")
    seen = values(build, "dict-override")
    assert seen["first_lost_prompt_length"] == 127
    assert seen["neighbour_slow_steps"] == 21
    assert seen["logged_lengths"] == "512, 128"


def test_the_length_in_the_config_file_loses_none(check: Check) -> None:
    build = check("draft-length-gate", "--with", "hf_overrides=config_file")
    assert (build["status"], build["verdict"]) == (0, "NOT AFFECTED")


def test_drafts_near_the_end_stay_where_they_were_measured(check: Check) -> None:
    build = check("mtp-tail-overflow", "--defect", "unguarded-draft-v1")
    assert (build["status"], build["verdict"]) == (0, "NOT AFFECTED")
    seen = values(build, "unguarded-draft-v1")
    last = [seen[f"last_draft_position_k{k}"] for k in range(1, 9)]
    assert last == [126, 126, 125, 125, 123, 126, 121, 123]


@pytest.mark.parametrize("case", ["mtp-tail-overflow", "stale-draft-metadata"])
def test_the_oracle_sees_the_fault_where_it_is_brought_in(case: str, check: Check) -> None:
    defect = {"mtp-tail-overflow": "unguarded-draft-v1", "stale-draft-metadata": "built-once-eager"}
    build = check(case, "--defect", defect[case], "--with", "k=4", "--controls")
    assert (build["status"], build["verdict"]) == (0, "NOT AFFECTED")
    controls = [row for row in build["evidence"] if row["probe"].startswith("control-")]
    injected = {row["value"] for row in controls if row["detail"].startswith("injected change")}
    assert injected == {"seen", "not seen"}


def test_a_hybrid_loses_its_state_in_a_step_without_drafts_and_takes_over_an_old_one(
    check: Check,
) -> None:
    asked = ("--defect", "zero-draft-rows", "--defect", "one-token-chunk")
    build = check("gdn-pipeline-state", *asked)
    assert (build["status"], build["verdict"]) == (1, "AFFECTED")
    end = values(build, "zero-draft-rows")
    assert end["tokens_of_each_step"] == "1 4 4 4 4 4 4 4 1"
    assert end["wrong_tokens_at_the_end"] == "a: 29, b: 29"
    wrong = values(build, "one-token-chunk")["wrong_after_one_token"]
    assert wrong.split() == ["8", "of", "8"]


def test_a_hybrid_answers_in_three_stages_as_in_one_unless_prefix_caching_stops_it(
    check: Check,
) -> None:
    build = check("gdn-pipeline-state")
    assert (build["status"], build["verdict"]) == (1, "AFFECTED")
    controls = {row["probe"]: row for row in build["evidence"] if row["defect"] is None}
    assert controls["control-stages"]["value"] == "not seen"
    # a stage without an attention layer
    assert controls["control-caching"]["value"] == "other"
    assert "AssertionError" in controls["control-caching"]["detail"]
