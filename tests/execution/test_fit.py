"""Who may take what: needs of a case, GPUs, drivers, nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.execution.fit import is_type, satisfies, unmet_by_gpu
from specrepro.repro.execution.nodes import Gpu, Node, eligible, nothing_fits, unmet
from specrepro.repro.execution.task import Attempt, Needs, Task

H100 = Gpu("GPU-1", "NVIDIA H100 80GB HBM3", 70 << 30)
A100 = Gpu("GPU-2", "NVIDIA A100-SXM4-80GB", 70 << 30)
CPU = Node("c" * 56, "plain", 4.0, 0.0)
WITH = Node("g" * 56, "big", 4.0, 1.0, ("H100",), (H100,), "580.65.06")


def attempt(needs: Needs, *not_at: str) -> Attempt:
    return Attempt(Task("t", "lane", {}, Path("t"), 1.0, needs), 1, frozenset(not_at))


@pytest.mark.parametrize(
    ("name", "wanted", "fits"),
    [
        ("NVIDIA H100 80GB HBM3", "H100", True),
        ("NVIDIA H100 80GB HBM3", "h100", True),
        ("NVIDIA GH100", "H100", False),
        ("NVIDIA H1000", "H100", False),
        ("NVIDIA A100-SXM4-80GB", "A100", True),
        ("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB", True),
        (None, "H100", False),
    ],
)
def test_a_type_is_a_word_of_the_name_of_a_device(name: str, wanted: str, fits: bool) -> None:
    assert is_type(name, wanted) is fits


@given(st.lists(st.integers(0, 999), min_size=1, max_size=3), st.integers(0, 999))
def test_versions_are_compared_as_numbers(has: list[int], then: int) -> None:
    version = ".".join(map(str, has))
    assert satisfies(version, f">={then}") is (has[0] >= then)
    assert satisfies(version, f"<{then}") is (has[0] < then)
    assert satisfies(version, f">={version},<={version}")


def test_what_the_driver_does_not_tell_is_not_met() -> None:
    needs = Needs(1, ("H100",), 40 << 30)
    assert unmet_by_gpu(needs, H100.kind, H100.free) == ()
    assert unmet_by_gpu(needs, None, None) == (
        "needs H100, is of an unknown type",
        "needs 40 GiB free, has an unknown amount",
    )
    assert not satisfies("unknown", ">=1")


def test_a_node_says_which_need_it_does_not_meet() -> None:
    assert unmet(WITH, Needs(1, ("H100",), 40 << 30, ">=570")) == ""
    assert unmet(CPU, Needs(1)) == "has 0 GPUs, needs 1"
    assert unmet(WITH, Needs(1, driver=">=590")) == "needs driver >=590, has 580.65.06"
    assert unmet(WITH, Needs(1, ("A100",))) == "needs A100, is NVIDIA H100 80GB HBM3"
    assert unmet(WITH, Needs(2)) == "has 1 GPUs, needs 2"
    said = nothing_fits([CPU, WITH], Needs(1, ("A100",)), {})
    assert "node cccccccc (plain): has 0 GPUs, needs 1" in said
    assert "node gggggggg (big): needs A100, is NVIDIA H100 80GB HBM3" in said


def test_a_task_prefers_where_it_was_not_and_goes_back_where_nothing_else_is() -> None:
    other = Node("d" * 56, "other", 4.0, 0.0)
    able, wanted = eligible([CPU, other], attempt(Needs(), CPU.short), ())
    assert (able, wanted) == ({CPU.id, other.id}, {other.id})
    able, wanted = eligible([CPU], attempt(Needs(), CPU.short), ())
    assert wanted == {CPU.id}


def test_a_node_whose_gpus_are_all_avoided_takes_no_task_for_a_gpu() -> None:
    avoided = {f"{WITH.short}/GPU-1": "2 results lost there"}
    assert eligible([WITH], attempt(Needs(1)), avoided) == (frozenset(), frozenset())
    assert eligible([WITH], attempt(Needs()), avoided)[0] == {WITH.id}
    assert "GPU-1 is avoided: 2 results lost there" in nothing_fits([WITH], Needs(1), avoided)


def test_a_node_without_gpus_that_is_avoided_is_used_where_no_other_is() -> None:
    avoided = {CPU.short: "2 results lost there"}
    assert eligible([CPU, WITH], attempt(Needs()), avoided)[1] == {WITH.id}
    assert eligible([CPU], attempt(Needs()), avoided)[1] == {CPU.id}


def test_a_node_of_other_code_takes_nothing() -> None:
    refused = Node("e" * 56, "old", 4.0, 0.0, refused="specrepro 0.0.1 there, 0.1.0 here")
    assert eligible([refused], attempt(Needs()), ())[0] == frozenset()
