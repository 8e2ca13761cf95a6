"""What a release of vLLM takes where nothing is given, from `knowledge/engines.yaml`. Pure.

A default is marked as such, and never excludes a class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .conditions import version
from .situation import How, Notes


def note_defaults(notes: Notes, engines: Mapping[str, Any]) -> None:
    """Fill runner, prefix caching, async scheduling and graphs where the release decides them."""
    release = notes.first("release")
    if notes.first("engine") != "vllm" or not isinstance(release, str):
        return
    kind = {"yes": "hybrid", "no": "dense"}.get(str(notes.first("hybrid")))
    tables: list[tuple[str, Sequence[Sequence[str]] | None]] = [
        ("runner", _either(engines["runner"], kind, release)),
        ("prefix_caching", _either(engines["prefix_caching"], kind, release)),
    ]
    for name, table in tables:
        value = _at(table, release) if table else None
        notes.put(name, value, (), How.DEFAULT)
    if notes.first("spec") == "on" and _asynchronous(notes, release):
        notes.put("async", _at(engines["async_with_drafts"], release), (), How.DEFAULT)
    notes.put("eager", "no", (), How.DEFAULT)
    if notes.first("tp") and notes.first("custom_all_reduce") is None:
        notes.put("custom_all_reduce", "on", (), How.DEFAULT)


def _either(
    tables: Mapping[str, Sequence[Sequence[str]]], kind: str | None, release: str
) -> Sequence[Sequence[str]] | None:
    """The table of a kind of model; of an unknown kind, where all kinds agree."""
    if kind is not None:
        return tables[kind]
    values = {_at(table, release) for table in tables.values()}
    return next(iter(tables.values())) if len(values) == 1 else None


def _asynchronous(notes: Notes, release: str) -> bool:
    """Whether the default is told by the release alone: pipelines and 0.16.0 decide otherwise."""
    stages = notes.first("pp")
    if isinstance(stages, (int, float)) and stages > 1:
        return False
    return version(release) != version("0.16.0") or notes.first("hybrid") == "no"


def _at(table: Sequence[Sequence[str]], release: str) -> str | None:
    """The value at a release; None where the model decides ("?")."""
    at = version(release)
    found = None
    for first, value in table:
        begins = version(first)
        if at is not None and begins is not None and at >= begins:
            found = value
    return None if found == "?" else found
