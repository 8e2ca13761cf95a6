"""What an engine's settings say beyond themselves, from commands and from config dumps alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..facts import Value
from .line import Found
from .patterns import lazily
from .reprs import flat

# option of one engine → the name under which rules know it
ALIASES = {
    "tp": "tensor_parallel_size",
    "tp_size": "tensor_parallel_size",
    "pp": "pipeline_parallel_size",
    "pp_size": "pipeline_parallel_size",
    "dp": "data_parallel_size",
    "dp_size": "data_parallel_size",
    "ep_size": "expert_parallel_size",
    "sc": "speculative_config",
    "cc": "compilation_config",
    "O": "optimization_level",
    "speculative_algorithm": "speculative_config.method",
    "speculative_num_draft_tokens": "speculative_config.num_draft_tokens",
    "speculative_num_steps": "speculative_config.num_speculative_tokens",
    "speculative_draft_model_path": "speculative_config.model",
    "max_draft_len": "speculative_config.num_speculative_tokens",
    "num_spec_tokens": "num_speculative_tokens",
    "model_path": "model",
    "context_length": "max_model_len",
    "max_running_requests": "max_num_seqs",
    "no_async_scheduling": "async_scheduling",
    "disable_cuda_graph": "enforce_eager",
    "ctx_size": "max_model_len",
    "data_parallel_size": "data_parallel_size",
}
_DIMENSIONS = {
    "tensor_parallel_size": "tp",
    "pipeline_parallel_size": "pp",
    "data_parallel_size": "dp",
    "expert_parallel_size": "ep",
    "prefill_context_parallel_size": "pcp",
    "decode_context_parallel_size": "dcp",
}
_DTYPES = {"dtype": "weights", "kv_cache_dtype": "kv_cache", "quantization": "quantization"}
_BLOCKS = ("block_size", "mamba_block_size")
# Some releases print the members of CUDAGraphMode as numbers.
_MODES: Mapping[Value, str] = {
    0: "NONE",
    1: "PIECEWISE",
    2: "FULL",
    (2, 0): "FULL_DECODE_ONLY",
    (2, 1): "FULL_AND_PIECEWISE",
}
# Settings whose value may hold a secret.
_SECRET = lazily(r"(?:^|[_.])(?:api_keys?|token|secret|password|keyfile)$", re.IGNORECASE)


def settings(values: Mapping[str, object], origin: str) -> Iterator[Found]:
    """An `engine_argument` for each setting, and the facts that some of them are."""
    speculation: dict[str, Value] = {}
    compilation: dict[str, Value] = {}
    for name, value in flat({canonical(name): value for name, value in values.items()}):
        head, _, rest = name.partition(".")
        if _SECRET.search(name):
            value = "***" if value else value
        yield Found("engine_argument", {"name": name, "value": value, "origin": origin})
        if head == "speculative_config":
            speculation[rest] = value
        elif head == "compilation_config":
            compilation[rest] = value
        else:
            yield from _meaning(name, value, origin)
    if "speculative_config" in values or speculation:
        yield from _speculation(speculation)
    yield from _graphs(compilation)


def canonical(name: str) -> str:
    """An option's name as rules know it: no dashes, underscores, one name for synonyms."""
    plain = name.lstrip("-").replace("-", "_")
    head, dot, rest = plain.partition(".")
    return f"{ALIASES.get(head, head)}{dot}{rest}"


def _meaning(name: str, value: Value, origin: str) -> Iterator[Found]:
    if name in _DIMENSIONS and isinstance(value, int):
        yield Found("parallel", {"dimension": _DIMENSIONS[name], "size": value})
    elif name in _DTYPES and value is not None:
        yield Found("dtype", {"what": _DTYPES[name], "value": value})
    elif name in _BLOCKS and isinstance(value, int):
        yield Found("block_size", {"name": name, "tokens": value})
    elif name == "enforce_eager" and isinstance(value, bool):
        yield Found("graph_mode", {"mode": "NONE" if value else None, "eager": value})
    elif name in ("enable_prefix_caching", "no_enable_prefix_caching", "disable_radix_cache"):
        if isinstance(value, bool):
            on = value if name.startswith("enable") else not value
            yield Found("prefix_caching", {"on": on, "origin": origin})
    elif name == "async_scheduling" and isinstance(value, bool):
        yield Found("async_scheduling", {"on": value, "origin": origin})
    elif name == "mamba_cache_mode" and isinstance(value, str):
        yield Found("mamba_cache_mode", {"mode": value, "origin": origin})
    elif name == "max_seq_len" and isinstance(value, int):
        yield Found("max_model_len", {"tokens": value, "role": "target", "order": None})
    elif name in ("model", "model_tag") and isinstance(value, str):
        yield Found("model", {"name": value, "role": "target"})
    elif name in ("attention_backend", "attention_config.backend") and isinstance(value, str):
        yield Found("attention_backend", {"name": value.upper(), "role": None})


def _speculation(values: Mapping[str, Value]) -> Iterator[Found]:
    tokens = values.get("num_speculative_tokens", values.get("num_spec_tokens"))
    method, model = values.get("method"), values.get("model")
    enabled = any(value is not None for value in (tokens, method, model))
    yield Found("speculation", {"method": method, "k": tokens, "model": model, "enabled": enabled})
    if isinstance(model, str):
        yield Found("model", {"name": model, "role": "draft"})


def _graphs(values: Mapping[str, Value]) -> Iterator[Found]:
    mode, sizes = values.get("cudagraph_mode"), values.get("cudagraph_capture_sizes")
    if mode in _MODES:
        yield Found("graph_mode", {"mode": _MODES[mode], "eager": None})
    elif isinstance(mode, str):
        plain = mode.rpartition(".")[2].upper()
        yield Found("graph_mode", {"mode": plain, "eager": None})
    if isinstance(sizes, tuple) and sizes:
        numbers = [size for size in sizes if isinstance(size, int)]
        largest = values.get("max_cudagraph_capture_size")
        whole = [*numbers, *([largest] if isinstance(largest, int) else [])]
        yield Found(
            "capture_sizes",
            {"sizes": tuple(numbers), "largest": max(whole, default=None), "count": len(numbers)},
        )
