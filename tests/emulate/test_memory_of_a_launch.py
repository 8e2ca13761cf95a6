"""What buffers hold before a launch: fills, narrow floats, files, pointers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specrepro.repro.emulation.arguments import Arguments
from specrepro.repro.emulation.element_types import TYPES
from specrepro.repro.emulation.memory import encode, filled
from specrepro.repro.errors import CaseError

Parsed = Callable[[str], Arguments]


def decoded(bits: int, exponent: int, mantissa: int) -> Fraction:
    """A finite minifloat by the definition of IEEE 754, in exact arithmetic."""
    bias = (1 << (exponent - 1)) - 1
    field = (bits >> mantissa) & ((1 << exponent) - 1)
    fraction = bits & ((1 << mantissa) - 1)
    if field == 0:
        return Fraction(fraction) * Fraction(2) ** (1 - bias - mantissa)
    return ((1 << mantissa) + fraction) * Fraction(2) ** (field - bias - mantissa)


@pytest.mark.parametrize(("name", "finite"), [("f8e4m3", 0x7F), ("f8e5m2", 0x7C), ("bf16", 0x7F80)])
def test_floats_that_numpy_lacks_are_rounded_to_the_nearest_even(name: str, finite: int) -> None:
    dtype = TYPES[name]
    random = np.random.default_rng(7)
    every = [decoded(bits, dtype.exponent, dtype.mantissa) for bits in range(finite)]
    picked = random.integers(0, finite - 1, 400)
    for low in picked:
        below, above = every[low], every[low + 1]
        middle = (below + above) / 2
        cases = {below: low, above: low + 1, middle: low + (low & 1)}
        step = (above - below) / 64
        cases |= {middle - step: low, middle + step: low + 1}
        values = np.array([float(value) for value in cases])
        assert [Fraction(float(v)) for v in values] == list(cases)
        assert encode(values, dtype).tolist() == list(cases.values())
        sign = 1 << (8 * dtype.size - 1)
        assert encode(-values, dtype).tolist() == [bits | sign for bits in cases.values()]


def test_values_beyond_the_largest_are_what_each_format_has_for_them() -> None:
    values = np.array([448.0, 464.0, 465.0, np.inf, np.nan])
    assert encode(values, TYPES["f8e4m3"]).tolist() == [0x7E, 0x7E, 0x7F, 0x7F, 0x7F]
    values = np.array([57344.0, 61439.0, 61440.0, -np.inf, np.nan])
    assert encode(values, TYPES["f8e5m2"]).tolist() == [0x7B, 0x7B, 0x7C, 0xFC, 0x7E]


def test_fills_are_what_their_names_say(parsed: Parsed) -> None:
    arguments = parsed("""
        args:
          - {name: z, dtype: i16, shape: 3}
          - {name: a, dtype: f16, shape: [2, 2], fill: arange}
          - {name: u, dtype: i32, shape: 2, fill: uninitialised}
          - {name: v, dtype: bf16, shape: [1, 2], fill: {values: [[1.0, -2]]}}
          - {name: r, dtype: i8, shape: 500, fill: {random: 1, low: -3, high: 3}}
          - {name: f, dtype: f32, shape: 500, fill: {random: 1}}
    """)
    z, a, u, v, r, f = filled(arguments)
    assert z.data.tolist() == [0, 0, 0]
    assert a.data.tolist() == [0, 1, 2, 3]
    assert u.data.view(np.uint8).tolist() == [0xAA] * 8
    assert u.written is not None
    assert not u.written.any()
    assert v.data.tolist() == [0x3F80, 0xC000]
    assert set(r.data.tolist()) == {-3, -2, -1, 0, 1, 2}
    assert -1 <= f.data.min() < -0.9
    assert 0.9 < f.data.max() < 1
    assert all(each.data.ctypes.data % 256 == 0 for each in (z, a, u, v, r, f))
    again = filled(arguments)
    assert np.array_equal(again[4].data, r.data)


FILE = "args:\n  - {name: x, dtype: DTYPE, shape: [2, 2], fill: {file: x.npy}}\n"


@pytest.mark.parametrize(
    ("dtype", "values"),
    [("i32", np.arange(4, dtype=np.int32)), ("bf16", np.array([[1, 2], [3, 4]], np.uint16))],
)
def test_arrays_beside_the_file_are_read(
    parsed: Parsed, tmp_path: Path, dtype: str, values: Any
) -> None:
    np.save(tmp_path / "x.npy", values)
    [x] = filled(parsed(FILE.replace("DTYPE", dtype)))
    assert x.data.tolist() == values.reshape(-1).tolist()


def test_arrays_of_another_type_or_of_objects_are_refused(parsed: Parsed, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(4, np.int64))
    with pytest.raises(CaseError, match=r"int64\[4\]"):
        filled(parsed(FILE.replace("DTYPE", "i32")))
    np.save(tmp_path / "x.npy", np.array([{}] * 4), allow_pickle=True)
    with pytest.raises(CaseError, match=r"cannot be read as \.npy"):
        filled(parsed(FILE.replace("DTYPE", "i32")))
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff{")
    with pytest.raises(CaseError, match=r"cannot be read as \.npy"):
        filled(parsed(FILE.replace("DTYPE", "i32")))
