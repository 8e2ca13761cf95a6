"""Playing a scenario in the reference lane, from the few values a test cares about."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest

from specrepro.repro.lanes.reference import ReferenceDevice
from specrepro.repro.ops import Ops
from specrepro.repro.records import Finding, Kind, Outcome, Prediction, Scalar
from specrepro.repro.scenarios import registry
from specrepro.repro.scenarios.declare import defaults

OWNERS = {"block_table": "row", "key_cache": "block", "value_cache": "block"}


@dataclass(frozen=True)
class Played:
    """What a run in the reference lane came to, and what the closed form said before it."""

    outcome: Outcome
    found: tuple[Finding, ...]
    predicted: tuple[Prediction, ...]

    def elements(self, kind: Kind, op: str, tensor: str) -> set[int]:
        """Every element found wrong in this way, all launches together."""
        return {
            element
            for f in self.found
            if (f.kind, f.op, f.tensor) == (kind, op, tensor) and f.elements is not None
            for element in range(f.elements[0], f.elements[1] + 1)
        }

    def kinds(self) -> set[Kind]:
        return {f.kind for f in self.found}


Play = Callable[..., Played]


@pytest.fixture
def play() -> Play:
    def run(
        scenario: str,
        settings: Mapping[str, Scalar],
        owners: Mapping[str, str] = OWNERS,
        **values: Scalar,
    ) -> Played:
        module = registry.load(scenario)
        point = {**defaults(module.PARAMETERS), **values}
        given = {**defaults(module.SETTINGS), **settings}
        assert module.contradiction(point, given) is None
        device = ReferenceDevice(memory=80 << 30)
        outcome = module.run(Ops(device), point, given, owners)
        found = (*device.findings, *outcome.findings)
        return Played(outcome, found, module.predict(point, given))

    return run
