"""Machines and libraries: `collect_env`, `nvidia-smi`, `pip freeze`, wheel names, system lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..facts import Value
from .line import Following, Found, Line, Parser, State
from .patterns import lazily

_NUMBER = r"(\d{1,4}(?:\.\d{1,6}){1,3}[\w.+\-]{0,40})"
# collect_env's label → library
_LABELS = (
    ("vLLM Version", "vllm"),
    ("PyTorch version", "torch"),
    ("CUDA used to build PyTorch", "cuda_of_torch"),
    ("CUDA runtime version", "cuda"),
    ("Nvidia driver version", "driver"),
    ("cuDNN version", "cudnn"),
    ("Python version", "python"),
    ("Driver Version", "driver"),
    ("CUDA Version", "cuda_of_driver"),
)
_DISTRIBUTIONS = {
    "torch": "torch",
    "triton": "triton",
    "flashinfer-python": "flashinfer",
    "flashinfer_python": "flashinfer",
    "flashinfer-cubin": "flashinfer-cubin",
    "flashinfer-jit-cache": "flashinfer-jit-cache",
    "flashinfer": "flashinfer",
    "flash-attn": "flash-attn",
    "vllm": "vllm",
    "sglang": "sglang",
    "nvidia-nccl-cu12": "nccl",
    "nvidia-nccl-cu13": "nccl",
    "nvidia-cudnn-cu12": "cudnn",
    "nvidia-cudnn-cu13": "cudnn",
    "nvidia-cublas-cu12": "cublas",
    "nvidia-cublas": "cublas",
    "transformers": "transformers",
    "compressed-tensors": "compressed-tensors",
    "tensorrt-llm": "tensorrt-llm",
    "tensorrt_llm": "tensorrt-llm",
}
_LISTED = lazily(
    r"(?:^|\s|\[pip3\] |\[conda\] )(?P<name>" + "|".join(map(re.escape, _DISTRIBUTIONS)) + r")"
    r"(?:==|@| {1,60}|: ?|=)v?(?P<version>\d{1,4}\.\d{1,4}[\w.+!]{0,60})(?=$|[\s,;)\]|])"
)
_WHEEL = lazily(
    r"\b(?P<name>vllm|flashinfer_python|torch|sglang)-(?P<version>\d[\w.+!]{2,80})-cp\d"
)
_GPU = lazily(
    r"\b(?:GPU (?P<index>\d{1,3}): )?(?P<name>(?:NVIDIA )?(?:GeForce |RTX |Tesla |"
    r"Quadro |TITAN |DGX |GB\d|"
    r"[ABHLVT]\d{1,3}|PG\d|Graphics)[\w \-/]{0,40}?)(?= ?(?:\(UUID|,|;|\||$|\.\s|\.$|  |\)))"
)
_CAPABILITY = lazily(r"(?:sm_|compute capability:? ?\(?)(\d{1,2}[._, ]{0,2}\d[a-f]?)\b")
# A product where a sentence goes on behind it.
_IN_SENTENCE = lazily(
    r"(?:NVIDIA )?(?:GeForce )?(?:RTX (?:PRO |A)?\d{4}(?: Ti| SUPER)?|"
    r"\b(?:H100|H200|H20|H800|A100|A800|B200|B300|GB10|GB200|GB300|L40S?|A10G?|A40)\b)"
)
_PRODUCT = lazily(
    r"RTX ?(?:PRO |A)?\d{4}|GB\d{1,3}\b|\b[ABHL]\d{2,3}[A-Z]{0,3}\b|Tesla|\bT4\b|\bV100|TITAN|Spark"
)


def _label(line: Line, _: Following, __: State) -> Iterator[Found]:
    for label, name in _LABELS:
        at = line.text.find(label)
        if at < 0:
            continue
        found = re.match(
            rf"\s{{0,40}}:?\s{{0,4}}(?:\(.{{0,40}}?\) )?v?{_NUMBER}", line.text[at + len(label) :]
        )
        if found is None:
            continue
        if name == "vllm":
            yield from _engine("vllm", found[1], "collect_env")
        else:
            yield Found("library", {"name": name, "version": found[1]})


def _listed(line: Line, _: Following, __: State) -> Iterator[Found]:
    for found in _LISTED.finditer(line.text[:2000]):
        name = _DISTRIBUTIONS[found["name"]]
        if name in ("vllm", "sglang", "tensorrt-llm"):
            yield from _engine(name, found["version"], "wheel")
        else:
            yield Found("library", {"name": name, "version": found["version"]})
    for found in _WHEEL.finditer(line.text[:2000]):
        if found["name"] in ("vllm", "sglang"):
            yield from _engine(found["name"], found["version"], "wheel")
        else:
            name = _DISTRIBUTIONS[found["name"]]
            yield Found("library", {"name": name, "version": found["version"]})


def _engine(name: str, version: str, origin: str) -> Iterator[Found]:
    commit = re.search(r"\+g([0-9a-f]{7,40})", version)
    values: dict[str, Value] = {"name": name, "version": version, "origin": origin}
    yield Found("engine", {**values, "commit": commit[1] if commit else None})


def _gpu(line: Line, _: Following, __: State) -> Iterator[Found]:
    text = line.text[:2000]
    named = [found for found in _GPU.finditer(text) if _PRODUCT.search(found["name"])]
    for found in named:
        index = int(found["index"]) if found["index"] else None
        yield _card(found["name"].strip(), index, text[: found.start()])
    if not named and (found_ := _IN_SENTENCE.search(text)):
        yield _card(found_[0], None, text[: found_.start()])
    if capability := _CAPABILITY.search(text):
        digits = re.sub(r"[^\da-f]", "", capability[1])
        if len(digits) >= 2 and 50 <= int(re.sub(r"\D", "", digits)) <= 130:
            values: dict[str, Value] = {
                "name": None,
                "index": None,
                "capability": f"sm_{digits}",
                "count": None,
            }
            yield Found("gpu", values)


def _card(name: str, index: int | None, before: str) -> Found:
    count = re.search(r"(\d{1,3}) ?[x×] ?$", before)
    values: dict[str, Value] = {"name": name, "index": index, "capability": None}
    return Found("gpu", {**values, "count": int(count[1]) if count else None})


def _system(line: Line, _: Following, __: State) -> Iterator[Found]:
    system = "WSL" if re.search(r"WSL ?2?\b|microsoft-standard", line.text) else "gVisor"
    yield Found("host", {"name": line.prefix.host, "system": system})


PARSERS = (
    Parser(tuple(label for label, _ in _LABELS), _label),
    Parser(
        (
            "torch==",
            "triton==",
            "flashinfer",
            "vllm==",
            "[pip3]",
            "[conda]",
            "-cp3",
            "nccl-cu",
            "vllm-0.",
        ),
        _listed,
    ),
    Parser(
        (
            "H100",
            "H200",
            "A100",
            "B200",
            "GB10",
            "NVIDIA ",
            "RTX ",
            "sm_1",
            "sm_8",
            "sm_9",
            "compute capability",
        ),
        _gpu,
    ),
    Parser(("WSL", "microsoft-standard", "gVisor"), _system),
)
