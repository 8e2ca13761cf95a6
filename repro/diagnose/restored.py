"""A start command: as it was given, or put together from the arguments in the log. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from .facts import Certainty, Fact, Value

# What a log hides stands for itself, and cannot be started with.
HIDDEN = "***"
SERVE = "vllm serve"
# What starts a process, with the variables before it; a list of arguments in a compose file or a
# manifest does not.
PROGRAM = re.compile(
    r"(?:[A-Za-z_]\w{0,80}=(?:'[^']{0,300}'|\"[^\"]{0,300}\"|[^\s`]{0,300}) +){0,20}(?:sudo +)?"
    r"(?:[\w./-]{0,200}/)?(?:vllm serve|python[\d.]{0,5} +-m +(?:vllm|sglang)|docker run|"
    r"podman run|sglang serve|trtllm-serve|llama-server)\b"
)


def start_command(facts: Iterable[Fact]) -> str | None:
    """The start command of an incident; None where neither it nor its arguments were seen."""
    given = list(facts)
    commands = [fact for fact in given if fact.kind == "command"]
    commands.sort(key=lambda fact: fact.certainty is Certainty.CLAIMED)
    for fact in commands:
        if command := _command(fact):
            return command
    for origin in ("given", "command"):
        told = [f for f in given if f.kind == "engine_argument" and f.get("origin") == origin]
        restored = _restored(told) if told else None
        if restored:
            return restored if origin == "given" else " ".join([*_variables(given), restored])
    return None


def _variables(facts: Iterable[Fact]) -> list[str]:
    """The variables that stand beside a list of arguments, as a shell takes them."""
    told = [f for f in facts if f.kind == "environment" and f.certainty is Certainty.OBSERVED]
    values = {str(f.get("name")): str(f.get("value") or "") for f in told}
    return [f"{name}={shlex.quote(v)}" for name, v in values.items() if v and HIDDEN not in v]


def _command(fact: Fact) -> str | None:
    """The command of a line, from its program on; of a sentence what stands between backquotes."""
    line = str(fact.get("line") or "")
    found = PROGRAM.search(line)
    if found is None or line.lstrip().startswith("- "):
        return None
    command, quote, _ = line[found.start() :].partition("`")
    if fact.certainty is Certainty.CLAIMED and not (quote and line[: found.start()].endswith("`")):
        return None if line[: found.start()].strip() else command.strip()
    return command.strip()


def _restored(facts: Iterable[Fact]) -> str | None:
    plain: dict[str, Value] = {}
    nested: dict[str, Any] = {}
    for fact in facts:
        name, _, field = str(fact.get("name")).partition(".")
        if HIDDEN in str(fact.get("value")):
            continue
        if field:
            _put(nested.setdefault(name, {}), field.split("."), fact.get("value"))
        else:
            plain[name] = fact.get("value")
    model = plain.pop("model_tag", None) or plain.get("model")
    if model is None:
        return None
    if plain.get("model") == model:
        del plain["model"]
    words = [*SERVE.split(), str(model)]
    for name, value in plain.items():
        option = name.replace("_", "-")
        if name in nested or value is None:
            continue
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        else:
            words += [f"--{option}", str(value)]
    for name, fields in nested.items():
        words += [f"--{name.replace('_', '-')}", json.dumps(fields)]
    return shlex.join(words)


def _put(into: dict[str, Any], path: Sequence[str], value: Value) -> None:
    """A value at its place in nested mappings; one that another value bars is left out."""
    for name in path[:-1]:
        inner = into.setdefault(name, {})
        if not isinstance(inner, dict):
            return
        into = inner
    into.setdefault(path[-1], value)
