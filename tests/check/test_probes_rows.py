"""Probes of RoPE tables, of rows of block tables and of the ranks of a drafter, on code that no
release has. What releases have is in test_probes_releases.py."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from specrepro.repro.check.probes import load
from specrepro.repro.check.probing.probe import Answer, NotFoundError, Sources

ENVS = "environment_variables = {'VLLM_USE_V2_MODEL_RUNNER': 0}"


def ask(folder: Path, probe: str, **files: str) -> Answer:
    """Answer for a build of the given files; `__` in a key stands for a slash."""
    members = {}
    for key, text in files.items():
        name = f"vllm/{key.replace('__', '/')}.py"
        members[name] = folder / name
        members[name].parent.mkdir(parents=True, exist_ok=True)
        members[name].write_text(textwrap.dedent(text))
    return load(probe).answer(Sources(members))


GATED = """
class GPUModelRunner:
    def sample_tokens(self, metadata):
        if self._input_fits_in_drafter(metadata):
            propose()
        {branch}
"""


@pytest.mark.parametrize(
    ("branch", "wanted"),
    [
        ("", "no step"),
        ("elif self.config.data_parallel_size > 1: self.drafter.dummy_run(1)", "dummy step"),
        ("elif self.config.data_parallel_size > 1: log('no drafts')", "no step"),
    ],
)
def test_a_dummy_step_of_a_rank_is_seen(branch: str, wanted: str, tmp_path: Path) -> None:
    runner = GATED.format(branch=branch)
    assert ask(tmp_path, "rank_dummy_step", v1__worker__gpu_model_runner=runner).value == wanted


RAISING = """
_RESIZED = frozenset(("default",))

def _rope_only_sizes_cache(config):
    return all(p["rope_type"] in _RESIZED for p in iter_rope_parameters(config))

class SpeculativeConfig:
    def __post_init__(self):
        if {condition}:
            SpeculativeConfig._maybe_override_draft_max_position_embeddings(draft, 128)

    @staticmethod
    def _maybe_override_draft_max_position_embeddings(config, length):
        config = {inner}
        if {guard}:
            config.max_position_embeddings = {length}
"""


def raising(**changed: str) -> str:
    parts = {
        "condition": "self.method == 'mtp'",
        "inner": "config",
        "guard": "_rope_only_sizes_cache(config)",
        "length": "length",
    }
    return RAISING.format(**(parts | changed))


def test_the_methods_and_ropes_whose_table_is_raised_are_tried(tmp_path: Path) -> None:
    answer = ask(tmp_path, "draft_rope_length", config__speculative=raising())
    assert isinstance(answer.value, dict)
    assert [k for k, v in answer.value.items() if v == "raised"] == ["mtp default"]
    answer = ask(tmp_path, "draft_rope_length", config__speculative=raising(guard="True"))
    assert isinstance(answer.value, dict)
    assert [k for k, v in answer.value.items() if v == "raised"] == ["mtp default", "mtp yarn"]
    nested = raising(inner="getattr(config, 'text_config', config)")
    answer = ask(tmp_path, "draft_rope_length", config__speculative=nested)
    assert answer.detail.endswith("in a text_config of its own it is raised")


@pytest.mark.parametrize(
    "changed", [{"condition": "self.model"}, {"length": "length // 2"}], ids=["condition", "half"]
)
def test_a_table_that_is_raised_in_a_way_unknown_is_not_judged(
    changed: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(NotFoundError):
        ask(tmp_path, "draft_rope_length", config__speculative=raising(**changed))


LAYERS = """
class MultiTokenPredictor:
    def __init__(self, vllm_config):
        model_config = {source}
        self.config = model_config.hf_config
"""
DRAFT = "vllm_config.speculative_config.draft_model_config"


@pytest.mark.parametrize(
    ("source", "wanted"), [("vllm_config.model_config", "target"), (DRAFT, "draft")]
)
def test_whose_configuration_layers_are_built_of_is_followed_through_names(
    source: str, wanted: str, tmp_path: Path
) -> None:
    layers = LAYERS.format(source=source)
    answer = ask(tmp_path, "draft_rope_source", model_executor__models__qwen3_next_mtp=layers)
    assert answer.value == {"qwen3_next": wanted}


@pytest.mark.parametrize(
    "text", [LAYERS.format(source="made_up()"), LAYERS.format(source=DRAFT) + """
    def load(self, vllm_config):
        return vllm_config.model_config.hf_config
"""], ids=["unknown", "both"]
)  # fmt: skip
def test_a_configuration_of_unclear_origin_is_not_judged(text: str, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        ask(tmp_path, "draft_rope_source", model_executor__models__qwen3_next_mtp=text)


MAPPING = """
def _compute_slot_mappings_kernel(
    max_num_tokens, idx_mapping, query_start_loc, pos, block_table_ptrs, block_table_strides,
    block_sizes, slot_mappings_ptr, slot_mappings_stride, PAD_ID, TRITON_BLOCK_SIZE,
):
    request = tl.load(idx_mapping + tl.program_id(1))
    table = _load_ptr(block_table_ptrs, tl.int32) + request * tl.load(block_table_strides)
    size = tl.load(block_sizes)
    offset = tl.arange(0, TRITON_BLOCK_SIZE)
    positions = tl.load(pos + offset)
    block = tl.load(table + positions // size{mask})
    slots = block * size + positions % size
    tl.store(slot_mappings_ptr + offset, {stored})
"""


@pytest.mark.parametrize(
    ("mask", "stored", "wanted"),
    [
        ("", "slots", "looked up"),
        (", mask=request >= 0", "tl.where(request >= 0, slots, PAD_ID)", "guarded"),
    ],
)
def test_the_slots_of_a_row_without_a_request_are_computed(
    mask: str, stored: str, wanted: str, tmp_path: Path
) -> None:
    text = MAPPING.format(mask=mask, stored=stored)
    answer = ask(tmp_path, "padding_row", envs=ENVS, v1__worker__gpu__block_table=text)
    assert (answer.value, answer.ran) == (wanted, True)


@pytest.mark.parametrize(
    ("mask", "stored"),
    [("", "slots + 1"), (", mask=request >= 0", "slots"), ("", "unknown(slots)")],
    ids=["wrong", "no padding", "cannot run"],
)
def test_a_mapping_that_does_not_map_a_request_right_is_not_judged(
    mask: str, stored: str, tmp_path: Path
) -> None:
    text = MAPPING.format(mask=mask, stored=stored)
    with pytest.raises((NotFoundError, NameError)):
        ask(tmp_path, "padding_row", envs=ENVS, v1__worker__gpu__block_table=text)


APPEND = """
class BlockTables:
    def append_block_ids(self, req_indices, cu_num_new_blocks, new_block_ids, overwrite):
        {check}
        _append_block_ids_kernel[(1, 1)](req_indices)

def _append_block_ids_kernel(
    req_indices, cu_num_new_blocks_ptr, new_block_ids_ptr, block_table_ptrs, BLOCK_SIZE,
):
    count = tl.load(cu_num_new_blocks_ptr + 1)
    offset = tl.arange(0, BLOCK_SIZE)
    ids = tl.load(new_block_ids_ptr + offset, mask=offset < count)
    row = _load_ptr(block_table_ptrs, tl.int32)
    tl.store(row + offset, ids, mask=offset < {limit})
"""


def test_a_kernel_that_appends_past_its_row_is_seen(tmp_path: Path) -> None:
    text = APPEND.format(check="", limit="count")
    answer = ask(tmp_path, "v2_row", envs=ENVS, v1__worker__gpu__block_table=text)
    assert (answer.value, answer.ran) == ("silent", True)
    assert "2 are written into the next one" in answer.detail


@pytest.mark.parametrize(
    ("check", "limit"),
    [("assert len(new_block_ids) < 4", "count"), ("", "tl.minimum(count, 4)"), ("", "count - 1")],
    ids=["host refuses", "cut", "one too few"],
)
def test_a_kernel_that_may_not_append_past_its_row_is_not_judged(
    check: str, limit: str, tmp_path: Path
) -> None:
    text = APPEND.format(check=check, limit=limit)
    with pytest.raises(NotFoundError):
        ask(tmp_path, "v2_row", envs=ENVS, v1__worker__gpu__block_table=text)
