"""`check --scan` and `bisect` on a Ray cluster of two nodes: the answers of a search at home, each
with its node; a node whose network is down is tried no more, and GPUs are not mixed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro import store
from specrepro.repro.bisection import session
from specrepro.repro.bisection.candidates import Candidate, Line
from specrepro.repro.bisection.crew import Crew
from specrepro.repro.bisection.question import Find, Options
from specrepro.repro.bisection.session import Quest
from specrepro.repro.bisection.trials import Bench
from specrepro.repro.bisection.verdicts import Observation
from specrepro.repro.case import load_cases
from specrepro.repro.check import survey
from specrepro.repro.check.apart import How
from specrepro.repro.check.depth import Asked
from specrepro.repro.check.source_depth import SourceDepth
from specrepro.repro.execution.choice import Choice, place_of
from specrepro.repro.execution.task import Needs

pytestmark = pytest.mark.ray

SMALL = 100 << 20  # bytes of an object store
CLOSED = 9  # a port on which nobody listens
COMPARED = ("kind", "ending", "build", "previous", "confidence", "candidates")


@dataclass(frozen=True)
class Nodes:
    """address: of a cluster. settings: pip's file on the node whose network works, well: its id."""

    address: str
    settings: Path
    well: str


def pip_file(url: str) -> str:
    """Settings of pip that name the index of a server alone."""
    return f"[global]\nindex-url = {url}/simple\ntimeout = 5\n"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """A node whose index is the test's, with an H100, and one whose index does not answer, with an
    A100; so the cluster says, there is no GPU."""
    pytest.importorskip("ray", reason="ray is not installed")
    from ray.cluster_utils import Cluster

    folder = tmp_path_factory.mktemp("nodes")
    settings, broken = folder / "well.conf", folder / "broken.conf"
    broken.write_text(pip_file(f"http://localhost:{CLOSED}"))
    kept = dict(os.environ)
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        del os.environ[name]
    os.environ |= {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "PIP_CONFIG_FILE": str(settings),
        "UV_NO_CONFIG": "1",
        "HOME": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    one = {"num_cpus": 1, "num_gpus": 1, "object_store_memory": SMALL}
    head = {**one, "include_dashboard": False, "resources": {"accelerator_type:H100": 1}}
    try:
        cluster = Cluster(initialize_head=True, head_node_args=head)
        cluster.add_node(
            **one,
            resources={"accelerator_type:A100": 1},
            env_vars={"PIP_CONFIG_FILE": str(broken), "XDG_CACHE_HOME": str(folder / "other")},
        )
        yield Nodes(str(cluster.address), settings, str(cluster.head_node.node_id)[:8])
        cluster.shutdown()
    finally:
        os.environ.clear()
        os.environ |= kept


@pytest.fixture
def served(nodes: Nodes, engine: Any) -> Any:
    """The index of a test, known to the node that is well."""
    nodes.settings.write_text(pip_file(engine.server.url))
    return engine


def test_a_scan_says_the_same_and_a_node_without_a_network_says_nothing(
    nodes: Nodes, served: Any
) -> None:
    served.releases("gb?bg")
    words = (*served.CASE, "--vllm", "0.1.0..0.5.0", "--scan", "--json")
    home = json.loads(served.run(*words, command="check").stdout)
    ran = served.run(*words, "--ray", nodes.address, command="check")
    away = json.loads(ran.stdout)
    for row in away["builds"]:
        assert row.pop("place")["node"] == nodes.well
    for row in (*home["builds"], *away["builds"]):
        del row["seconds"]
    assert away["builds"] == home["builds"]
    folder = Path(away["run"]["path"])
    assert {path.name for path in folder.iterdir()} == {"request.json", "run.json"}


def test_a_bisection_finds_the_same_and_every_trial_has_its_node(nodes: Nodes, served: Any) -> None:
    versions = served.releases("ggggbb")
    ends = ("--good", versions[0], "--bad", versions[-1])
    home = served.record(*ends)
    away = served.record(*ends, "--jobs", "2", "--ray", nodes.address)
    for key in COMPARED:
        assert away["result"][key] == home["result"][key]
    assert {row["place"]["node"] for row in away["trials"]} == {nodes.well}
    assert len(set(served.tried(away))) == len(away["trials"])
    assert f"--ray {nodes.address}" in away["again"]
    path = Path(away["run"]["path"])
    logs = {json.loads((path / row["log"]).read_text())["verdict"] for row in away["trials"]}
    assert logs == {"AFFECTED", "NOT AFFECTED"}


def test_trials_that_need_a_gpu_are_of_one_kind_of_gpu(
    nodes: Nodes, served: Any, tmp_path: Path
) -> None:
    """Both nodes have the wheels by their address, and a GPU each; one batch is of both kinds."""
    versions = served.releases("ggbbbb")
    url = served.server.url
    candidates = [Candidate(v, f"{url}/files/{served.names[v]}") for v in versions]
    options = Options(find=Find.FIRST_BAD, exact=True, jobs=2)
    [case] = load_cases(["draft-length-gate"])
    part = case.case.check
    assert part is not None
    question = survey.questions(case, ("dict-override",), {}, False)

    def search(folder: Path, options: Options) -> list[Observation]:
        path = store.create(folder, "bisect", {"key": "k"})
        asked = Asked(case, part.records(), (), question, None, lambda line: None, path)
        with place_of(Choice(ray=nodes.address), path) as where:
            together = Crew(How("source"), where, Needs(gpus=1), away=True)
            bench = Bench(SourceDepth(), asked, _Nothing(), path, None, together)
            quest = Quest("release", Line(tuple(candidates)), options)
            journal, result = session.search(quest, bench, lambda line: None, lambda line: None)
        assert (result.build, result.previous) == ("0.3.0", "0.2.0")
        return [event for event in journal.events if isinstance(event, Observation)]

    seen = search(tmp_path / "one", options)
    kinds = [event.place.gpu for event in seen if event.place]
    assert set(kinds[:2]) == {"H100", "A100"}
    assert set(kinds[2:]) == {kinds[0]}
    mixed = search(tmp_path / "two", replace(options, mix_hosts=True))
    assert len(mixed) < len(seen)


class _Nothing:
    """Opens no build: every trial is a task."""

    def open(self, spec: str) -> Any:
        raise AssertionError(spec)
