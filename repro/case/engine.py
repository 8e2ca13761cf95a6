"""The `check: engine:` part of a case file: an experiment on a whole engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, Strict

from ..check import exposure
from ..check.engine.declare import (
    ARGUMENTS,
    CHANGES,
    FAMILIES,
    ORACLES,
    OVERRIDES,
    SIGNS,
    Checkpoint,
    Control,
    EngineSpec,
)
from ..escape import quoted
from ..records import Scalar
from ..scenarios.declare import Parameter, nearest
from .source import Place, Problem
from .values import CaseId, Identifier, Line, PlainMapping, ScalarValue

PLACE: Place = ("check", "engine")
_SETTINGS: Any = {"enum": list(exposure.SETTINGS)}


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class CheckpointPart(_Part):
    """The tiny model that is made for the experiment."""

    family: str = Field(
        json_schema_extra={"enum": list(FAMILIES)}, description="architecture of the model"
    )
    kind: str = Field(description="what the model is made to notice")
    length: int = Field(
        ge=3, le=1 << 22, description="its `max_position_embeddings`; of a hybrid, its layers"
    )


class ControlPart(_Part):
    """An experiment that shows whether the oracle can be trusted."""

    id: Identifier = Field(description="its short name")
    title: Line = Field(description="what is done, in one line")
    settings: dict[str, ScalarValue] = Field(
        json_schema_extra={"propertyNames": _SETTINGS},
        description="setting → value, over those of the first defect; `k: 0` is no speculation",
    )
    expect: str = Field(
        json_schema_extra={"enum": list(SIGNS)},
        description="whether the signature of the case must be there",
    )
    change: str = Field(
        "",
        json_schema_extra={"enum": ["", *CHANGES]},
        description="a change to the engine that is made on purpose, and named in the answer",
    )
    served: bool = Field(False, description="asked over HTTP, behind the engine's own server")
    models: dict[str, ScalarValue] = Field(
        default_factory=dict,
        description="parameter of the scenario → value: the point that stands for the experiment",
    )


class ExperimentPart(_Part):
    """An experiment on a whole engine, with the oracle that judges it."""

    oracle: str = Field(
        json_schema_extra={"enum": list(ORACLES)}, description="what is measured and judged"
    )
    checkpoint: CheckpointPart | None = Field(
        None, description="the model; left out: the user names one with --model"
    )
    arguments: dict[str, ScalarValue] = Field(
        default_factory=dict,
        json_schema_extra={"propertyNames": {"enum": list(ARGUMENTS)}},
        description="argument of the engine → value",
    )
    k: int = Field(ge=0, le=16, description="num_speculative_tokens")
    overrides: PlainMapping = Field(
        default_factory=dict,
        json_schema_extra={"propertyNames": {"enum": list(OVERRIDES)}},
        description="what `--hf-overrides` is given",
    )
    requests: dict[str, int] = Field(
        default_factory=dict, description="number of the oracle → value"
    )
    defects: dict[CaseId, dict[str, ScalarValue]] = Field(
        default_factory=dict,
        description="defect that the experiment decides → settings in which it is looked for",
    )
    controls: Annotated[tuple[ControlPart, ...], Strict(False)] = Field(
        (), description="experiments of `--controls`"
    )
    models: dict[str, ScalarValue] = Field(
        default_factory=dict,
        description="parameter of the scenario → value: the point that stands for what decides",
    )

    def record(self) -> EngineSpec:
        """The experiment as `check` plays it."""
        checkpoint = self.checkpoint
        return EngineSpec(
            self.oracle,
            Checkpoint(checkpoint.family, checkpoint.kind, checkpoint.length)
            if checkpoint
            else None,
            dict(self.arguments),
            self.k,
            dict(self.overrides),
            dict(self.requests),
            {name: _settings(given) for name, given in self.defects.items()},
            tuple(
                Control(
                    c.id,
                    c.title,
                    _settings(c.settings),
                    c.expect,
                    c.change,
                    c.served,
                    dict(c.models),
                )
                for c in self.controls
            ),
            models=dict(self.models),
        )


class EnginePart(ExperimentPart):
    """The experiment of a case on a whole engine, and others that take another oracle."""

    also: Annotated[tuple[ExperimentPart, ...], Strict(False)] = Field(
        (), description="further experiments, each with an oracle of its own"
    )

    def record(self) -> EngineSpec:
        return replace(super().record(), also=tuple(part.record() for part in self.also))


def _settings(given: Mapping[str, Scalar]) -> dict[str, exposure.Value]:
    return {name: value for name, value in given.items() if isinstance(value, str | int)}


def problems(part: EnginePart, defects: Mapping[str, object]) -> Iterator[Problem]:
    """Names that there are not, and values that they cannot have."""
    decided: set[str] = set()
    controls: set[str] = set()
    parts: list[tuple[Place, ExperimentPart]] = [(PLACE, part)]
    parts += [((*PLACE, "also", index), one) for index, one in enumerate(part.also)]
    for where, one in parts:
        yield from _experiment(where, one, defects)
        for name in one.defects:
            if name in decided:
                message = "is decided by another experiment already"
                yield Problem((*where, "defects", name), f"{quoted(name)} {message}")
            decided.add(name)
        for index, control in enumerate(one.controls):
            if control.id in controls:
                place: Place = (*where, "controls", index, "id")
                yield Problem(place, f"{quoted(control.id)} stands here for a second time")
            controls.add(control.id)


def points(part: EnginePart) -> Iterator[tuple[Place, Mapping[str, Scalar]]]:
    """The points of the scenario that stand for experiments, and where they are said."""
    parts: list[tuple[Place, ExperimentPart]] = [(PLACE, part)]
    parts += [((*PLACE, "also", index), one) for index, one in enumerate(part.also)]
    for where, one in parts:
        yield (*where, "models"), one.models
        for index, control in enumerate(one.controls):
            yield (*where, "controls", index, "models"), control.models


def _experiment(
    where: Place, part: ExperimentPart, defects: Mapping[str, object]
) -> Iterator[Problem]:
    if part.oracle not in ORACLES:
        yield _unknown((*where, "oracle"), "oracle", part.oracle, ORACLES)
        return
    yield from _values((*where, "arguments"), part.arguments, ARGUMENTS, "argument")
    for name in ORACLES[part.oracle].needs:
        if name not in part.arguments:
            yield Problem((*where, "arguments"), f"oracle {part.oracle} needs {name}")
    numbers = ORACLES[part.oracle].numbers
    yield from _values((*where, "requests"), part.requests, numbers, f"number of {part.oracle}")
    for name in part.overrides:
        if name not in OVERRIDES:
            known = dict.fromkeys(OVERRIDES)
            yield _unknown((*where, "overrides", name), "override", name, known)
    yield from _checkpoint(where, part.checkpoint)
    for name, settings in part.defects.items():
        place: Place = (*where, "defects", name)
        if name not in defects:
            yield _unknown(place, "defect", name, defects)
        yield from _named(place, settings, part.oracle, least=1)
    if not part.defects and not part.controls:
        yield Problem(where, "has neither `defects` to decide nor `controls` to run")
    for index, control in enumerate(part.controls):
        place = (*where, "controls", index)
        if control.expect not in SIGNS:
            message = f"must be one of {', '.join(SIGNS)}, not {quoted(control.expect)}"
            yield Problem((*place, "expect"), message, nearest(control.expect, SIGNS))
        if control.change and control.change not in CHANGES:
            yield _unknown((*place, "change"), "change", control.change, CHANGES)
        yield from _named((*place, "settings"), control.settings, part.oracle, least=0)


def _unknown(place: Place, what: str, name: str, known: Mapping[str, object]) -> Problem:
    message = f"unknown {what} {quoted(name)}; known are {', '.join(known) or 'none'}"
    return Problem(place, message, nearest(name, known))


def _values(
    place: Place, given: Mapping[str, Scalar], known: Mapping[str, Parameter], what: str
) -> Iterator[Problem]:
    for name, value in given.items():
        if name not in known:
            yield _unknown((*place, name), what, name, known)
        elif refusal := known[name].refusal(value):
            yield Problem((*place, name), *refusal)


def _checkpoint(where: Place, part: CheckpointPart | None) -> Iterator[Problem]:
    if part is None:
        return
    place: Place = (*where, "checkpoint")
    if part.family not in FAMILIES:
        yield _unknown((*place, "family"), "family", part.family, FAMILIES)
    elif part.kind not in FAMILIES[part.family]:
        kinds = dict.fromkeys(FAMILIES[part.family])
        yield _unknown((*place, "kind"), "kind", part.kind, kinds)


def _named(
    place: Place, settings: Mapping[str, Scalar], oracle: str, *, least: int
) -> Iterator[Problem]:
    """Settings that the oracle cannot bring about; `least` is the smallest k that may stand."""
    able = dict.fromkeys(("k", *ORACLES[oracle].settings))
    for name, value in settings.items():
        if name not in able:
            yield _unknown((*place, name), f"setting for {oracle}", name, able)
        elif name == "k":
            if refusal := Parameter(1, int, low=least, high=16).refusal(value):
                yield Problem((*place, name), *refusal)
        elif message := exposure.refusal(name, value):
            yield Problem((*place, name), message)
