"""SGLang, TensorRT-LLM and llama.cpp: which engine it is, and its settings."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..facts import Value
from .line import Following, Found, Line, Parser, State, joined
from .reprs import keywords
from .settings import settings


def _engine(name: str, version: str, commit: str | None, origin: str) -> Found:
    values: dict[str, Value] = {"name": name, "version": version, "origin": origin}
    return Found("engine", {**values, "commit": commit})


def _sglang(line: Line, following: Following, state: State) -> Iterator[Found]:
    found = re.search(r"server_args=ServerArgs\(", line.text)
    if found:
        state.session += bool(state.announced)
        state.announced = True
        yield _engine("sglang", "", None, "init")
        text = joined(line, following, 4)
        yield from settings(keywords(text[found.end() :]), "effective")
    if found := re.search(r"sglang(?:[ =:]{1,3}|-)v?(\d\.\d[\w.]{0,30})", line.text):
        yield _engine("sglang", found[1], None, "collect_env")


def _tensorrt(line: Line, _: Following, __: State) -> Iterator[Found]:
    found = re.search(
        r"TensorRT[- ]LLM version: ?v?([\d.]{3,20}[\w.]{0,20})|TensorRT-LLM\]?\[?.{0,20}"
        r"version (\d[\w.]{2,30})",
        line.text,
    )
    version = (found[1] or found[2]) if found else ""
    yield _engine("tensorrt-llm", version, None, "banner")


def _ggml(line: Line, _: Following, __: State) -> Iterator[Found]:
    text = line.text
    if found := re.search(r"build: (\d{1,6}) \(([0-9a-f]{7,40})\)", text):
        yield _engine("llama.cpp", f"b{found[1]}", found[2], "banner")
    elif "ggml-cuda" in text or "llama_" in text:
        yield _engine("llama.cpp", "", None, "frame")
    if found := re.search(
        r"Device (\d{1,3}): ([^,]{3,80}), compute capability (\d{1,2}\.\d)", text
    ):
        digits = found[3].replace(".", "")
        yield Found(
            "gpu",
            {
                "name": found[2],
                "index": int(found[1]),
                "capability": f"sm_{digits}",
                "count": None,
            },
        )


PARSERS = (
    Parser(("ServerArgs(", "sglang "), _sglang),
    Parser(("TensorRT-LLM version", "TensorRT LLM version", "[TRT-LLM] [I] Starting"), _tensorrt),
    Parser(("ggml-cuda", "build: ", "llama_model_load", "compute capability"), _ggml),
)
