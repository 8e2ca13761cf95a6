"""The JSON Schema of a case file, for editors and other programs."""

from __future__ import annotations

from typing import Any

from .model import Case

EXAMPLE = {
    "schema": 1,
    "id": "mtp-tail-overflow",
    "title": "MTP drafts write past the KV slots at the end of a long sequence",
    "report": "https://github.com/vllm-project/vllm/issues/40756",
    "claim": "The scheduler admits a sequence when one more token fits; MTP then writes k.",
    "cause": "contested",
    "class": "mtp-tail-overflow",
    "scenario": "mtp_tail",
    "params": {"max_model_len": 64, "num_speculative_tokens": 3, "seq_len": 62},
    "sweep": {"seq_len": "56..63", "num_speculative_tokens": [1, 2, 3]},
    "variants": {"faulty": {"admit": "one_token"}, "fixed": {"admit": "all_drafts"}},
    "expect": [
        {
            "variant": "faulty",
            "when": {"placement": "unmapped"},
            "finding": {"kind": "out_of_bounds_write", "op": "kv_write", "tensor": "key_cache"},
        },
        {"variant": "fixed", "clean": True},
    ],
    "lanes": ["reference", "emulator"],
    "owners": {"key_cache": "block"},
}


def case_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of a case file. What it cannot say (contradictions, names of a scenario's
    parameters) is checked when a case is loaded."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:specrepro:case:1",
        **_without_null(Case.model_json_schema(by_alias=True)),
        "examples": [EXAMPLE],
    }


def _without_null(schema: Any) -> Any:
    """Python's None is a key left out; a file has no null. Generated titles repeat the keys."""
    if isinstance(schema, list):
        return [_without_null(item) for item in schema if item != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: _without_null(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }
    if kept.get("default", ...) is None:
        del kept["default"]
    if len(kept.get("anyOf", ())) == 1:
        kept |= kept.pop("anyOf")[0]
    return kept
