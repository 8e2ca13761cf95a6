"""Which stage holds which layers, and where a layer's cache lies on its stage.

Named partitions keep what matters of the reported ones at any number of layers: `cut` starts its
stages at phases 3 and 2 of the period as 23,23,18 does, `keep` at phase 0 as 24,24,16 does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .gdn_tokens import PERIOD, is_attention

REPORTED = 64  # layers of the model in the report
STAGES = 3


@dataclass(frozen=True, slots=True)
class Binding:
    """Where a layer is: stage, cache group of that stage, number within the group there."""

    layer: int
    stage: int
    group: int
    slot: int


def sizes(partition: str, layers: int) -> tuple[int, ...]:
    """Layers of each stage; ValueError for a text that names no partition of `layers`."""
    if partition == "single":
        return (layers,)
    if partition == "default":
        return default(layers, STAGES)
    if partition in ("cut", "keep"):
        first, second = (23, 46) if partition == "cut" else (24, 48)
        one = _nearest(first * layers / REPORTED, first % PERIOD, PERIOD, layers)
        two = _nearest(second * layers / REPORTED, second % PERIOD, one + 1, layers)
        return one, two - one, layers - two
    try:
        counts = tuple(int(part) for part in partition.split(","))
    except ValueError:
        raise ValueError("must be cut, keep, default, single or sizes such as 23,23,18") from None
    if sum(counts) != layers or min(counts) < 1:
        raise ValueError(f"must be positive sizes that add up to {layers} layers")
    return counts


def named(layers: int) -> dict[str, tuple[int, ...]]:
    """The partitions with a name, of those that `layers` layers have."""
    known = {}
    for name in ("cut", "keep", "default"):
        try:
            known[name] = sizes(name, layers)
        except ValueError:
            continue
    return known


def _nearest(wanted: float, phase: int, lowest: int, layers: int) -> int:
    starts = [n for n in range(lowest, layers) if n % PERIOD == phase]
    if not starts:
        raise ValueError(f"has no such start among {layers} layers")
    return min(starts, key=lambda n: (abs(n - wanted), n))


def default(layers: int, stages: int) -> tuple[int, ...]:
    """vLLM's own split: what is left over goes to the stages before the last, backwards."""
    counts = [layers // stages] * stages
    for i in range(layers % stages):
        counts[-2 - i] += 1
    return tuple(counts)


def bindings(counts: tuple[int, ...]) -> tuple[Binding, ...]:
    """Every layer's place. A stage groups its layers by their number on the stage."""
    placed = []
    layer = 0
    for stage, count in enumerate(counts):
        groups = min(PERIOD, count)
        for local in range(count):
            placed.append(Binding(layer, stage, local % groups, local // groups))
            layer += 1
    return tuple(placed)


def misplaced(placed: Iterable[Binding]) -> list[str]:
    """What is wrong with places: two layers in one, or a group of two kinds."""
    found: list[str] = []
    seen: dict[tuple[int, int, int], int] = {}
    kinds: dict[tuple[int, int], bool] = {}
    for at in placed:
        place = (at.stage, at.group, at.slot)
        if place in seen:
            found.append(f"layers {seen[place]} and {at.layer} share {place}")
        seen[place] = at.layer
        kind = kinds.setdefault(place[:2], is_attention(at.layer))
        if kind != is_attention(at.layer):
            found.append(f"layer {at.layer} is not of the kind of its group {place[:2]}")
    return found
