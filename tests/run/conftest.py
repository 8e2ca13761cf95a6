"""Shipped cases planned, and results of both CPU lanes as their children would hand them over."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from specrepro.repro.case import LoadedCase, load_cases
from specrepro.repro.lanes.child import play
from specrepro.repro.lanes.process import Ending, read_results
from specrepro.repro.plan import Plan, plan
from specrepro.repro.records import TrialResult

Results = Mapping[str, Sequence[TrialResult]]


@dataclass(frozen=True)
class Ran:
    """A case, its plan, and what each CPU lane found."""

    loaded: LoadedCase
    plan: Plan
    results: Results


def execute(loaded: LoadedCase, planned: Plan, folder: Path) -> Results:
    """Play every trial in this process, through the very file a child writes."""
    results: dict[str, Sequence[TrialResult]] = {}
    for lane in planned.lanes:
        job = {
            "lane": lane,
            "scenario": loaded.case.scenario,
            "owners": dict(loaded.case.owners),
            "stop_at_first": False,
        }
        directory = folder / lane
        directory.mkdir(parents=True)
        lines = [
            {"trial": n, **play(job, {"point": step.point, "settings": step.settings})}
            for n, step in enumerate(planned.steps)
        ]
        lines.append({"complete": len(planned.steps)})
        (directory / "result.ndjson").write_text("".join(json.dumps(x) + "\n" for x in lines))
        results[lane] = read_results(directory, planned.trials(lane), Ending("", False, 0.0))
    return results


@pytest.fixture(scope="session")
def ran_tail(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    [loaded] = load_cases(["mtp-tail-overflow"])
    planned = plan(loaded.case, loaded.case, lanes=("reference", "emulator"))
    return Ran(loaded, planned, execute(loaded, planned, tmp_path_factory.mktemp("tail")))


@pytest.fixture
def edited(tmp_path: Path) -> Callable[[str, str, str], Path]:
    """A copy of a shipped case with one text replaced."""

    def edit(name: str, old: str, new: str) -> Path:
        [loaded] = load_cases([name])
        text = loaded.path.read_text()
        assert text.count(old) == 1
        path = tmp_path / f"{name}.yaml"
        path.write_text(text.replace(old, new))
        return path

    return edit
