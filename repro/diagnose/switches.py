"""Switches of the engine and what surrounds it, from the facts of an incident. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .facts import Certainty, Fact
from .situation import How, Notes
from .values import NONE, frames_text, of_kind

# arguments by which blocks of the KV cache leave the device
CONNECTORS = ("kv_transfer_config", "kv_connector", "kv_offloading_size", "kv_offloading_backend")

# setting → the argument that switches it
ARGUMENTS = (("async", "async_scheduling"), ("prefix_caching", "enable_prefix_caching"))
# roles of a back end that serves the text model, drafts included
TEXT_ROLES = (None, "", "model", "mla")


def note_switches(notes: Notes, facts: Sequence[Fact], arguments: Mapping[str, Fact]) -> None:
    for name, kind in (("async", "async_scheduling"), ("prefix_caching", "prefix_caching")):
        for fact in of_kind(facts, kind):
            if isinstance(fact.get("on"), bool):
                notes.put(name, "on" if fact.get("on") else "off", [fact])
    for name, argument in (
        ("async", "async_scheduling"),
        ("prefix_caching", "enable_prefix_caching"),
    ):
        said = arguments.get(argument)
        if said is not None and isinstance(said.get("value"), bool):
            notes.put(name, "on" if said.get("value") else "off", [said])
    backends = [
        f
        for f in of_kind(facts, "attention_backend")
        if f.get("role") in (None, "", "model", "mla")
    ]
    notes.put("backend", [str(fact.get("name")) for fact in backends], backends)
    stacks = [f for f in facts if f.kind == "python_exception"]
    named = [f for f in facts if f.kind in ("coredump", "sanitizer_error")]
    inside = [f for f in stacks if "flashinfer" in frames_text(f)]
    inside += [f for f in named if "flashinfer" in str(f.get("kernel")).lower()]
    notes.put("backend", "FLASHINFER" if inside else None, inside, How.DERIVED)
    for fact in of_kind(facts, "graph_mode"):
        if isinstance(fact.get("eager"), bool):
            notes.put("eager", "yes" if fact.get("eager") else "no", [fact])
        elif fact.get("mode"):
            notes.put("eager", "yes" if fact.get("mode") == "NONE" else "no", [fact])
    captured = of_kind(facts, "graph_capture")
    notes.put("eager", "no" if captured else None, captured[:1], How.DERIVED)
    eager = arguments.get("enforce_eager")
    if eager is not None:
        notes.put("eager", "yes" if eager.get("value") is True else "no", [eager])
    off = arguments.get("disable_custom_all_reduce")
    if off is not None and isinstance(off.get("value"), bool):
        notes.put("custom_all_reduce", "off" if off.get("value") else "on", [off])
    for name in (
        "kv_transfer_config",
        "kv_connector",
        "kv_offloading_size",
        "kv_offloading_backend",
    ):
        for key, fact in arguments.items():
            if (key == name or key.startswith(f"{name}.")) and str(fact.get("value")) not in NONE:
                notes.put("connector", "yes", [fact])
                found = re.search(r"\w*Connector\w*", str(fact.get("value")))
                notes.put(
                    "connector_name", found[0] if found else str(fact.get("value"))[:40], [fact]
                )
    sleep = arguments.get("enable_sleep_mode")
    notes.put(
        "sleep_mode",
        "yes" if sleep and sleep.get("value") is True else None,
        [sleep] if sleep else (),
    )
    overrides = [f for key, f in arguments.items() if key.split(".")[0] == "hf_overrides"]
    overrides = [f for f in overrides if str(f.get("value")) not in NONE]
    notes.put("hf_overrides", "yes" if overrides else None, overrides)
    chosen = of_kind(facts, "kernel_selected")
    notes.each("kernel_selected", [(str(fact.get("kernel")), fact) for fact in chosen])


def note_environment(notes: Notes, facts: Sequence[Fact]) -> None:
    # a variable that prose names was tried: it is not how this engine ran
    set_ = [f for f in facts if f.kind == "environment" and f.certainty is Certainty.OBSERVED]
    for fact in set_:
        name, value = str(fact.get("name")), str(fact.get("value") or "")
        if name == "CUDA_LAUNCH_BLOCKING" and value == "1":
            notes.put("launch_blocking", "on", [fact])
        elif name == "VLLM_USE_V2_MODEL_RUNNER" and value in ("0", "1"):
            notes.put("runner", "v2" if value == "1" else "v1", [fact])
        elif name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
            on = "expandable_segments:true" in value.lower()
            notes.put("expandable_segments", "yes" if on else None, [fact])
        elif name == "VLLM_MOE_SKIP_PADDING" and value:
            notes.put("moe_skip_padding", value, [fact])
        elif name == "VLLM_PP_LAYER_PARTITION":
            notes.put("partition", "yes", [fact])
        elif name == "VLLM_ATTENTION_BACKEND" and value:
            notes.put("backend", value, [fact])
    blocking = [
        f
        for f in facts
        if f.kind == "cuda_error"
        and f.get("stack") == "blocking"
        and f.certainty is Certainty.OBSERVED
    ]
    notes.put("launch_blocking", "on" if blocking else None, blocking)
