"""The real index: few requests, few bytes, and the commit that is known of each release."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from specrepro.repro.check.builds import Builds
from specrepro.repro.errors import UntestableError

pytestmark = pytest.mark.network

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


def test_the_wheel_with_the_highest_build_tag_stands_for_a_release(builds: Builds) -> None:
    assert builds.versions("0.20.0..0.21.0") == ["0.20.0", "0.20.1", "0.20.2", "0.21.0"]
    assert (builds.open("0.20.1").build.file or "").startswith("vllm-0.20.1-1-")
    assert (builds.open("0.20.2").build.file or "").startswith("vllm-0.20.2-cp")
