"""Sizes and lengths an engine was given, from the facts of an incident. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .facts import Fact
from .situation import How, Notes
from .values import NONE, number, of_kind, text_of

RANK = re.compile(r"(TP|PP|DP)(\d{1,4})")


def note_sizes(notes: Notes, facts: Sequence[Fact], arguments: Mapping[str, Fact]) -> None:
    for fact in of_kind(facts, "parallel"):
        if fact.get("dimension") in ("tp", "pp", "dp"):
            notes.put(str(fact.get("dimension")), number(fact.get("size")), [fact])
    for name, argument in (
        ("tp", "tensor_parallel_size"),
        ("pp", "pipeline_parallel_size"),
        ("dp", "data_parallel_size"),
        ("max_num_seqs", "max_num_seqs"),
        ("batched_tokens", "max_num_batched_tokens"),
        ("utilization", "gpu_memory_utilization"),
    ):
        said = arguments.get(argument)
        if said is not None:
            notes.put(name, number(said.get("value")), [said])
    _ranks(notes, facts)
    given = arguments.get("block_size")
    if given is not None and given.get("origin") != "effective" and number(given.get("value")):
        notes.put("block_size", number(given.get("value")), [given])
        notes.put("explicit_block_size", "yes", [given])
    elif given is None:
        # a whole start command without one
        whole = [fact for fact in of_kind(facts, "command") if fact.get("line")]
        notes.put("explicit_block_size", "no" if whole else None, whole, How.DERIVED)
    for fact in of_kind(facts, "dtype"):
        kind = {"kv_cache": "kv_dtype", "quantization": "quantization"}.get(str(fact.get("what")))
        if kind and str(fact.get("value")) not in NONE:
            notes.put(kind, text_of(fact.get("value")), [fact])
    for fact in of_kind(facts, "capture_sizes"):
        sizes = fact.get("sizes")
        k = notes.first("k")
        if isinstance(sizes, tuple) and sizes:
            notes.put("capture_sizes", [s for s in sizes if isinstance(s, int)], [fact])
            if isinstance(k, (int, float)) and k > 0:
                fits = any(isinstance(s, int) and s % (int(k) + 1) == 0 for s in sizes)
                notes.put("sizes_fit", "yes" if fits else "no", [fact], How.DERIVED)


def _ranks(notes: Notes, facts: Sequence[Fact]) -> None:
    """Sizes that follow from the ranks that wrote: where there is a PP1, there are two stages."""
    highest: dict[str, tuple[int, Fact]] = {}
    for fact in facts:
        for dimension, number_ in RANK.findall(fact.rank or ""):
            name = dimension.lower()
            if int(number_) > highest.get(name, (0, fact))[0]:
                highest[name] = (int(number_), fact)
    for name, (last, fact) in highest.items():
        notes.put(name, last + 1, [fact], How.DERIVED)


def note_lengths(notes: Notes, facts: Sequence[Fact], arguments: Mapping[str, Fact]) -> None:
    lines = of_kind(facts, "max_model_len")
    for role, name in (("target", "target_len"), ("draft", "draft_len")):
        own = [fact for fact in lines if fact.get("role") == role]
        if own:
            notes.put(name, number(own[-1].get("tokens")), own[-1:])
    given = arguments.get("max_model_len")
    if given is not None:
        tokens = number(given.get("value"))
        if tokens == -1 or str(given.get("value")).lower() == "auto":
            notes.put("auto_length", "yes", [given])
        elif isinstance(tokens, (int, float)) and tokens > 0:
            notes.put("target_len", tokens, [given])
    for fact in of_kind(facts, "draft_length_override"):
        # the draft is cut to the target's length: harmless
        notes.seen.pop("draft_len", None)
        notes.put("draft_len", number(fact.get("after")), [fact])
        notes.seen.pop("draft_shorter", None)
        notes.put("draft_shorter", "no", [fact])
    target, draft = notes.first("target_len"), notes.first("draft_len")
    if isinstance(target, (int, float)) and isinstance(draft, (int, float)):
        own = [fact for fact in lines if fact.get("role") in ("target", "draft")]
        notes.put("draft_shorter", "yes" if draft < target else "no", own)
