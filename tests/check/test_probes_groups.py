"""Probes of recurrent state, KV groups and pipeline stages, on code that no release has. What
releases have is in test_probes_releases.py."""

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


STATES = """
class MambaHybridModelState:
    def __init__(self, config):
        {align}
"""


@pytest.mark.parametrize(
    ("align", "wanted"),
    [
        ("self._align_mode = config.mode == 'align'", "aligned"),
        ("self.config = config", "not aligned"),
    ],
)
def test_whether_runner_v2_aligns_is_read(align: str, wanted: str, tmp_path: Path) -> None:
    text = STATES.format(align=align)
    files = {"v1__worker__gpu__model_states__mamba_hybrid": text}
    assert ask(tmp_path, "v2_aligned_state", envs=ENVS, **files).value == wanted


def test_an_alignment_of_another_name_is_not_judged(tmp_path: Path) -> None:
    files = {"v1__worker__gpu__model_states__mamba_hybrid": STATES.format(align="aligned(config)")}
    with pytest.raises(NotFoundError):
        ask(tmp_path, "v2_aligned_state", envs=ENVS, **files)


GROUPS = """
def get_mamba_groups(config):
    found = {{}}
    for i, group in enumerate(config.kv_cache_groups):
        if isinstance(group.kv_cache_spec, MambaSpec){kept}:
            found.setdefault(group.kv_cache_spec, []).append(i)
    {check}
    return found
"""
CHECK = "assert found, 'no mamba layers'"


@pytest.mark.parametrize(
    ("kept", "check", "wanted"),
    [("", "", "kept"), ("", CHECK, "kept"), (" and group.layer_names", CHECK, "left out")],
)
def test_a_stage_without_recurrent_layers_is_tried(
    kept: str, check: str, wanted: str, tmp_path: Path
) -> None:
    text = GROUPS.format(kept=kept, check=check)
    assert ask(tmp_path, "stage_without_state", v1__worker__mamba_utils=text).value == wanted


def test_a_stage_that_is_left_out_without_a_word_is_not_judged(tmp_path: Path) -> None:
    text = GROUPS.format(kept=" and group.layer_names", check="")
    with pytest.raises(NotFoundError, match="left out; a stage with none"):
        ask(tmp_path, "stage_without_state", v1__worker__mamba_utils=text)


SPEC = """
class KVCacheGroupSpec:
    is_eagle_group: bool = False
"""
MARKS = """
def _annotate_eagle_groups(vllm_config, kv_cache_spec, kv_cache_groups, use_fallback=False):
    last = {last}
    for group in kv_cache_groups:
        if use_fallback and last in group.layer_names:
            group.is_eagle_group = True

def get_kv_cache_groups(vllm_config, kv_cache_spec):
    groups = []
    {call}
    return groups
"""
CALL = "_annotate_eagle_groups(vllm_config, kv_cache_spec, groups, use_fallback={})"
LAST = "next(reversed(kv_cache_spec))"


@pytest.mark.parametrize(
    ("argument", "wanted"),
    [("vllm_config.speculative_config.method == 'mtp'", "known"), ("False", "not known")],
)
def test_the_group_of_a_draft_is_marked_as_its_caller_does(
    argument: str, wanted: str, tmp_path: Path
) -> None:
    text = MARKS.format(last=LAST, call=CALL.format(argument))
    files = {"v1__core__kv_cache_utils": text, "v1__kv_cache_interface": SPEC}
    answer = ask(tmp_path, "draft_group", **files)
    assert (answer.value, answer.ran) == (wanted, True)


@pytest.mark.parametrize(
    ("last", "call"),
    [
        (LAST, f"{CALL.format(True)}; {CALL.format(False)}"),
        ("'state'", CALL.format(True)),
        (LAST, ""),
    ],
    ids=["callers disagree", "another group", "no caller"],
)
def test_a_group_that_is_marked_in_another_way_is_not_judged(
    last: str, call: str, tmp_path: Path
) -> None:
    text = MARKS.format(last=last, call=call or "pass")
    files = {"v1__core__kv_cache_utils": text, "v1__kv_cache_interface": SPEC}
    with pytest.raises(NotFoundError):
        ask(tmp_path, "draft_group", **files)


PROJECTED = """
def _project_kv_cache_groups_to_worker(groups, layers):
    return [
        KVCacheGroupSpec(
            [name for name in group.layer_names if name in layers],
            group.kv_cache_spec,
            is_eagle_group={flag},
        )
        for group in groups
    ]
"""


@pytest.mark.parametrize(
    ("flag", "wanted"),
    [
        ("group.is_eagle_group", "kept"),
        ("group.is_eagle_group and all(n in layers for n in group.layer_names)", "lost"),
    ],
)
def test_the_mark_of_a_group_on_another_stage_is_tried(
    flag: str, wanted: str, tmp_path: Path
) -> None:
    text = PROJECTED.format(flag=flag)
    assert ask(tmp_path, "draft_group_stage", v1__core__kv_cache_utils=text).value == wanted


def test_a_mark_on_every_group_is_not_judged(tmp_path: Path) -> None:
    text = PROJECTED.format(flag="True")
    with pytest.raises(NotFoundError):
        ask(tmp_path, "draft_group_stage", v1__core__kv_cache_utils=text)


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ("size: int\n    shared_by: list", "shared"),
        ("layers: list\n    layer_stride: int", "strided"),
    ],
)
def test_the_layout_of_a_tensor_is_read(fields: str, wanted: str, tmp_path: Path) -> None:
    text = f"class KVCacheTensor:\n    {fields}\n"
    assert ask(tmp_path, "cache_layout", v1__kv_cache_interface=text).value == wanted


@pytest.mark.parametrize(
    "fields", ["size: int", "shared_by: list\n    layers: list\n    layer_stride: int"]
)
def test_a_layout_of_both_kinds_or_none_is_not_judged(fields: str, tmp_path: Path) -> None:
    text = f"class KVCacheTensor:\n    {fields}\n"
    with pytest.raises(NotFoundError):
        ask(tmp_path, "cache_layout", v1__kv_cache_interface=text)
