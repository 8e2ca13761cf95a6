"""What only old builds keep in files of their own: asked of those alone, and of nobody later."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from specrepro.repro.check.probes import load
from specrepro.repro.check.probing.probe import Sources
from specrepro.repro.check.source import members


def test_a_file_that_only_old_builds_need_is_asked_of_those_alone() -> None:
    probe = load("default_prefix_caching")
    overruling = "vllm/model_executor/models/config.py"
    old = ["vllm/engine/arg_utils.py", "vllm/config/model.py", overruling]
    assert members(old, [probe]) == old
    assert overruling not in members([*old, "vllm/config/vllm.py"], [probe])


SETTING = """
    class EngineArgs:
        def _set_default_args(self, model_config):
            if model_config.runner_type != "pooling":
                if self.enable_prefix_caching is None:
                    self.enable_prefix_caching = True
"""
STATE = """
    class MambaModelConfig:
        def verify_and_update_config(cls, vllm_config):
            {statement}

    class HybridAttentionMambaModelConfig:
        def verify_and_update_config(cls, vllm_config):
            MambaModelConfig.verify_and_update_config(vllm_config)
            raise ValueError("sizes of pages")
"""


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [("vllm_config.cache_config.enable_prefix_caching = False", "off"), ("pass", "on")],
)
def test_what_is_done_for_state_overrules_the_option(
    statement: str, wanted: str, tmp_path: Path
) -> None:
    settings, state = tmp_path / "settings", tmp_path / "state"
    settings.write_text(textwrap.dedent(SETTING), encoding="utf-8")
    state.write_text(textwrap.dedent(STATE.format(statement=statement)), encoding="utf-8")
    build = {
        "vllm/engine/arg_utils.py": settings,
        "vllm/model_executor/models/config.py": state,
    }
    answer = load("default_prefix_caching").answer(Sources(build))
    assert (answer.value, answer.ran) == ({"dense": "on", "hybrid": wanted}, True)
