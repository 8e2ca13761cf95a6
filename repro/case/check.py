"""The `check:` part of a case file: its defects, as facts about code and the settings they need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, Strict

from ..check import exposure
from ..check.defects import Defect, Route
from ..check.kernel.probes import PROBES as KERNEL_PROBES
from ..check.probes import PROBES, load
from ..escape import quoted
from ..scenarios.declare import nearest
from . import engine, kernel
from .engine import EnginePart
from .kernel import KernelRoutePart
from .source import Place, Problem
from .values import CaseId, Line, OneOrMore, ScalarValue, texts

_PROBES: Any = {"enum": list(PROBES)}
_SETTINGS: Any = {"enum": list(exposure.SETTINGS)}


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class RoutePart(_Part):
    """One way in which a defect acts."""

    code: dict[str, OneOrMore] = Field(
        min_length=1,
        json_schema_extra={"propertyNames": _PROBES},
        description="probe → value or list of values; all must hold",
    )
    settings: dict[str, ScalarValue] = Field(
        default_factory=dict,
        json_schema_extra={"propertyNames": _SETTINGS},
        description="setting of the engine → value; a number is the least that is needed",
    )


class DefectPart(_Part):
    """One code fault of a build."""

    says: Line = Field(description="what is wrong, in one line")
    acts: Annotated[tuple[RoutePart, ...], Strict(False)] = Field(
        description="ways in which it acts; one is enough", min_length=1
    )
    kernel: Annotated[tuple[KernelRoutePart, ...], Strict(False)] = Field(
        (), description="the same as the kernels of a build show it (depth kernel)"
    )
    latent: bool = Field(
        False, description="no supported settings are known in which it acts: shown, not counted"
    )
    no_engine: Line | None = Field(
        None, description="why no experiment on an engine can answer it (depth engine)"
    )


class CheckPart(_Part):
    """What `check` looks for in a build of the engine."""

    defects: dict[CaseId, DefectPart] = Field(
        description="name → a code fault of a build", min_length=1
    )
    also: Annotated[tuple[str, ...], Strict(False)] = Field(
        (),
        json_schema_extra={"items": {"type": "string", "enum": [*PROBES, *KERNEL_PROBES]}},
        description="probes whose answers are shown and decide nothing",
    )
    engine: EnginePart | None = Field(None, description="an experiment on a whole engine")

    def records(self) -> tuple[Defect, ...]:
        """The defects as `check` judges them."""
        return tuple(
            Defect(
                name,
                part.says,
                tuple(map(_route, part.acts)),
                part.latent,
                tuple(one.route() for one in part.kernel),
                part.no_engine or "",
            )
            for name, part in self.defects.items()
        )


def _route(part: RoutePart) -> Route:
    settings = {n: v for n, v in part.settings.items() if isinstance(v, str | int)}
    return Route({probe: texts(values) for probe, values in part.code.items()}, settings)


def problems(part: CheckPart) -> Iterator[Problem]:
    """Unknown probes, answers that a probe cannot give, settings there are not."""
    known = dict.fromkeys(PROBES)
    for name, defect in part.defects.items():
        for index, route in enumerate(defect.acts):
            place: Place = ("check", "defects", name, "acts", index)
            yield from _code((*place, "code"), route.code, known)
            yield from _settings((*place, "settings"), route.settings)
        for index, shown in enumerate(defect.kernel):
            place = ("check", "defects", name, "kernel", index)
            yield from kernel.problems(place, shown)
            yield from _code((*place, "code"), shown.code, known)
            yield from _settings((*place, "settings"), shown.settings)
    shown_too = {**known, **dict.fromkeys(KERNEL_PROBES)}
    for index, probe in enumerate(part.also):
        if probe not in shown_too:
            yield _unknown(("check", "also", index), probe, shown_too)
    if part.engine is not None:
        yield from engine.problems(part.engine, part.defects)


def _settings(place: Place, settings: Mapping[str, object]) -> Iterator[Problem]:
    for setting, value in settings.items():
        if message := exposure.refusal(setting, value):
            known = setting in exposure.SETTINGS
            hint = None if known else nearest(setting, exposure.SETTINGS)
            yield Problem((*place, setting), message, hint)


def _unknown(place: Place, probe: str, known: Mapping[str, object]) -> Problem:
    return Problem(place, f"unknown probe {quoted(probe)}", nearest(probe, known))


def _code(
    place: Place, code: Mapping[str, object], known: Mapping[str, object]
) -> Iterator[Problem]:
    for probe, values in code.items():
        if probe not in known:
            yield _unknown((*place, probe), probe, known)
            continue
        allowed = load(probe).values
        for value in texts(values):
            if value not in allowed:
                message = f"{probe} answers {', '.join(allowed)}; not {quoted(value)}"
                yield Problem((*place, probe), message, nearest(value, allowed))
