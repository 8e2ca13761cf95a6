"""A start command with one lever changed, to be copied into a shell. Pure.

The command comes from a stranger's log: it is taken apart as words and put together quoted, so that
nothing of it can act on the shell that it is pasted into; what looks like a secret is left out.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .rules import Experiment

# Short forms that an engine takes for long options.
SHORT = {
    "-tp": "--tensor-parallel-size",
    "-pp": "--pipeline-parallel-size",
    "-dp": "--data-parallel-size",
    "-O": "--compilation-config",
    "-sc": "--speculative-config",
}
ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
ASSIGNMENT = re.compile(r"(?:--env=|-e)?([^=]*)(=?)(.*)", re.DOTALL)
SPECULATIVE = "speculative-config"
LONGEST = 4_000  # characters of a command; beyond them it is no start command any more
UNTOLD = "…"
REMOVED = "<removed>"  # what redacting leaves alone, and a shell takes as one word in quotes


class Command(NamedTuple):
    """A start command as words: variables before it, the program with its arguments."""

    variables: tuple[str, ...]
    words: tuple[str, ...]

    @classmethod
    def of(cls, line: str) -> Command | None:
        """The command of a line; None where it cannot be taken apart."""
        try:
            words = shlex.split(line[: LONGEST + 1].replace("\\\n", " "))
        except ValueError:
            return None
        if not words or len(line) > LONGEST or not all(w.isprintable() for w in words):
            return None
        count = 0
        while count < len(words) and ASSIGNED.match(words[count]):
            count += 1
        return cls(tuple(words[:count]), tuple(words[count:]))


def changed(command: Command | None, experiment: Experiment) -> str:
    """The line to run for an experiment; "…" stands for a start command that is not known.

    "" where nothing is started anew: only requests are sent.
    """
    if experiment.command:
        return experiment.command
    levers = (experiment.set, experiment.drop, experiment.spec, experiment.env, experiment.wrap)
    if not any(levers):
        return ""
    if command is None or not command.words:
        return _untold(experiment)
    words = list(command.words)
    for name in (*experiment.drop, *(experiment.set or {})):
        words = _without(words, name)
    for name, value in (experiment.set or {}).items():
        words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    if experiment.spec:
        words = _speculative(words, experiment.spec)
    variables, words = _environment(command, words, experiment)
    return " ".join([*variables, *_wrap(experiment), *map(shlex.quote, _safe(words))])


def _untold(experiment: Experiment) -> str:
    parts = [f"{name}={shlex.quote(str(v))}" for name, v in (experiment.env or {}).items()]
    parts += [*_wrap(experiment), UNTOLD]
    parts += [f"(without --{name})" for name in experiment.drop[:1] if not experiment.set]
    for name, value in (experiment.set or {}).items():
        parts.append(f"--{name}" if value is True else f"--{name} {shlex.quote(str(value))}")
    if experiment.spec:
        told = ", ".join(f"{name} {value}" for name, value in experiment.spec.items())
        parts.append(f"({told} in --{SPECULATIVE})")
    return " ".join(parts)


def _wrap(experiment: Experiment) -> list[str]:
    return [experiment.wrap] if experiment.wrap else []


def _option(word: str) -> str:
    """The long name of an option, without dashes; "" for a word that is none."""
    head = word.partition("=")[0]
    head = SHORT.get(head, head)
    return head[2:].replace("_", "-") if head.startswith("--") else ""


def _without(words: Sequence[str], name: str) -> list[str]:
    """The words without an option and its value; fields of it (`--name.field`) go as well."""
    kept: list[str] = []
    index = 0
    while index < len(words):
        option = _option(words[index])
        if option == name or option.startswith(f"{name}."):
            follows = index + 1 < len(words) and not words[index + 1].startswith("-")
            index += 2 if "=" not in words[index] and follows else 1
        else:
            kept.append(words[index])
            index += 1
    return kept


def _value(words: Sequence[str], name: str) -> str | None:
    for index, word in enumerate(words):
        if _option(word) == name:
            _, sign, value = word.partition("=")
            if sign:
                return value
            return words[index + 1] if index + 1 < len(words) else None
    return None


def _speculative(words: list[str], fields: Mapping[str, Any]) -> list[str]:
    """The words with fields of the speculative config changed."""
    try:
        config = json.loads(_value(words, SPECULATIVE) or "{}")
    except ValueError:
        config = {}
    if not isinstance(config, dict):
        config = {}
    config |= fields
    return [*_without(words, SPECULATIVE), f"--{SPECULATIVE}", json.dumps(config)]


def _environment(
    command: Command, words: list[str], experiment: Experiment
) -> tuple[list[str], list[str]]:
    """Variables before the command, or given to the container that it starts."""
    given = {name: str(value) for name, value in (experiment.env or {}).items()}
    kept = [word for word in _safe(command.variables) if word.partition("=")[0] not in given]
    assigned = [f"{name}={value}" for name, value in given.items()]
    if words and words[0] in ("docker", "podman") and "run" in words:
        at = words.index("run") + 1
        inside = [part for one in assigned for part in ("-e", one)]
        return [_assignment(word) for word in kept], [*words[:at], *inside, *words[at:]]
    return [_assignment(word) for word in (*kept, *assigned)], words


def _assignment(word: str) -> str:
    name, _, value = word.partition("=")
    return f"{name}={shlex.quote(value)}"


def _safe(words: Sequence[str]) -> list[str]:
    """The words with values of secrets replaced, and what has the shape of one."""
    from ..report.redact_secrets import SECRETS, secret_name

    safe: list[str] = []
    hidden = False
    for word in words:
        # `--env=NAME=VALUE` and `-eNAME=VALUE` hold an assignment
        name, sign, value = ASSIGNMENT.fullmatch(word).groups()  # type: ignore[union-attr]
        named = secret_name(name.lstrip("-"))
        if hidden and not word.startswith("-"):
            safe.append(REMOVED)
        elif named and sign and value:
            safe.append(word[: -len(value)] + REMOVED)
        else:
            for rule in SECRETS:
                word, _ = rule.apply(word)
            safe.append(word)
        hidden = named and not sign and word.startswith("-")
    return safe
