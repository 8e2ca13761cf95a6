"""The depth of a name; what each needs is loaded when it is asked for, and not before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..escape import quoted
from .depth import Depth, Told

if TYPE_CHECKING:
    from .environments.environment import Package

DEPTHS = ("source", "kernel", "engine")


def depth_of(
    name: str,
    *,
    python: Path | None = None,
    model: Path | None = None,
    controls: bool = False,
    inject: str | None = None,
    collect: bool = False,
    cache: Path | None = None,
    package: Package | None = None,
    told: Told = lambda line: None,
) -> Depth:
    """The depth of a name. UsageError for a name that is none, and for an option of another depth.

    `python` is taken by an engine; the other depths are given builds in which it was asked already.
    `package`: whose versions an engine is, None for what suits this machine.
    """
    if name == "engine":
        from .engine.depth import EngineDepth
        from .engine.injection import injection
        from .engine.places import Given
        from .environments.session import Environments

        environments = Environments(package=package, told=told)
        place = environments if python is None else Given(environments, python)
        changed = injection(inject) if inject else None
        return EngineDepth(place, model=model, controls=controls, inject=changed, collect=collect)
    for option, given in (("--model", model), ("--controls", controls), ("--inject", inject)):
        if given:
            raise UsageError(f"{option} is for an engine that runs", hint="--depth engine")
    if name == "source":
        from .source_depth import SourceDepth

        return SourceDepth()
    if name == "kernel":
        from .kernel.depth import KernelDepth

        return KernelDepth(cache)
    raise UsageError(f"unknown depth {quoted(name)}; there is {', '.join(DEPTHS)}")
