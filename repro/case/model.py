"""What a case file may hold. `specrepro schema` prints it; docs/writing-a-case.md explains it.

The models check shape and types. What a file says about its scenario (names of parameters, ranges,
contradictions) is checked in rules.py, against what the scenario declares.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, Strict, model_validator
from pydantic_core import PydanticCustomError

from ..records import Cause, Kind, Scalar
from ..scenarios.registry import SCENARIOS
from .check import CheckPart
from .values import (
    CaseId,
    Driver,
    FaultClass,
    GpuTypes,
    Identifier,
    LaneName,
    Line,
    Memory,
    OneOrMore,
    Release,
    ScalarValue,
    Sweep,
    Text,
    Url,
)


class Record(BaseModel):
    """Frozen, and strict: no unknown keys, no conversion between types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ExpectedFinding(Record):
    """The finding that must be seen. What is left out may be anything."""

    kind: Annotated[Kind, Strict(False)] = Field(description="kind of finding")
    op: Identifier | None = Field(None, description="op whose launch shows it")
    tensor: Identifier | None = Field(None, description="tensor that is touched or wrong")
    first_element: int | None = Field(None, description="first flat element of the finding")
    request: int | None = Field(None, description="request to blame, counted from 0")
    step: int | None = Field(None, description="engine step in which it happens, from 0")


class Expectation(Record):
    """What must be seen of one variant, at the points that `when` selects."""

    variant: str = Field(description="a name under `variants`")
    when: dict[str, OneOrMore] = Field(
        default_factory=dict,
        description="parameter → value or list of values; left out: at every point",
    )
    finding: ExpectedFinding | None = Field(None, description="the finding that must be seen")
    clean: Literal[True] | None = Field(
        None, description="true: no finding, and every request served; instead of `finding`"
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Expectation:
        if (self.finding is None) == (self.clean is None):
            raise PydanticCustomError("either", "must have either `finding` or `clean: true`")
        return self

    def applies(self, point: Mapping[str, Scalar]) -> bool:
        """Whether `point` (every parameter by name) is one that `when` selects."""
        for name, wanted in self.when.items():
            values = wanted if isinstance(wanted, tuple) else (wanted,)
            # true is not 1 here, although Python says so
            if not any(
                point[name] == value and isinstance(point[name], bool) is isinstance(value, bool)
                for value in values
            ):
                return False
        return True


class Reported(Record):
    """What came of an experiment."""

    outcome: Literal["illegal_access", "wrong_output", "right"] = Field(
        description="illegal access, wrong output, or the right one"
    )
    stage: int | None = Field(None, ge=0, description="stage that faulted first, from 0")


class Facts(Record):
    """What the report says besides its experiments; it rules a hypothesis out without a run."""

    fails_in: Release = Field(description="newest release that was seen to fail")
    cache_hit: bool = Field(description="whether the failing request hit the prefix cache")
    runners: Annotated[tuple[Literal["v1", "v2"], ...], Strict(False)] = Field(
        description="model runners that fail", min_length=1
    )


class Control(Record):
    """An experiment on the engine: one that was reported, or one to propose."""

    id: Identifier = Field(description="its short name in the matrix")
    title: Line = Field(description="what is done, in one line")
    sets: dict[str, ScalarValue] | None = Field(
        None, description="parameter → value that stands for it in the scenario"
    )
    reported: Reported | None = Field(None, description="what came of it; left out: not tried yet")
    facts: Facts | None = Field(None, description="facts of the report, instead of `sets`")
    levers: Annotated[tuple[Line, ...], Strict(False)] = Field(
        (), description="what was changed at once, where that was more than one thing"
    )
    command: Line | None = Field(None, description="how to try it on the engine")
    minutes: int = Field(10, ge=1, le=100_000, description="what trying it costs")

    @model_validator(mode="after")
    def _one_of_both(self) -> Control:
        if (self.sets is None) == (self.facts is None):
            raise PydanticCustomError("either", "must have either `sets` or `facts`")
        if self.sets is not None and self.reported is None and self.command is None:
            raise PydanticCustomError("either", "must have `reported`, or the `command` to try it")
        return self


class Hypothesis(Record):
    """A fault model that may be the cause. Its variant is run under every control."""

    variant: str = Field(description="a name under `variants`")
    title: Line = Field(description="what is wrong, in one line")
    needs: Line | None = Field(None, description="what must be the case for it to act")
    needs_hit: bool = Field(False, description="it acts after a prefix-cache hit only")
    fixed_in: Release | None = Field(None, description="first release without it")
    runner: Literal["v1", "v2"] | None = Field(None, description="the only runner that has it")


class Requires(Record):
    """What a GPU must be for the trials of the case. Lanes without a device take no notice."""

    gpu: GpuTypes = Field(
        (), description="type of GPU, a word of its name such as H100, or several"
    )
    gpus: int = Field(1, ge=1, le=16, description="how many a trial holds for itself")
    free_memory: Memory | None = Field(None, description="free on each of them, such as 40 GiB")
    driver: Driver | None = Field(None, description="version of the driver, such as >=570")

    @property
    def free_bytes(self) -> int:
        """Bytes that must be free, 0 where the case does not say."""
        if self.free_memory is None:
            return 0
        unit = self.free_memory[-3:]
        return int(float(self.free_memory[:-3]) * (1 << {"MiB": 20, "GiB": 30}[unit]))


class Case(Record):
    """One reported fault: how to bring it about, and what must be seen."""

    schema_version: Literal[1] = Field(alias="schema", description="version of this schema: 1")
    id: CaseId = Field(description="name of the case, and of its file")
    title: Line = Field(description="what happens, in one line")
    report: Url = Field(description="address of the upstream report")
    claim: Text = Field(description="what the report says the cause is")
    cause: Annotated[Cause, Strict(False)] = Field(
        description="how far the upstream cause is settled"
    )
    fault_class: FaultClass = Field(
        alias="class", description="fault class whose signature `diagnose` uses"
    )
    scenario: str = Field(
        json_schema_extra={"enum": list(SCENARIOS)},
        description="program that replays the steps of the engine",
    )
    params: dict[str, ScalarValue] = Field(
        default_factory=dict,
        description="parameter → value at the named point; the scenario's default if left out",
    )
    sweep: dict[str, Sweep] = Field(
        default_factory=dict,
        description='parameter → "first..last" (both included) or a list; for --sweep',
    )
    variants: dict[Identifier, dict[str, ScalarValue]] = Field(
        description="name → settings of the scenario, the faulty way and the fixes", min_length=2
    )
    expect: Annotated[tuple[Expectation, ...], Strict(False)] = Field(
        description="what must be seen of every variant that is no hypothesis", min_length=1
    )
    lanes: Annotated[tuple[LaneName, ...], Strict(False)] = Field(
        description="ways to execute it", min_length=1
    )
    requires: Requires | None = Field(None, description="what a GPU must be for its GPU lanes")
    owners: dict[str, str] = Field(
        default_factory=dict, description="tensor → unit of it that belongs to one request"
    )
    controls: Annotated[tuple[Control, ...], Strict(False)] = Field(
        (), description="experiments, reported ones with their outcomes"
    )
    hypotheses: Annotated[tuple[Hypothesis, ...], Strict(False)] = Field(
        (), description="fault models, each run under every control"
    )
    protocol: Annotated[tuple[Line, ...], Strict(False)] = Field(
        (), description="how a healthy engine is told from a faulty one, step by step"
    )
    check: CheckPart | None = Field(None, description="defects that `check` looks for in a build")
