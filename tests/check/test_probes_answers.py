"""Probes on code that no release has: each must be able to give its other answers, and to say that
it does not know. What releases have is in test_probes_releases.py."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from specrepro.repro.check.probes import PROBES, load
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


@pytest.mark.parametrize("probe", PROBES)
def test_a_probe_without_its_subject_does_not_know(probe: str, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        ask(tmp_path, probe)


@pytest.mark.parametrize("probe", PROBES)
def test_a_probe_of_files_that_hold_nothing_does_not_know(probe: str, tmp_path: Path) -> None:
    empty = {
        pattern.removeprefix("vllm/").removesuffix(".py").replace("*", "x").replace("/", "__"): ""
        for pattern in load(probe).files
    }
    with pytest.raises(NotFoundError):
        ask(tmp_path, probe, **empty)


GATE = """
class GPUModelRunner:
    def _input_fits_in_drafter(self, metadata):
        return metadata.max_seq_len + {more} <= self.effective_drafter_max_model_len
"""


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ("self.num_spec_tokens", "L-k"),
        ("self.num_spec_tokens - 1", "too late"),
        ("self.num_spec_tokens + 1", "early"),
        ("self.num_spec_tokens + self.speculative_config.use_dflash()", "L-k, one less for DFlash"),
    ],
)
def test_the_gate_is_tried_and_not_read(more: str, wanted: str, tmp_path: Path) -> None:
    answer = ask(tmp_path, "draft_gate", v1__worker__gpu_model_runner=GATE.format(more=more))
    assert (answer.value, answer.ran) == (wanted, True)


SCHEDULE = """
class Scheduler:
    def schedule(self):
        while budget:
            num_new_tokens = request.num_tokens_with_spec - request.num_computed_tokens
            num_new_tokens = min(num_new_tokens, {limit} - request.num_computed_tokens)
            if request.has_encoder_inputs:
                pass
"""


@pytest.mark.parametrize(
    ("limit", "wanted"),
    [("self.max_model_len - 1", "trimmed"), ("self.max_model_len + 1", "not trimmed")],
)
def test_a_schedule_past_the_end_is_seen(limit: str, wanted: str, tmp_path: Path) -> None:
    text = SCHEDULE.format(limit=limit)
    assert ask(tmp_path, "schedule_trim", v1__core__sched__scheduler=text).value == wanted


@pytest.mark.parametrize(
    ("bound", "wanted"),
    [("self.max_model_len", "clamped"), ("self.max_model_len + 4", "not clamped")],
)
def test_an_allocation_past_the_end_is_seen(bound: str, wanted: str, tmp_path: Path) -> None:
    text = f"""
    class KVCacheManager:
        def allocate_slots(self, num_lookahead_tokens):
            return min(num_tokens_main_model + num_lookahead_tokens, {bound})
    """
    assert ask(tmp_path, "allocation_clamp", v1__core__kv_cache_manager=text).value == wanted


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("return lambda c: c", "lost"),
        ("return lambda c: (c.__dict__.update(overrides), c)[1]", "applied"),
    ],
)
def test_a_dict_that_reaches_the_draft_is_seen(body: str, wanted: str, tmp_path: Path) -> None:
    text = f"""
    class SpeculativeConfig:
        def compose_draft_hf_overrides(overrides):
            {body}
    """
    assert ask(tmp_path, "dict_override", config__speculative=text).value == wanted


RUNNER = """
class GPUModelRunner:
    def propose(self):
        if not input_fits_in_drafter:
            {body}
"""


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("pass", "no drafts"),
        ("self._draft_token_ids = torch.zeros(1).expand(2, 3)", "zeros"),
        (
            "if self.valid_sampled_token_count_event:\n"
            "                self._draft_token_ids = torch.zeros(1).expand(2, 3)",
            "async zeros",
        ),
    ],
)
def test_what_a_shut_gate_proposes_is_seen(body: str, wanted: str, tmp_path: Path) -> None:
    text = RUNNER.format(body=body)
    assert ask(tmp_path, "shut_gate", v1__worker__gpu_model_runner=text).value == wanted


KERNEL = """
def eagle_step_slot_mapping_metadata_kernel(
    positions_ptr, block_table_ptr, block_table_stride, seq_lens_ptr, out_clamped_positions_ptr,
    out_slot_mapping_ptr, block_size, max_model_len, n_blocks_per_req, PAD_ID, batch_size
):
    r = tl.program_id(0)
    position = tl.load(positions_ptr + r) + 1
    past = position >= max_model_len
    {body}
    tl.store(out_clamped_positions_ptr + r, kept)
    tl.store(out_slot_mapping_ptr + r, tl.where(past, PAD_ID, slot))
"""
LOOK_UP = "slot = tl.load(block_table_ptr + {b} // block_size) * block_size + {b} % block_size"


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("kept = tl.where(past, 0, position); " + LOOK_UP.format(b="kept"), "starts again"),
        ("kept = position; " + LOOK_UP.format(b="tl.where(past, 0, position)"), "masked"),
        ("kept = position; " + LOOK_UP.format(b="position"), "past the end"),
    ],
)
def test_the_draft_step_of_v1_is_run(body: str, wanted: str, tmp_path: Path) -> None:
    answer = ask(tmp_path, "v1_draft_position", v1__spec_decode__utils=KERNEL.format(body=body))
    assert (answer.value, answer.ran) == (wanted, True)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [("tl.minimum(p + 1, max_model_len - 1)", "clamped"), ("p + 1", "past the end")],
)
def test_the_draft_step_of_v2_is_run(expression: str, wanted: str, tmp_path: Path) -> None:
    text = f"""
    def _update_draft_inputs_kernel(positions_ptr, seq_lens_ptr, max_model_len):
        p = tl.load(positions_ptr)
        tl.store(positions_ptr, {expression})
    """
    drafter = {"v1__worker__gpu__spec_decode__any": text}
    assert ask(tmp_path, "v2_draft_position", envs=ENVS, **drafter).value == wanted


LOOP = """
class Speculator:
    def multi_step_decode(self, num_reqs, batch_desc):
        {before}
        for step in range(1, self.num_speculative_steps):
            {inside}
            if batch_desc.cg_mode == CUDAGraphMode.FULL:
                self.manager.run_fullgraph(batch_desc)
            else:
                self.generate_draft(num_reqs, metadata)
"""
BUILD = "metadata = self._build_draft_attn_metadata(num_reqs)"
ONLY_EAGER = "metadata = batch_desc.cg_mode == CUDAGraphMode.FULL or self.build_attn_metadata()"


@pytest.mark.parametrize(
    ("before", "inside", "eager", "graph"),
    [
        ("pass", BUILD, "each step", "each step"),
        (BUILD, "pass", "once", "once"),
        ("metadata = None", "pass", "never", "never"),
        ("pass", ONLY_EAGER, "each step", "never"),
        ("pass", f"if step != 2: {BUILD}", "once", "once"),
    ],
)
def test_builds_of_metadata_are_counted_by_mode(
    before: str, inside: str, eager: str, graph: str, tmp_path: Path
) -> None:
    text = LOOP.format(before=before, inside=inside)
    drafter = {"v1__worker__gpu__spec_decode__any": text}
    assert ask(tmp_path, "v2_eager_metadata", envs=ENVS, **drafter).value == eager
    assert ask(tmp_path, "v2_graph_metadata", envs=ENVS, **drafter).value == graph


def test_the_worst_of_two_drafters_is_the_answer(tmp_path: Path) -> None:
    drafters = {
        "v1__worker__gpu__spec_decode__a": LOOP.format(before=BUILD, inside="pass"),
        "v1__worker__gpu__spec_decode__b": LOOP.format(before="pass", inside=BUILD),
    }
    answer = ask(tmp_path, "v2_eager_metadata", envs=ENVS, **drafters)
    assert (answer.value, Path(answer.path).stem) == ("once", "a")


FUSED = """
class Speculator:
    def _fused_multi_step_decode(self, num_reqs, batch_desc):
        {build}
        self._generate_fused_drafts(num_reqs, metadata, 4)

    def _generate_fused_drafts(self, num_reqs, metadata, num_speculative_steps):
        for step in range(1, num_speculative_steps):
            {update}
            self._generate_draft(num_reqs, metadata)
"""


@pytest.mark.parametrize(
    ("build", "update", "wanted"),
    [
        (BUILD, "if step > 1: self._update_draft_decode_metadata(metadata)", "each step"),
        ("metadata = 1", "self._update_draft_decode_metadata(metadata)", "each step"),
        ("metadata = 1", "if step > 1: self._update_draft_decode_metadata(metadata)",
         "not each step"),
        (BUILD, "pass", "not each step"),
    ],
)  # fmt: skip
def test_the_fused_path_must_renew_what_the_host_did_not_build(
    build: str, update: str, wanted: str, tmp_path: Path
) -> None:
    drafter = {"v1__worker__gpu__spec_decode__any": FUSED.format(build=build, update=update)}
    assert ask(tmp_path, "v2_fused_update", envs=ENVS, **drafter).value == wanted


def test_a_build_without_the_switch_has_no_runner_v2(tmp_path: Path) -> None:
    answer = ask(tmp_path, "v2_eager_metadata", envs="environment_variables = {'A': 0}")
    assert (answer.value, answer.path, answer.line) == ("no runner V2", "vllm/envs.py", 1)


@pytest.mark.parametrize(("flag", "wanted"), [("True", "pinned"), ("False", "pageable")])
def test_the_library_is_read_where_it_lies_beside_the_engine(
    flag: str, wanted: str, tmp_path: Path
) -> None:
    text = f"""
    class Wrapper:
        def __init__(self):
            self._pin_memory_int_workspace_buffer = torch.empty(8, pin_memory={flag})
    """
    assert ask(tmp_path, "library_plan_buffer", flashinfer__decode=text).value == wanted


RECURRENT = """
def some_recurrent_kernel(ssm_state_indices, num_accepted_tokens, stride_indices_seq, T):
    count = tl.load(num_accepted_tokens)
    {check}
    state = tl.load(ssm_state_indices + count - 1)
"""


@pytest.mark.parametrize(
    ("check", "wanted"),
    [("pass", "unchecked"), ("count = tl.maximum(1, tl.minimum(count, 4))", "checked")],
)
def test_the_recurrent_kernel_is_run_with_counts_outside(
    check: str, wanted: str, tmp_path: Path
) -> None:
    kernel = {"ops__fused_recurrent": RECURRENT.format(check=check)}
    assert ask(tmp_path, "accepted_count", **kernel).value == wanted


def test_a_kernel_that_cannot_be_followed_is_not_taken_for_a_checked_one(tmp_path: Path) -> None:
    kernel = {"ops__fused_recurrent": RECURRENT.format(check="count = count.unheard_of()")}
    with pytest.raises(NotFoundError):
        ask(tmp_path, "accepted_count", **kernel)
