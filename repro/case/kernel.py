"""What a case says of the kernels of a build: `kernel:` of a defect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ..check.defects import Route
from ..check.kernel.probes import PROBES, load
from ..check.probes import PROBES as SOURCE_PROBES
from ..escape import quoted
from ..scenarios.declare import nearest
from .source import Place, Problem
from .values import OneOrMore, ScalarValue, texts

_KERNELS: Any = {"enum": list(PROBES)}
_SOURCES: Any = {"enum": list(SOURCE_PROBES)}


class KernelRoutePart(BaseModel):
    """One way in which a defect acts, as the kernels of a build show it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    runs: dict[str, OneOrMore] = Field(
        min_length=1,
        json_schema_extra={"propertyNames": _KERNELS},
        description="probe of a kernel → value or list of values; all must hold",
    )
    code: dict[str, OneOrMore] = Field(
        default_factory=dict,
        json_schema_extra={"propertyNames": _SOURCES},
        description="probe of the host code that decides how the kernel is reached → value or list",
    )
    settings: dict[str, ScalarValue] = Field(
        default_factory=dict,
        description="setting of the engine → value; a number is the least that is needed",
    )

    def route(self) -> Route:
        """It as `check` judges it."""
        settings = {n: v for n, v in self.settings.items() if isinstance(v, str | int)}
        facts = {**self.code, **self.runs}
        return Route({probe: texts(values) for probe, values in facts.items()}, settings)


def problems(place: Place, route: KernelRoutePart) -> Iterator[Problem]:
    """Unknown probes of kernels, and answers that one cannot give."""
    known: Mapping[str, object] = dict.fromkeys(PROBES)
    for probe, values in route.runs.items():
        if probe not in known:
            where = (*place, "runs", probe)
            yield Problem(where, f"unknown probe {quoted(probe)}", nearest(probe, known))
            continue
        allowed = load(probe).values
        for value in texts(values):
            if value not in allowed:
                message = f"{probe} answers {', '.join(allowed)}; not {quoted(value)}"
                yield Problem((*place, "runs", probe), message, nearest(value, allowed))
