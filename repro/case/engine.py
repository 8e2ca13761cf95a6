"""The `check: engine:` part of a case file: an experiment on a whole engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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


class EnginePart(_Part):
    """An experiment on a whole engine."""

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
                Control(c.id, c.title, _settings(c.settings), c.expect, c.change, c.served)
                for c in self.controls
            ),
        )


def _settings(given: Mapping[str, Scalar]) -> dict[str, exposure.Value]:
    return {name: value for name, value in given.items() if isinstance(value, str | int)}


def problems(part: EnginePart, defects: Mapping[str, object]) -> Iterator[Problem]:
    """Names that there are not, and values that they cannot have."""
    if part.oracle not in ORACLES:
        yield _unknown((*PLACE, "oracle"), "oracle", part.oracle, ORACLES)
        return
    yield from _values((*PLACE, "arguments"), part.arguments, ARGUMENTS, "argument")
    numbers = ORACLES[part.oracle].numbers
    yield from _values((*PLACE, "requests"), part.requests, numbers, f"number of {part.oracle}")
    for name in part.overrides:
        if name not in OVERRIDES:
            known = dict.fromkeys(OVERRIDES)
            yield _unknown((*PLACE, "overrides", name), "override", name, known)
    yield from _checkpoint(part.checkpoint)
    for name, settings in part.defects.items():
        place: Place = (*PLACE, "defects", name)
        if name not in defects:
            yield _unknown(place, "defect", name, defects)
        yield from _named(place, settings, part.oracle, least=1)
    if not part.defects and not part.controls:
        yield Problem(PLACE, "has neither `defects` to decide nor `controls` to run")
    seen: set[str] = set()
    for index, control in enumerate(part.controls):
        place = (*PLACE, "controls", index)
        if control.id in seen:
            yield Problem((*place, "id"), f"{quoted(control.id)} stands here for a second time")
        seen.add(control.id)
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


def _checkpoint(part: CheckpointPart | None) -> Iterator[Problem]:
    if part is None:
        return
    place: Place = (*PLACE, "checkpoint")
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
