from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specrepro.repro.records import Kind

LANES = ("reference", "emulator")
# fp16 in and out: half a unit in the last place is 2^-11 relative to one element
FP16_BOUND = 2.0**-11


@st.composite
def rotations(draw: st.DrawFn) -> dict[str, Any]:
    tokens, heads = draw(st.integers(0, 5)), draw(st.integers(1, 3))
    half = draw(st.sampled_from([1, 3, 4, 8, 33]))
    gap = draw(st.integers(0, 2))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    length = draw(st.integers(1, 50))
    x = random.normal(0, 2, (tokens, heads + gap, 2 * half)).astype(np.float16)
    return {
        "x": x[:, :heads],
        "positions": random.integers(0, length, tokens),
        "table": table_of(length, half),
    }


def table_of(length: int, half: int) -> Any:
    angle = np.outer(np.arange(length), 10000.0 ** -(np.arange(half) / half))
    return np.concatenate([np.cos(angle), np.sin(angle)], 1).astype(np.float32)


def rotated(rotation: dict[str, Any]) -> Any:
    """As complex numbers in double precision."""
    x, half = rotation["x"].astype(np.float64), rotation["x"].shape[2] // 2
    table = rotation["table"][rotation["positions"]].astype(np.float64)
    turn = (table[:, :half] + 1j * table[:, half:])[:, None]
    turned = (x[..., :half] + 1j * x[..., half:]) * turn
    return np.concatenate([turned.real, turned.imag], 2)


def relative_rms(got: Any, wanted: Any) -> float:
    size = np.sqrt(np.mean(np.square(wanted)))
    error = np.sqrt(np.mean(np.square(got.astype(np.float64) - wanted)))
    return float(error / size) if size else float(error)


@given(rotation=rotations())
@settings(max_examples=60, deadline=None)
def test_reference_rotates_like_complex_numbers(bench: Any, rotation: dict[str, Any]) -> None:
    run = bench.reference("rope", **rotation)
    if rotation["x"].size:
        assert relative_rms(run.tensors["x"], rotated(rotation)) <= FP16_BOUND
    assert run.wrong == {}


@given(rotation=rotations())
@settings(max_examples=25, deadline=None)
def test_device_kernel_gives_the_bits_of_the_reference(
    bench: Any, rotation: dict[str, Any]
) -> None:
    reference, emulator = bench.reference("rope", **rotation), bench.emulator("rope", **rotation)
    bits = [run.tensors["x"].view(np.uint16).tolist() for run in (reference, emulator)]
    assert bits[0] == bits[1]
    assert emulator.wrong == {}


@pytest.mark.parametrize("lane", LANES)
def test_position_past_the_table_reads_past_it_and_zeroes_the_token(bench: Any, lane: str) -> None:
    table = table_of(6, 2)
    x = np.ones((2, 3, 4), np.float16)
    run = getattr(bench, lane)("rope", x=x, positions=np.array([5, 6]), table=table)
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_READ, "table"): [24, 25, 26, 27]}
    assert not run.tensors["x"][1].any()
    assert run.tensors["x"][0].any()


@pytest.mark.parametrize("lane", LANES)
def test_position_far_past_the_table_is_not_wrapped_to_32_bits(bench: Any, lane: str) -> None:
    given = {"x": np.ones((1, 1, 2), np.float16), "table": table_of(6, 1)}
    run = getattr(bench, lane)("rope", **given, positions=np.array([2**31]))
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_READ, "table"): [2**32, 2**32 + 1]}


@pytest.mark.parametrize("lane", LANES)
def test_table_longer_than_its_rows_is_walked_by_its_stride(bench: Any, lane: str) -> None:
    table = np.concatenate([table_of(6, 2), np.full((6, 3), 99, np.float32)], 1)[:, :4]
    x = np.array([[[1, 0, 0, 0]]], np.float16)
    run = getattr(bench, lane)("rope", x=x, positions=np.array([3]), table=table)
    cosine, sine = np.cos([3]).astype(np.float16), np.sin([3]).astype(np.float16)
    assert run.tensors["x"].tolist() == [[[cosine.item(), 0, sine.item(), 0]]]
