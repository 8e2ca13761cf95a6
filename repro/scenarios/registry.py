"""The scenarios by name. Nothing of a scenario is imported before it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import cast

from ..errors import UsageError
from ..escape import quoted
from .declare import Declaration, nearest

# name → module, relative to this package
SCENARIOS: Mapping[str, str] = {
    "mtp_tail": ".mtp_tail",
    "draft_gate": ".draft_gate",
    "plan_race": ".plan_race",
    "stale_metadata": ".stale_metadata",
    "gdn_pipeline": ".gdn_pipeline",
}


def load(name: str) -> ModuleType:
    """The module of scenario `name`, imported now; UsageError for an unknown name."""
    return import_module(_module(name), __package__)


def declaration(name: str) -> Declaration:
    """What case files may say about scenario `name`; UsageError for an unknown name.

    A scenario whose module is costly to import declares in a sibling, `<module>_declaration`.
    """
    sibling = f"{_module(name)}_declaration"
    if find_spec(sibling, __package__) is not None:
        return cast(Declaration, import_module(sibling, __package__))
    return cast(Declaration, load(name))


def _module(name: str) -> str:
    if name not in SCENARIOS:
        raise UsageError(
            f"unknown scenario {quoted(name)}; known are {', '.join(SCENARIOS)}",
            hint=nearest(name, SCENARIOS),
        )
    return SCENARIOS[name]


class Declarations(Mapping[str, Declaration]):
    """Every scenario's declaration by name, imported when it is read."""

    def __getitem__(self, name: str) -> Declaration:
        if name not in SCENARIOS:
            raise KeyError(name)
        return declaration(name)

    def __iter__(self) -> Iterator[str]:
        return iter(SCENARIOS)

    def __len__(self) -> int:
        return len(SCENARIOS)
