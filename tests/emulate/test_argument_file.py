"""Argument files: what they mean, and that nothing wrong gets through or past its position."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.emulation.argument_file import load_arguments, read_arguments
from specrepro.repro.emulation.arguments import (
    Arguments,
    Constant,
    Nothing,
    Ownership,
    Scalar,
    Struct,
    View,
)
from specrepro.repro.errors import CaseError

Parsed = Callable[[str], Arguments]

WHOLE = """
args:
  - {name: x, dtype: float32, shape: [2, 3], fill: arange, owner: {unit: 3, of: [0, everybody]}}
  - {view: x, offset: 3}
  - {i32: -5}
  - {f32: 1}
  - {bool: true}
  - {name: B, constexpr: 128}
  - {struct: [{i32: 1}, {f64: 2.5}, {view: y}]}
  - {none: true}
  - {name: t, dtype: i64, shape: 2, fill: {values: [{ptr: y, offset: 1}, 7]}}
memory:
  - {name: y, dtype: bf16, shape: 4, fill: {random: 3, low: 0, high: 2}}
requests: [0, nobody]
"""


def test_every_form_is_read(parsed: Parsed) -> None:
    arguments = parsed(WHOLE)
    x, view, i32, f32, truth, constant, struct, none, table = (a.value for a in arguments.args)
    assert [buffer.name for buffer in arguments.buffers] == ["x", "t", "y"]
    assert x == arguments.buffers[0]
    assert (x.dtype, x.shape, x.size) == ("f32", (2, 3), 6)
    assert x.owner == Ownership(3, (0, -1))
    assert view == View("x", 3)
    assert i32 == Scalar("i32", -5)
    assert f32 == Scalar("f32", 1.0)
    assert truth == Scalar("bool", 1)
    assert constant == Constant(128)
    assert arguments.args[5].name == "B"
    assert struct == Struct((Scalar("i32", 1), Scalar("f64", 2.5), View("y", 0)))
    assert none == Nothing()
    assert table.fill.values == (View("y", 1), 7)
    assert arguments.requests == (0, -2)


@pytest.mark.parametrize(
    ("entry", "where", "said"),
    [
        ("{i32: 2147483648}", "args[0].i32", "-2147483648..2147483647"),
        ("{u8: -1}", "args[0].u8", "0..255"),
        ("{i32: 1.5}", "args[0].i32", "whole number"),
        ("{i32: true}", "args[0].i32", "a number of type i32"),
        ("{bool: 1}", "args[0].bool", "true or false"),
        ("{f32: text}", "args[0].f32", "a number of type f32"),
        ("{i33: 5}", "args[0].i33", "unknown key"),
        ("{i32: 5, u32: 5}", "args[0]", "an argument is"),
        ("{offset: 5}", "args[0].offset", "unknown key"),
        ("{view: x}", "args[0]", "there is no buffer `x`"),
        ("{none: false}", "args[0].none", "must be true"),
        ("{struct: []}", "args[0].struct", "at least one field"),
        ("{struct: [{constexpr: 1}]}", "args[0].struct[0]", "a field is"),
        ("5", "args[0]", "a mapping"),
        ("{name: x, dtype: f33, shape: 1}", "args[0].dtype", "must be one of"),
        ("{name: x, dtype: f32, shape: [-1]}", "args[0].shape[0]", "negative"),
        ("{name: x, dtype: f32, shape: []}", "args[0].shape", "1 to 8 extents"),
        ("{name: x, dtype: f32}", "args[0]", "needs the key shape"),
        ("{name: x, dtype: f64, shape: 200000000}", "args[0].shape", "bytes of buffers"),
        ("{name: x, dtype: f32, shape: 1, fill: ones}", "args[0].fill", "must be one of"),
        ("{name: x, dtype: f32, shape: 2, fill: {values: [1]}}", "args[0].fill.values", "1 values"),
        ("{name: x, dtype: f32, shape: 1, fill: {ptr: x}}", "args[0].fill.ptr", "unknown key"),
        (
            "{name: x, dtype: i32, shape: 1, fill: {values: [{ptr: x}]}}",
            "args[0].fill.values[0]",
            "a pointer has 64 bits",
        ),
        (
            "{name: x, dtype: i64, shape: 1, fill: {values: [{ptr: z}]}}",
            "args[0].fill.values[0]",
            "there is no buffer `z`",
        ),
        (
            "{name: x, dtype: i8, shape: 1, fill: {random: 1, low: 5, high: 5}}",
            "args[0].fill",
            "low",
        ),
        (
            "{name: x, dtype: i8, shape: 4, owner: {unit: 1, of: [0]}}",
            "args[0].owner",
            "do not cover 4",
        ),
        (
            "{name: x, dtype: i8, shape: 1, owner: {unit: 1, of: [0]}}",
            "args[0].owner",
            "nothing says whose a block is",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place(
    parsed: Parsed, entry: str, where: str, said: str
) -> None:
    with pytest.raises(CaseError) as error:
        parsed(f"args:\n  - {entry}\n")
    assert error.value.key == where
    assert said in error.value.message
    assert (error.value.where or "").partition("ARGS.yaml:")[2].startswith("2:")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("- {i32: 5}", "is a mapping"),
        ("argz: []", "unknown key"),
        ("args: {i32: 5}", "must be a list"),
        ("args: &a [*a]", "anchors"),
        ("args: [{i32: !!python/name:os.system x}]", "tags"),
        ("args: [{i32: 0x10}]", "not read alike"),
        ("args: []\nargs: []", "second time"),
        ("args: []\nrequests: [x]", "must be a request"),
    ],
)
def test_files_that_are_no_plain_list_of_arguments_are_refused(
    parsed: Parsed, text: str, said: str
) -> None:
    with pytest.raises(CaseError, match=said):
        parsed(text)


def test_two_buffers_of_one_name_are_refused_with_the_way_to_pass_one_twice(
    parsed: Parsed,
) -> None:
    with pytest.raises(CaseError, match="two buffers `x`") as error:
        parsed("args:\n  - {name: x, dtype: i8, shape: 1}\n  - {name: x, dtype: i8, shape: 1}\n")
    assert "{view: x}" in (error.value.hint or "")


@pytest.mark.parametrize("name", ["../x.npy", "a/../../x.npy", "/x.npy", "x.txt", "none.npy"])
def test_only_arrays_beside_the_file_are_opened(tmp_path: Path, name: str) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    for path in (tmp_path / "x.npy", inner / "x.txt"):
        path.write_bytes(b"secret")
    text = f"args:\n  - {{name: x, dtype: i8, shape: 1, fill: {{file: {name}}}}}\n"
    with pytest.raises(CaseError) as error:
        read_arguments(inner / "ARGS.yaml", text)
    assert error.value.key == "args[0].fill.file"


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "x.npy").write_bytes(b"secret")
    (inner / "x.npy").symlink_to(tmp_path / "x.npy")
    with pytest.raises(CaseError, match="in the folder"):
        read_arguments(
            inner / "ARGS.yaml",
            "args:\n  - {name: x, dtype: i8, shape: 1, fill: {file: x.npy}}\n",
        )


def test_a_device_and_a_large_file_are_no_argument_files(tmp_path: Path) -> None:
    (tmp_path / "large.yaml").write_text("# " + "x" * (1 << 20))
    for path, said in (
        (Path("/dev/zero"), "not a regular file"),
        (tmp_path / "large.yaml", "large"),
    ):
        with pytest.raises(CaseError, match=said):
            load_arguments(path)


@given(
    at=st.integers(0, len(WHOLE)),
    length=st.integers(0, 12),
    put=st.text(st.sampled_from("{}[]:,- \n&*!?|>'\"%@0123456789.eabxyzf\u0000\u202e"), max_size=8),
)
def test_damaged_files_are_read_or_refused_and_nothing_else(at: int, length: int, put: str) -> None:
    text = WHOLE[:at] + put + WHOLE[at + length :]
    try:
        arguments = read_arguments(Path("ARGS.yaml"), text)
    except CaseError as error:
        assert (error.where or "").startswith("ARGS.yaml:")  # noqa: PT017
    else:
        assert sum(spec.size for spec in arguments.buffers) < 1 << 30
