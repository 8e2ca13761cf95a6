from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import specrepro
from specrepro.repro.ops import NOBODY, Owners
from specrepro.repro.records import Kind

LANES = ("reference", "emulator")


@st.composite
def scatters(draw: st.DrawFn) -> dict[str, Any]:
    tokens = draw(st.integers(0, 9))
    shape = draw(st.sampled_from([(1, 1), (2, 8), (3, 43), (1, 64), (1, 65)]))
    dtype = draw(st.sampled_from([np.float16, np.uint16]))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def bits(rows: int, gap: int) -> Any:
        wide = random.integers(0, 2**16, (rows, shape[0] + gap, shape[1]), np.uint16)
        return wide.view(dtype)[:, : shape[0]]

    slots = draw(st.permutations(range(12)))[:tokens]
    skipped = draw(st.lists(st.booleans(), min_size=tokens, max_size=tokens))
    return {
        "key": bits(tokens, draw(st.integers(0, 2))),
        "value": bits(tokens, draw(st.integers(0, 2))),
        "key_cache": np.ascontiguousarray(bits(12, 0)),
        "value_cache": np.ascontiguousarray(bits(12, 0)),
        "slots": np.array(
            [-1 if skip else slot for slot, skip in zip(slots, skipped, strict=True)], np.int64
        ),
    }


def check(bench: Any, lane: str, scatter: dict[str, Any]) -> None:
    run = getattr(bench, lane)("kv_write", **scatter)
    written = scatter["slots"] >= 0
    for name in ("key", "value"):
        wanted = scatter[f"{name}_cache"].copy()
        wanted[scatter["slots"][written]] = scatter[name][written]
        got = run.tensors[f"{name}_cache"]
        assert got.view(np.uint16).tolist() == wanted.view(np.uint16).tolist()
    assert run.wrong == {}


@given(scatter=scatters())
@settings(max_examples=60, deadline=None)
def test_reference_moves_the_bits_of_each_token_to_its_slot(
    bench: Any, scatter: dict[str, Any]
) -> None:
    check(bench, "reference", scatter)


@given(scatter=scatters())
@settings(max_examples=25, deadline=None)
def test_device_kernel_moves_the_bits_of_each_token_to_its_slot(
    bench: Any, scatter: dict[str, Any]
) -> None:
    check(bench, "emulator", scatter)


def two_tokens(slots: list[int]) -> dict[str, Any]:
    new = np.arange(1, 2 * 4 + 1, dtype=np.float16).reshape(2, 1, 4)
    old = np.zeros((8, 1, 4), np.float16)
    return {
        "key": new,
        "value": new,
        "key_cache": old,
        "value_cache": old,
        "slots": np.array(slots, np.int64),
    }


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("slot", [8, 9, 2**31, 2**40])
def test_slot_past_the_cache_is_located_and_the_rest_is_done(
    bench: Any, lane: str, slot: int
) -> None:
    run = getattr(bench, lane)("kv_write", **two_tokens([slot, 7]))
    elements = list(range(slot * 4, slot * 4 + 4))
    assert run.wrong == {
        (Kind.OUT_OF_BOUNDS_WRITE, "key_cache"): elements,
        (Kind.OUT_OF_BOUNDS_WRITE, "value_cache"): elements,
    }
    assert run.tensors["key_cache"][7, 0].tolist() == [5, 6, 7, 8]
    assert not run.tensors["key_cache"][:7].any()


@pytest.mark.parametrize("lane", LANES)
def test_last_slot_of_the_cache_is_no_fault(bench: Any, lane: str) -> None:
    assert getattr(bench, lane)("kv_write", **two_tokens([7, -1])).wrong == {}


@pytest.mark.parametrize("lane", LANES)
def test_write_into_a_block_of_another_or_of_nobody_is_foreign_and_done(
    bench: Any, lane: str
) -> None:
    owners = Owners(8, np.array([0, 1, NOBODY, 0], np.int32))  # blocks of two slots
    run = getattr(bench, lane)(
        "kv_write",
        **two_tokens([2, 5]),
        owners={"key_cache": owners},
        requests=np.array([0, 0], np.int32),
    )
    assert run.wrong == {
        (Kind.FOREIGN_WRITE, "key_cache"): [8, 9, 10, 11, 20, 21, 22, 23],
    }
    assert run.tensors["key_cache"][2, 0].tolist() == [1, 2, 3, 4]


def test_key_and_value_faults_name_their_own_source_lines(bench: Any) -> None:
    run = bench.emulator("kv_write", **two_tokens([8, 7]))
    source = (Path(specrepro.__file__).parent / "kernels/kv_write/kernel.cu").read_text()
    for tensor in ("key_cache", "value_cache"):
        (line,) = run.lines[Kind.OUT_OF_BOUNDS_WRITE, tensor]
        assert f"{tensor}[slot * cache_stride + i] =" in source.splitlines()[line - 1]
