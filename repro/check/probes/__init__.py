"""The probes: one file each, named as the probe. A file holds QUESTION…, and PROBE."""

from __future__ import annotations

from importlib import import_module

from ..probing.probe import Probe

# In the order of a page: the code of the cases, then the defaults of a build.
PROBES = (
    "dict_override",
    "callable_override",
    "draft_length",
    "draft_gate",
    "shut_gate",
    "rank_dummy_step",
    "old_drafts",
    "gate_log",
    "lowered_target",
    "draft_rope_length",
    "draft_rope_source",
    "draft_rope_families",
    "schedule_trim",
    "allocation_clamp",
    "v1_draft_position",
    "auto_fit",
    "v2_draft_position",
    "v2_row",
    "padding_row",
    "v2_eager_metadata",
    "v2_graph_metadata",
    "v2_fused_update",
    "v2_logits_column",
    "v1_metadata",
    "plan_buffers",
    "library_plan_buffer",
    "v2_aligned_state",
    "state_copy_tables",
    "state_copy_row",
    "zero_draft_rows",
    "accepted_count",
    "first_chunk",
    "state_metadata",
    "stage_without_state",
    "cache_layout",
    "draft_group",
    "draft_group_stage",
    "default_runner",
    "default_async",
    "default_prefix_caching",
)


def load(name: str) -> Probe:
    """The probe of a name; KeyError for a name that is none of PROBES."""
    if name not in PROBES:
        raise KeyError(name)
    probe: Probe = import_module(f".{name}", __name__).PROBE
    return probe
