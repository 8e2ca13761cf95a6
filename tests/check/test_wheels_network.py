"""The real index: few requests, few bytes, and the commit that is known of each release."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from specrepro.repro.case import load_cases
from specrepro.repro.check.builds import Builds
from specrepro.repro.check.kernel.depth import judged, names
from specrepro.repro.check.kernel.probes import load as load_kernel
from specrepro.repro.check.probes import load
from specrepro.repro.check.source import members
from specrepro.repro.check.source_depth import probes as asked
from specrepro.repro.errors import UntestableError

pytestmark = pytest.mark.network

CASES = Path(__file__).parents[2] / "cases"

# what probes look at, roughly: 100 and more files of a late release
FOLDERS = ("vllm/v1/core/", "vllm/v1/spec_decode/", "vllm/v1/worker/gpu/", "vllm/config/")


@pytest.fixture
def builds(tmp_path: Path) -> Iterator[Builds]:
    with Builds(cache=tmp_path) as made:
        try:
            made.versions("0.28.0")
        except UntestableError as error:
            pytest.skip(f"no package index here: {error}")
        yield made


@pytest.mark.parametrize(("version", "commit"), [("0.11.0", "f71952c1c"), ("0.33.0", "4ba787ec9")])
def test_a_release_costs_few_requests_and_little_traffic(
    version: str, commit: str, builds: Builds
) -> None:
    tree = builds.open(version)
    wanted = [name for name in tree.names() if name.endswith(".py") and name.startswith(FOLDERS)]
    tree.fetch(wanted)
    assert len(wanted) > 20
    assert sum(len(tree.read(name)) for name in wanted) > 100_000
    assert (tree.build.version, tree.build.commit) == (version, commit)
    requests, received = builds.traffic
    assert requests <= 8
    assert received <= 2_000_000


@pytest.mark.parametrize("version", ["0.11.0", "0.19.1", "0.28.0", "0.33.0"])
@pytest.mark.parametrize("depth", ["source", "kernel"])
@pytest.mark.parametrize("case", sorted(path.stem for path in CASES.glob("*.yaml")))
def test_what_a_shipped_case_asks_of_a_release_stays_within_its_budget(
    case: str, depth: str, version: str, tmp_path: Path, builds: Builds
) -> None:
    """From an empty cache, the listing of the index included."""
    [loaded] = load_cases([str(CASES / f"{case}.yaml")])
    part = loaded.case.check
    assert part is not None
    defects = part.records()
    if depth == "kernel":
        kernels, sources = names(judged(defects), part.also)
        if not kernels:
            pytest.skip("no kernel answers this case")
        probes = [load(name) for name in sources]
        lifts = [load_kernel(name).subject.lift(name) for name in kernels]
    else:
        probes, lifts = [load(name) for name in asked(defects, part.also)], []
    with Builds(cache=tmp_path / "empty") as fresh:
        tree = fresh.open(version)
        wanted = members(tree.names(), probes, lifts)
        tree.fetch(wanted)
        assert all(isinstance(tree.read(name), bytes) for name in wanted)
        requests, received = fresh.traffic
    assert wanted
    assert requests <= 8
    assert received <= 2_000_000


def test_the_wheel_with_the_highest_build_tag_stands_for_a_release(builds: Builds) -> None:
    assert builds.versions("0.20.0..0.21.0") == ["0.20.0", "0.20.1", "0.20.2", "0.21.0"]
    assert (builds.open("0.20.1").build.file or "").startswith("vllm-0.20.1-1-")
    assert (builds.open("0.20.2").build.file or "").startswith("vllm-0.20.2-cp")
