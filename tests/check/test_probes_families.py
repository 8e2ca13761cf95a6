"""Whose configuration the layers of a draft are built of, family by family."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from specrepro.repro.check.probes import load
from specrepro.repro.check.probing.probe import Answer, NotFoundError, Sources

DRAFT = "vllm_config.speculative_config.draft_model_config"
LAYER = """
    class Layer:
        def __init__(self, vllm_config):
            config = {layer}.hf_config
            self.block = SomeDecoderLayer(config)

    class Model:
        def __init__(self, vllm_config):
            self.config = {model}.hf_config
"""


def ask(folder: Path, files: dict[str, str]) -> Answer:
    paths = {}
    for number, (name, text) in enumerate(files.items()):
        paths[name] = folder / f"{number}.py"
        paths[name].write_text(textwrap.dedent(text), encoding="utf-8")
    return load("draft_rope_families").answer(Sources(paths))


@pytest.mark.parametrize(
    ("text", "whose"),
    [
        (
            LAYER.format(layer="vllm_config.model_config", model="vllm_config.model_config"),
            "target",
        ),
        # the function that builds the layer decides
        (LAYER.format(layer=DRAFT, model="vllm_config.model_config"), "draft"),
        (LAYER.format(layer="vllm_config.model_config", model=DRAFT), "target"),
        # the layer is handed what it needs, so the file decides
        (
            f"""
            def make(vllm_config, config):
                return SomeDecoderLayer(config)

            def model(vllm_config):
                draft = {DRAFT}
                return make(vllm_config, draft.hf_config)
            """,
            "draft",
        ),
        # the draft's is put where the target's was, for all below
        (
            LAYER.format(layer="vllm_config.model_config", model="vllm_config.model_config")
            + f"""
            vllm_config = vllm_config.with_hf_config({DRAFT}.hf_config)
""",
            "draft",
        ),
        (
            f"""
            def pick(vllm_config):
                if vllm_config.speculative_config:
                    return {DRAFT}.hf_config
                return vllm_config.model_config.hf_config
            """,
            "both",
        ),
    ],
)
def test_a_family_is_built_of_what_its_layer_is_given(
    text: str, whose: str, tmp_path: Path
) -> None:
    answer = ask(tmp_path, {"vllm/model_executor/models/some_mtp.py": text})
    assert answer.value == {"some": whose}


def test_families_are_named_by_file_or_folder(tmp_path: Path) -> None:
    text = LAYER.format(layer=DRAFT, model=DRAFT)
    files = {
        "vllm/model_executor/models/some_mtp.py": text,
        "vllm/models/other/nvidia/mtp.py": text,
        "vllm/models/silent/cpu/mtp.py": "x = 1",
    }
    answer = ask(tmp_path, files)
    assert answer.value == {"some": "draft", "other/nvidia": "draft"}
    assert "asks for none: silent/cpu" in answer.detail


def test_a_configuration_of_unknown_origin_is_unknown(tmp_path: Path) -> None:
    text = "def model(anything): return anything.hf_config"
    with pytest.raises(NotFoundError, match="whose configuration anything is"):
        ask(tmp_path, {"vllm/model_executor/models/some_mtp.py": text})
