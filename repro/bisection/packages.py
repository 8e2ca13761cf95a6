"""Which packages of the other build each build at a boundary can be tried with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..check.depth import Told
from ..errors import UntestableError
from ..escape import printable
from .boundary import excluded
from .pair import Pair
from .variation import Change, Variation, Varied

if TYPE_CHECKING:
    from ..check.engine.depth import EngineDepth
    from ..check.engine.variations import Crossing, Installed


@dataclass(frozen=True, slots=True)
class Packages:
    """What can be crossed. changes: build → packages of the other one, its requirements allowing
    it; refused: build → (change, why not). versions: build → package → version there. unknown: what
    cannot be compared, in words. temporary: whether that is for the machine. same: how many have
    one version in both, where no package has another."""

    changes: Mapping[str, tuple[Change, ...]] = field(default_factory=dict)
    refused: Mapping[str, Sequence[tuple[Change, str]]] = field(default_factory=dict)
    versions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    python: str = ""
    unknown: tuple[str, ...] = ()
    temporary: bool = False
    same: int = 0

    def was(self, one: Variation) -> dict[str, str | None]:
        """The versions that a variation has others in place of."""
        here = self.versions.get(one.build, {})
        return {name: here.get(name) for name, _ in one.changes}

    def never(self, both: Pair) -> list[tuple[Variation, str]]:
        """What is not tried, since the build's own requirements exclude it; with the reason."""
        return [
            (Variation(build, build == both.bad, Varied.PACKAGES, (change,)), why)
            for build, every in self.refused.items()
            for change, why in every
        ]

    def depth(self, one: Variation, crossing: Crossing) -> EngineDepth:
        """The depth that tries a variation: all else stays as it is in the build's own environment,
        whatever is newer by now."""
        every = {**self.versions[one.build], **dict(one.changes)}
        limits = [f"{name}=={version}" for name, version in sorted(every.items())]
        return crossing.depth(limits, self.python)


def between(crossing: Crossing, both: Pair, told: Told) -> Packages:
    """The packages in which the environments of the two builds differ; nothing that can be tried,
    with the reason, where one cannot be had or does not tell."""
    inside: dict[str, Installed] = {}
    for build in (both.bad, both.good):
        told(f"which packages {build} is installed with")
        try:
            inside[build] = crossing.installed(both.words[build])
        except UntestableError as error:
            return Packages(unknown=(f"packages: {error}",), temporary=error.temporary)
    bad, good = inside[both.bad], inside[both.good]
    if bad.python != good.python:
        said = f"packages: one build runs on Python {bad.python}, the other on {good.python}"
        return Packages(unknown=(said,))
    shared = sorted(bad.packages.keys() & good.packages.keys())
    differ = [name for name in shared if bad.packages[name] != good.packages[name]]
    changes: dict[str, tuple[Change, ...]] = {}
    refused: dict[str, list[tuple[Change, str]]] = {}
    for build, own, other in ((both.bad, bad, good), (both.good, good, bad)):
        every = [(name, other.packages[name]) for name in differ]
        why = {c: excluded(own.metadata, *c) for c in every}
        changes[build] = tuple(c for c in every if not why[c])
        refused[build] = [(c, said) for c, said in why.items() if said]
    unknown = []
    if alone := sorted(bad.packages.keys() ^ good.packages.keys()):
        unknown.append(f"packages that one of the two has alone: {printable(', '.join(alone))}")
    versions = {both.bad: bad.packages, both.good: good.packages}
    same = 0 if differ else len(shared)
    return Packages(changes, refused, versions, bad.python, tuple(unknown), same=same)
