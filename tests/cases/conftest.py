"""A small valid case, a scenario that declares just enough for it, and a way to write files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from specrepro.repro.records import Scalar
from specrepro.repro.scenarios.declare import Parameter

GOOD = """\
schema: 1
id: small-case
title: A small case
report: https://github.com/vllm-project/vllm/issues/1
claim: It is small.
cause: contested
class: mtp-tail-overflow
scenario: stairs
params: {length: 8, step: 2}
sweep: {length: [6, 8, 10]}
variants:
  broken: {guard: none}
  sound: {guard: full}
expect:
  - {variant: broken, when: {step: 2}, finding: {kind: trap, op: kv_write}}
  - {variant: sound, clean: true}
lanes: [reference, emulator]
owners: {cache: block}
"""


def contradiction(
    point: Mapping[str, Scalar], settings: Mapping[str, Scalar]
) -> tuple[str, str] | None:
    if point["length"] % point["step"]:
        return "step", f"{point['step']} does not divide length {point['length']}"
    if settings["guard"] == "half" and point["step"] == 2:
        return "guard", "half a guard needs another step"
    return None


STAIRS = SimpleNamespace(
    PARAMETERS={
        "length": Parameter(4, int, low=1, high=100, doc="how long"),
        "step": Parameter(2, int, choices=(1, 2, 4), doc="how wide"),
        "rate": Parameter(0.5, float, low=0, high=1, doc="how fast"),
        "mode": Parameter("up", str, choices=("up", "down"), doc="which way"),
        "loud": Parameter(False, bool, doc="whether it is heard"),
    },
    SETTINGS={"guard": Parameter("none", str, choices=("none", "half", "full"))},
    UNITS={"cache": ("block", "row")},
    TENSORS=("cache", "rows", "out"),
    contradiction=contradiction,
)


@pytest.fixture
def scenarios() -> dict[str, SimpleNamespace]:
    return {"stairs": STAIRS}


@pytest.fixture
def good() -> str:
    return GOOD


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str | bytes], Path]:
    """Writes a case file and gives its path."""

    def written(content: str | bytes, name: str = "case.yaml") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return written
