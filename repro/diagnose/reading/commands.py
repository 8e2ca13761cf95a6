"""Start commands: shells, `docker run`, compose files, Dockerfiles, Kubernetes manifests.

A command may go over many lines. Its options become settings; variables become `environment`;
an image's tag is the engine's version only where it looks like one.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from ..facts import Certainty
from .line import Following, Found, Line, Parser, State
from .patterns import lazily
from .reprs import flat, value_of
from .settings import canonical, settings

# What is read of one command, in characters.
LONGEST = 8192
_STARTS = (
    ("vllm serve", "vllm"),
    ("vllm.entrypoints", "vllm"),
    ("sglang.launch_server", "sglang"),
    ("sglang serve", "sglang"),
    ("trtllm-serve", "tensorrt-llm"),
    ("llama-server", "llama.cpp"),
)
_IMAGES = (("vllm/vllm-openai", "vllm"), ("lmsysorg/sglang", "sglang"))
_IMAGE = lazily(
    r"(?P<name>(?:[\w.\-]{1,80}(?::\d{1,5})?/){0,4}(?:vllm-openai|vllm|sglang|vllm-\w{1,40}))"
    r":(?P<tag>[\w.\-]{1,128})"
)
_OPTION = lazily(r"-{1,2}[A-Za-z][\w.\-]{0,80}$")
_CONTINUES = lazily(r"^\s*(?:- )?['\"]?-{1,2}[A-Za-z]|^\s*- ['\"]?[\w{\[]")
_VERSION = lazily(r"v?(\d{1,3}\.\d{1,3}(?:\.\d{1,4})?(?:(?:rc|\.post|\.dev)\d{1,6})?)")
_VARIABLES = (
    "CUDA_", "VLLM_", "NCCL_", "TORCH_", "PYTORCH_", "FLASHINFER_", "TRITON_", "SGLANG_", "TRTLLM_",
    "GGML_", "RAY_", "OMP_",
)  # fmt: skip
_VARIABLE = lazily(
    r"(?:^|[\s'\"\-;]|-e |--env[ =])(?P<name>(?:" + "|".join(_VARIABLES) + r")[A-Z0-9_]{1,60})"
    r"(?P<how>=|: )(?P<value>\"[^\"]{0,300}\"|'[^']{0,300}'|[^\s'\";\\]{0,300})"
)
_ENTRY = lazily(r"^\s*-? ?name: ['\"]?([A-Z][A-Z0-9_]{1,60})['\"]?\s*$")
_ENTRY_VALUE = lazily(r"^\s*value: (['\"]?[^\s'\"\\]{0,300}['\"]?)\s*$")
_LISTED = lazily(r"^\s*(?:export |ENV |- )?(?:name: )?")
# Options of docker, which stand before the image.
_DOCKER = frozenset(
    {
        "--gpus", "--rm", "--name", "--env", "--env-file", "--volume", "--mount", "--ipc",
        "--network", "--shm-size", "--restart", "--publish", "--runtime", "--ulimit", "--init",
        "--privileged", "--entrypoint", "--device", "--cap-add", "--security-opt", "--pull",
        "--detach",
    }
)  # fmt: skip
_HUMAN = lazily(r"(\d{1,9}(?:\.\d{1,6})?)([kKmMgG])")
_SECRET = lazily(r"TOKEN|SECRET|PASSWORD|KEY")


def _command(line: Line, following: Following, state: State) -> Iterator[Found]:
    if state.taken("command", line):
        return
    parts, last = [line.text.rstrip()], line.number
    for other in following():
        text = other.text.rstrip()
        goes_on = parts[-1].endswith(("\\", "\\n")) or _CONTINUES.match(text)
        if not goes_on or sum(map(len, parts)) > LONGEST or len(parts) > 80:
            break
        parts.append(text)
        last = other.number
    state.take("command", line, last)
    text = " ".join(part.rstrip("\\").strip() for part in parts)[:LONGEST]
    engine = next((engine for words, engine in (*_STARTS, *_IMAGES) if words in text), None)
    values, options = _options(text, state.prose)
    if engine is None and state.prose:
        # "clean with --enforce-eager" tells of an experiment, not of how the engine ran
        for name, value in flat({canonical(name): value for name, value in values.items()}):
            said = {"name": name, "value": value, "origin": "prose"}
            yield Found("engine_argument", said, certainty=Certainty.CLAIMED)
    elif options or any(words in text for words, _ in _STARTS):
        yield Found("command", {"line": text[:2000], "engine": engine}, text=text)
        yield from settings(values, "command")


def _options(text: str, prose: bool) -> tuple[dict[str, object], int]:
    words = _split(text)
    values: dict[str, object] = {}
    options, at = 0, 0
    while at < len(words):
        word = words[at].strip("\"',[]`") if not words[at].startswith(("{", "[")) else words[at]
        at += 1
        if word.endswith("serve") and at < len(words) and not words[at].startswith("-"):
            values["model"] = words[at]
            continue
        name, equals, value = word.partition("=")
        if not _OPTION.match(name) or not _known(name):
            continue
        options += 1
        # a YAML list has a dash between an option and its value
        behind = at + 1 if words[at : at + 1] == ["-"] else at
        if not equals and _is_value(words, behind, prose):
            value, equals, at = words[behind], "=", behind + 1
            value = value if value.startswith(("{", "[")) else value.strip(",")
        _put(values, name, value if equals else None)
    return values, options


def _is_value(words: list[str], at: int, prose: bool) -> bool:
    """Whether a word is the value of the option before it; in a sentence only a number is."""
    if at >= len(words) or _OPTION.match(words[at].strip("\"',`")):
        return False
    return not prose or words[at].strip("`,.;:)").isdecimal() or words[at].startswith("{")


def _known(name: str) -> bool:
    """Long options, and the short ones of engines; not those of docker and of shells."""
    if name.startswith("--"):
        return name not in _DOCKER
    return name in ("-tp", "-pp", "-dp", "-sc", "-cc", "-ngl", "-np") or name.startswith(
        ("-sc.", "-cc.", "-O.")
    )


def _put(values: dict[str, object], name: str, text: str | None) -> None:
    plain = name.lstrip("-").replace("-", "_")
    value: object = True if text is None else value_of(text) if text else ""
    if isinstance(value, str) and (found := _HUMAN.fullmatch(value)):
        # as vLLM reads them: 1k is 1000, 1K is 1024
        power = "kmg".index(found[2].lower()) + 1
        value = int(float(found[1]) * (1000 if found[2].islower() else 1024) ** power)
    if isinstance(value, bool) and plain.startswith("no_"):
        plain, value = plain.removeprefix("no_"), not value
    plain = plain.removeprefix("_")
    if plain in ("disable_cuda_graph", "enforce_eager", "eager"):
        plain = "enforce_eager"
    values[plain] = value


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=False)
    except ValueError:
        # a quotation that is cut: words, and quotes taken off
        return [word.strip("'\"") for word in text.split()]


def _image(line: Line, _: Following, __: State) -> Iterator[Found]:
    found = _IMAGE.search(line.text)
    if found is None:
        return
    yield Found("image", {"name": found["name"], "tag": found["tag"]})
    version = _VERSION.match(found["tag"])
    if version:
        name = "sglang" if "sglang" in found["name"] else "vllm"
        values = {"name": name, "version": version[1], "commit": None, "origin": "image"}
        yield Found("engine", values)


def _next(following: Following) -> str:
    return next((other.text for other in following()), "")


def _environment(line: Line, following: Following, state: State) -> Iterator[Found]:
    text = line.text
    if text.lstrip().startswith(("For debugging", "Compile with")):
        return
    if (entry := _ENTRY.match(text)) and (behind := _ENTRY_VALUE.match(_next(following))):
        # a manifest of Kubernetes has name and value on lines of their own
        text = f"{entry[1]}={behind[1]}"
    for found in _VARIABLE.finditer(text[:LONGEST]):
        name, value = found["name"], found["value"].strip("'\"")
        assigned = found["how"] == "=" or _LISTED.sub("", text).startswith(name)
        # a sentence may speak of a variable: "passing X=1", "set X=1 to …"
        if not assigned or re.search(
            r"(?:consider|passing|try|set|please)\b.{0,40}$", text[: found.start() + 1]
        ):
            continue
        if _SECRET.search(name):
            value = "***"
        if name == "CUDA_LAUNCH_BLOCKING" and value in ("1", "true") and not state.prose:
            state.blocking = True
        yield Found("environment", {"name": name, "value": value})
        if name == "VLLM_USE_V2_MODEL_RUNNER" and value in ("0", "1"):
            runner = "v2" if value == "1" else "v1"
            yield Found("runner", {"version": runner, "origin": "environment"})
        if name == "VLLM_ATTENTION_BACKEND" and value:
            yield Found("attention_backend", {"name": value.upper(), "role": "model"})


PARSERS = (
    Parser(
        (
            *(words for words, _ in _STARTS),
            "docker run",
            "podman run",
            "vllm-openai",
            "lmsysorg/sglang",
            "- --",
            "--model",
            "--max-model-len",
            "--max-num-seqs",
            "--max-num-batched-tokens",
            "--speculative-",
            "--tensor-parallel-size",
            "--kv-cache-dtype",
            "enable-prefix-caching",
            "--enforce-eager",
            "async-scheduling",
        ),
        _command,
    ),
    Parser(("vllm-openai", "vllm/vllm", "sglang:", "/vllm:"), _image),
    Parser(_VARIABLES, _environment),
)
