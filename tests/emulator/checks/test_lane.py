"""The emulator lane makes these checks and turns what they find into findings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from specrepro.repro.compiled import CompiledKernel, Manifest, Parameter
from specrepro.repro.emulator import checks
from specrepro.repro.lanes.catalog import CATALOG
from specrepro.repro.lanes.emulator import CHECKS, EmulatorDevice
from specrepro.repro.ops import Launch
from specrepro.repro.records import Finding, Kind


class Planted(EmulatorDevice):
    """A device whose ops are the kernels of a PTX text."""

    def __init__(
        self,
        text: str,
        parameters: tuple[Parameter, ...] = (
            Parameter("out", "*i32", 4),
            Parameter("in", "*i32", 4),
        ),
        threads: int = 128,
    ) -> None:
        super().__init__(1 << 30)
        self.text, self.parameters, self.block = text, parameters, (threads, 1, 1)

    def _kernel(self, op: str) -> CompiledKernel:
        manifest = Manifest(
            op, "cuda", "faults.cu", "", "nvrtc", "", "sm_80", op, self.block, 0, self.parameters
        )
        return CompiledKernel(manifest, self.text, shipped=False)


@pytest.mark.parametrize(
    ("name", "kind", "elements"),
    [
        ("reverse", Kind.SHARED_RACE, (0, 511)),
        ("half_filled", Kind.UNINITIALISED_READ, (384, 511)),
        ("numbers", Kind.DIVERGENT_BARRIER, None),
    ],
)
def test_kinds_that_the_lane_locates(
    name: str, kind: Kind, elements: tuple[int, int] | None, texts: Mapping[str, str]
) -> None:
    def findings(op: str) -> list[Finding]:
        device = Planted(texts["faults"])
        args = {key: device.tensor(key, np.zeros(256, np.int32)) for key in ("out", "in")}
        device.launch(Launch(0, op, args, (2, 1, 1), None, None))
        return device.findings

    found = findings(f"{name}_bad")
    assert {(f.kind, f.elements) for f in found} == {(kind, elements)}
    assert all(f.source is not None and f.source.file == "faults.cu" for f in found)
    assert kind in CATALOG["emulator"].locates
    assert findings(f"{name}_ok") == []


def test_a_failed_assertion_says_in_the_lane_what_it_asserts() -> None:
    text = (Path(__file__).parents[1] / "coverage" / "ptx" / "calls.ptx").read_text()
    parameters = (Parameter("out", "*i32", 4), Parameter("limit", "i32"))
    device = Planted(text, parameters, threads=32)
    args = {"out": device.tensor("out", np.zeros(32, np.int32)), "limit": 20}
    device.launch(Launch(3, "checked", args, (1, 1, 1), None, 7))
    [finding] = device.findings
    assert (finding.kind, finding.launch, finding.step) == (Kind.TRAP, 3, 7)
    assert finding.got == "calls.cu:40: checked: assertion `i < limit` failed"
    assert finding.elements is None


def test_the_lane_makes_all_checks_but_that_of_warnings() -> None:
    assert checks.ALL - {checks.GLOBAL_RACE} == CHECKS
