"""What vLLM says while it starts (0.8 to 0.33), but for the settings' own dumps."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..facts import Value
from .line import Following, Found, Line, Parser, State, joined
from .patterns import lazily
from .reprs import keywords, value_of
from .settings import settings

_VERSION = r"v?(?P<version>\d+\.\d+[\w.+\-]{0,60}|dev)"
_BANNER = lazily(rf"(?:vLLM API server|vLLM server|█.{{0,80}}|^)\s*version:? +{_VERSION}")
_INIT = lazily(
    rf"(?P<what>Initializing|Dumping input data for) (?:an? )?(?:(?P<core>V\d) )?LLM engine "
    rf"\({_VERSION}\)(?: with config: )?"
)
_GIVEN = lazily(r"non-default args: ?(?=\{)")
_NAMESPACE = lazily(r"args: Namespace\(")
_COMMIT = lazily(r"\+g([0-9a-f]{7,40})")


def _version(version: str, origin: str) -> Found:
    commit = _COMMIT.search(version)
    values: dict[str, Value] = {"name": "vllm", "version": version, "origin": origin}
    return Found("engine", {**values, "commit": commit[1] if commit else None})


def _banner(line: Line, _: Following, state: State) -> Iterator[Found]:
    if found := _BANNER.search(line.text):
        if state.announced or state.starts:
            _new_session(state)
        state.announced = True
        yield _version(found["version"], "banner")
    if found := _NAMESPACE.search(line.text):
        yield from settings(keywords(line.text[found.end() :]), "effective")


def _given(line: Line, following: Following, _: State) -> Iterator[Found]:
    text = joined(line, following)
    if found := _GIVEN.search(text):
        values = value_of(text[found.end() :])
        if isinstance(values, dict):
            yield from settings(values, "given")


def _init(line: Line, following: Following, state: State) -> Iterator[Found]:
    text = joined(line, following)
    found = _INIT.search(text)
    if found is None:
        return
    start = found["what"] == "Initializing"
    if start:
        if line.prefix.key in state.starts and not state.announced:
            _new_session(state)
        if len(state.starts) < 1024:
            state.starts.add(line.prefix.key)
        state.announced = False
    yield _version(found["version"], "init" if start else "dump")
    yield from settings(keywords(text[found.end() :]), "effective")


def _new_session(state: State) -> None:
    state.session += 1
    state.starts.clear()
    state.announced = False
    state.lengths = 0


def _length(line: Line, _: Following, state: State) -> Iterator[Found]:
    if found := re.search(r"Using max model len (\d{1,12})", line.text):
        state.lengths += 1
        # target first, then the draft; a third one is a draft's draft or another process
        role = {1: "target", 2: "draft"}.get(state.lengths, "unknown")
        values: dict[str, Value] = {"tokens": int(found[1]), "role": role}
        yield Found("max_model_len", {**values, "order": state.lengths})
    if found := re.search(
        r"Overriding draft model max model len from (\d{1,12}) to (\d{1,12})", line.text
    ):
        yield Found("draft_length_override", {"before": int(found[1]), "after": int(found[2])})


def _simple(line: Line, _: Following, __: State) -> Iterator[Found]:
    text = line.text
    if found := re.search(r"Resolved architecture: ?(\w{1,120})", text):
        yield Found("architecture", {"name": found[1], "role": "unknown"})
    if found := re.search(r"Asynchronous scheduling is (enabled|disabled)", text):
        yield Found("async_scheduling", {"on": found[1] == "enabled", "origin": "log"})
    elif "synchronous scheduling" in text and re.search(
        r"(?:not supported|disabl|turned off)", text
    ):
        yield Found("async_scheduling", {"on": False, "origin": "log"})
    if "Using V2 Model Runner" in text:
        yield Found("runner", {"version": "v2", "origin": "log"})
    if "using the V1 model runner instead" in text:
        yield Found("runner", {"version": "v1", "origin": "fallback"})
    if found := re.search(r"Mamba cache mode is set to '?(\w{1,20})'?(?: for (\w{1,120}))?", text):
        yield Found("mamba_cache_mode", {"mode": found[1], "origin": "log"})
        if found[2]:
            yield Found("architecture", {"name": found[2], "role": "target"})
    if found := re.search(r"Selected (\w{1,120}) for (\S{1,120})", text):
        yield Found("kernel_selected", {"kernel": found[1], "use": found[2].rstrip(".,")})
    if found := re.search(r"Starting to load model (\S{1,300}?)\.{3}", text):
        yield Found("model", {"name": found[1], "role": "target"})
    if re.search(r"Enforce eager set|Cudagraph is disabled under eager mode", text):
        yield Found("graph_mode", {"mode": "NONE", "eager": True})
    if found := re.search(
        r"cudagraph_mode (?:is set to |to |= ?)(?:CUDAGraphMode\.)?([A-Z_]+)", text
    ):
        yield Found("graph_mode", {"mode": found[1], "eager": None})


def _backend(line: Line, _: Following, __: State) -> Iterator[Found]:
    found = re.search(
        r"Using (?:AttentionBackendEnum\.)?([A-Za-z][\w./ ]{2,48}?) "
        r"(?:attention |MLA |GDN )?(?:backend|kernel)\b",
        line.text,
    )
    if found is None:
        return
    name = found[1].strip()
    roles = (("gdn", "gdn"), ("mla", "mla"), ("vit", "vit"), ("mm_encoder", "vit"))
    lower = line.text.lower()
    role = next((r for word, r in roles if word in lower), "model")
    plain = {"flash attention": "FLASH_ATTN", "flashinfer": "FLASHINFER", "triton": "TRITON_ATTN"}
    yield Found("attention_backend", {"name": plain.get(name.lower(), name), "role": role})


def _capture(line: Line, _: Following, __: State) -> Iterator[Found]:
    found = re.search(
        r"Capturing CUDA graphs?(?: ?shapes)? ?(\([^)]{0,80}\))?:? {0,8}(?:\d{1,3}%\|[^|"
        r"]{0,400}\| ?(\d{1,6})/(\d{1,6}))?",
        line.text,
    )
    if found:
        values: dict[str, Value] = {"phase": (found[1] or "").strip("()") or None}
        counts = {n: int(v) if v else None for n, v in (("done", found[2]), ("total", found[3]))}
        yield Found("graph_capture", {**values, **counts})


def _memory(line: Line, _: Following, __: State) -> Iterator[Found]:
    names = (
        ("tokens", r"KV cache size: ([\d,]{1,20}) tokens"),
        ("blocks", r"GPU blocks: ([\d,]{1,20})"),
        ("concurrency", r"Maximum concurrency for [\d,]+ tokens per request: ([\d.]{1,12})x"),
    )
    values: dict[str, Value] = {}
    for name, pattern in names:
        if found := re.search(pattern, line.text):
            digits = found[1].replace(",", "").strip(".")
            values[name] = (
                (float(digits) if name == "concurrency" else int(digits)) if digits else None
            )
    if values:
        yield Found("kv_cache", {"tokens": None, "blocks": None, "concurrency": None, **values})
    if found := re.search(r"Setting attention block size to (\d{1,9}) tokens", line.text):
        yield Found("block_size", {"name": "attention", "tokens": int(found[1])})
    if found := re.search(r"max_num_batched_tokens=(\d{1,9})\b", line.text):
        values = {"name": "max_num_batched_tokens", "value": int(found[1]), "origin": "effective"}
        yield Found("engine_argument", values)


PARSERS = (
    Parser(("version 0.", "version 1.", "version  ", "API server version"), _banner),
    Parser(("non-default args",), _given),
    Parser(("LLM engine (",), _init),
    Parser(("max model len",), _length),
    Parser(
        (
            "Resolved architecture",
            "synchronous scheduling",
            "V2 Model Runner",
            "V1 model runner",
            "Mamba cache mode",
            "Selected ",
            "Starting to load model",
            "Enforce eager",
            "Cudagraph is disabled",
            "cudagraph_mode",
        ),
        _simple,
    ),
    Parser((" backend", "GDN prefill kernel"), _backend),
    Parser(("Capturing CUDA graph",), _capture),
    Parser(
        (
            "KV cache size",
            "GPU blocks",
            "Maximum concurrency for",
            "attention block size",
            "Chunked prefill is enabled",
        ),
        _memory,
    ),
)
