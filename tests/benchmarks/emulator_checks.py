"""What the emulator's checks cost: every launch of the shipped cases with and without them.

python tests/benchmarks/emulator_checks.py [ROUNDS]
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any

import page

from specrepro.repro.case import load_case
from specrepro.repro.emulator import checks
from specrepro.repro.emulator.launch import Buffer, launch
from specrepro.repro.lanes.emulator import CHECKS, EmulatorDevice, aligned
from specrepro.repro.ops import Launch, Ops, Tensor
from specrepro.repro.plan import plan
from specrepro.repro.scenarios import registry

ROOT = Path(__file__).parents[2]
KEPT = 40  # launches of one op, evenly over the case
SETS = {
    "bounds only": frozenset[str](),
    "alignment, ownership": checks.DEFAULT,
    "as the lane": CHECKS,
    "all": checks.ALL,
}


class Recorder(EmulatorDevice):
    """A device that keeps its launches, arguments as they were before."""

    def __init__(self, memory: int) -> None:
        super().__init__(memory)
        self.launches: dict[str, list[tuple[Any, ...]]] = {}

    def launch(self, launch_: Launch) -> None:
        kernel = self._kernel(launch_.op)
        arguments: list[Any] = []
        for parameter in kernel.manifest.parameters:
            value = launch_.args.get(parameter.name)
            if isinstance(value, Tensor):
                copy = aligned(value.data)
                arguments.append(Buffer(value.name, copy, value.owners, value.behind))
            else:
                arguments.append(value)
        entry = (kernel.parsed(), launch_.grid, kernel.manifest, arguments, launch_.requests)
        self.launches.setdefault(launch_.op, []).append(entry)
        super().launch(launch_)


def recorded() -> dict[str, list[tuple[Any, ...]]]:
    """Launches of all cases by op, at most KEPT of each case."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for path in sorted((ROOT / "cases").glob("*.yaml")):
        case = load_case(path).case
        scenario: Any = registry.load(case.scenario)
        device = Recorder(80 << 30)
        for step in plan(case, case).steps:
            scenario.run(Ops(device), step.point, step.settings, case.owners)
        for op, launches in device.launches.items():
            found.setdefault(op, []).extend(launches[:: -(-len(launches) // KEPT)])
    return found


def seconds(entry: tuple[Any, ...], on: frozenset[str]) -> float:
    """CPU time of one launch on copies of its arguments."""
    kernel, grid, manifest, arguments, requests = entry
    copies = [
        Buffer(a.name, aligned(a.data), a.owners, a.behind) if isinstance(a, Buffer) else a
        for a in arguments
    ]
    started = time.process_time_ns()
    launch(
        kernel,
        grid,
        manifest.threads,
        copies,
        shared_bytes=manifest.shared_bytes,
        requests=requests,
        checks=on,
    )
    return (time.process_time_ns() - started) / 1e9


def main(rounds: int) -> None:
    """Measure, alternately, and write the page's section."""
    lines = [
        "CPU time of a launch, mean over launches of the shipped cases, each the least of "
        f"{rounds} rounds; ratios to `bounds only`.",
        "",
        f"| op | launches | {' | '.join(SETS)} |",
        f"| --- | --- | {' | '.join('---' for _ in SETS)} |",
    ]
    for op, launches in sorted(recorded().items()):
        least = {name: [float("inf")] * len(launches) for name in SETS}
        for _ in range(rounds):
            for number, entry in enumerate(launches):
                for name, on in SETS.items():
                    least[name][number] = min(least[name][number], seconds(entry, on))
        means = {name: statistics.fmean(values) for name, values in least.items()}
        base = means["bounds only"]
        cells = [f"{base * 1e3:.2f} ms"] + [f"{m / base:.2f}" for m in list(means.values())[1:]]
        lines.append(f"| {op} | {len(launches)} | {' | '.join(cells)} |")
    command = ["python", "tests/benchmarks/emulator_checks.py", str(rounds)]
    page.write("emulator-checks", "Checks of the emulator", command, lines)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
