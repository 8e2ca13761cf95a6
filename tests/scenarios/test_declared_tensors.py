"""The tensors a scenario declares are those that its launches use and its findings name."""

from dataclasses import replace
from typing import Any

import pytest

from specrepro.repro.case import load_cases
from specrepro.repro.lanes.reference import ReferenceDevice
from specrepro.repro.ops import Ops
from specrepro.repro.ops.launch import Launch
from specrepro.repro.ops.tensor import Tensor
from specrepro.repro.plan import plan
from specrepro.repro.scenarios import registry

CASES = {loaded.case.scenario: loaded.case for loaded in load_cases(["cases"])}

# Parameters beside a case's own, under which a scenario uses what it does not use otherwise.
MORE = {"gdn_pipeline": {"num_speculative_tokens": 2, "new_tokens": 6}}


class Witness(ReferenceDevice):
    """The reference, which also keeps the names of the tensors of its launches."""

    def __init__(self) -> None:
        super().__init__(memory=4 << 30)
        self.names: set[str] = set()

    def launch(self, launch: Launch) -> None:
        self.names |= {t.name for t in launch.args.values() if isinstance(t, Tensor)}
        super().launch(launch)


@pytest.mark.parametrize("scenario", CASES)
def test_exactly_the_tensors_that_are_used_are_declared(scenario: str) -> None:
    case, module = CASES[scenario], registry.load(scenario)
    used: set[str] = set()
    steps = [s for s in plan(case, case, lanes=("reference",)).steps if s.control in (None, "a")]
    more = replace(steps[0], point={**steps[0].point, **MORE.get(scenario, {})})
    for step in (*steps, more):
        device = Witness()
        outcome: Any = module.run(Ops(device), step.point, step.settings, dict(case.owners))
        used |= device.names | {f.tensor for f in outcome.findings if f.tensor}
    declared = registry.declaration(scenario).TENSORS
    assert used <= set(declared)
    assert set(declared) - used == set()
    assert set(registry.declaration(scenario).UNITS) <= used


@pytest.mark.parametrize("scenario", registry.SCENARIOS)
def test_every_scenario_has_a_case_here(scenario: str) -> None:
    assert scenario in CASES
