"""What the probes say of kernels that move recurrent state, and that index it: whose blocks, which
row, which count; and kernels that do something else, which are unknown and never clean."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.check.kernel.launching import Saw
from specrepro.repro.check.source import Reading

pytest.importorskip("triton", reason="Triton is not installed")
pytestmark = pytest.mark.compilers


def trees_module() -> Any:
    path = Path(__file__).with_name("state_trees.py")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


trees = trees_module()
Ask = Callable[..., tuple[Reading, Saw]]


def line_of(text: str, part: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if part in line)


GOOD = [
    ("state_copy_kernel", trees.COPY, trees.copy(), "request"),
    ("state_precopy_kernel", trees.COPY, trees.precopy(), "request"),
    ("conv_copy_kernel", trees.COPY, trees.window_copy(), "request"),
    ("conv_rows_copy_kernel", trees.COPY, trees.window_copy(in_rows=True), "request"),
    ("accepted_copy_kernel", trees.COPY, trees.accepted_copy(), "checked"),
    ("recurrent_kernel", trees.RECURRENT, trees.recurrent(), "checked"),
    ("mtp_recurrent_kernel", trees.MTP_RECURRENT, trees.mtp_recurrent(), "checked"),
    ("conv_update_kernel", trees.CONVOLUTION, trees.conv_update(), "checked"),
    # before a step the tables are those of its batch, so their row is the request's
    ("state_precopy_kernel", trees.COPY, trees.precopy("batch"), "batch"),
]


@pytest.mark.parametrize(("probe", "file", "text", "value"), GOOD)
def test_a_kernel_that_stays_with_its_request_has_no_finding(
    ask: Ask, probe: str, file: str, text: str, value: str
) -> None:
    reading, saw = ask(probe, file, text)
    assert (reading.value, reading.how) == (value, "kernel"), reading.detail
    assert saw.findings == ()


# probe, file, kernel, value, then of one finding: kind, tensor, elements, part of its line
BAD = [
    (
        *("state_copy_kernel", trees.COPY, trees.copy("batch"), "batch"),
        *("foreign_read", "block_table", [2, 2], "here = "),
    ),
    (
        *("conv_copy_kernel", trees.COPY, trees.window_copy("batch"), "batch"),
        *("foreign_read", "block_table", [1, 1], "old = "),
    ),
    (
        *("conv_rows_copy_kernel", trees.COPY, trees.window_copy("batch", in_rows=True)),
        *("batch", "foreign_read", "block_table", [1, 1], "old = "),
    ),
    (
        # 3 + 8 accepted of 3, so that source is column 1 + 10 of a table of two rows of four
        *("accepted_copy_kernel", trees.COPY, trees.accepted_copy("accepted"), "unchecked"),
        *("out_of_bounds_read", "block_table", [11, 11], "old = "),
    ),
    (
        *("recurrent_kernel", trees.RECURRENT, trees.recurrent("count"), "unchecked"),
        *("out_of_bounds_read", "ssm_state_indices", [-1, -1], "before = "),
    ),
    (
        *("mtp_recurrent_kernel", trees.MTP_RECURRENT, trees.mtp_recurrent("count > 0")),
        *("unchecked", "foreign_read", "ssm_state_indices", [4, 4], "before = "),
    ),
    (
        # line 2 of the cache begins at 2 × 6 × 4, and the token before it is of another request
        *("conv_update_kernel", trees.CONVOLUTION, trees.conv_update("count"), "unchecked"),
        *("foreign_read", "conv_state", [72, 75], "value = tl.load(window"),
    ),
]


@pytest.mark.parametrize(
    ("probe", "file", "text", "value", "kind", "tensor", "elements", "part"), BAD
)
def test_what_is_another_requests_comes_with_tensor_element_and_line(
    ask: Ask,
    probe: str,
    file: str,
    text: str,
    value: str,
    kind: str,
    tensor: str,
    elements: list[int],
    part: str,
) -> None:
    reading, saw = ask(probe, file, text)
    assert reading.value == value, reading.detail
    found = [
        (f["kind"], f["tensor"], f["elements"], f["source"]["file"], f["source"]["line"])
        for f in saw.findings
    ]
    assert (kind, tensor, elements, f"vllm/{file}", line_of(text, part)) in found
    assert (reading.path, reading.line) in {f[3:] for f in found}


def test_a_late_copy_moves_blocks_of_the_other_request(ask: Ask) -> None:
    _, saw = ask("state_copy_kernel", trees.COPY, trees.copy("batch"))
    state = [f for f in saw.findings if f["tensor"] == "recurrent_state"]
    # slot 5 has blocks 21 to 24, slot 3 has 13 to 16, of 16 elements each
    assert sorted((f["kind"], f["request"], f["elements"][0] // 16) for f in state) == [
        ("foreign_read", 3, 23),
        ("foreign_read", 5, 15),
        ("foreign_write", 3, 21),
        ("foreign_write", 5, 13),
    ]


@pytest.mark.parametrize(
    ("probe", "file", "text", "words"),
    [
        ("state_copy_kernel", trees.COPY, trees.copy(needed="(lane < 0)"), "is not copied"),
        ("state_copy_kernel", trees.COPY, trees.copy("7"), "rows [7]"),
        ("state_precopy_kernel", trees.COPY, trees.precopy(source="source"), "is not copied"),
        ("conv_copy_kernel", trees.COPY, trees.window_copy(shift="0"), "is not copied"),
        ("conv_rows_copy_kernel", trees.COPY, trees.window_copy(shift="0", in_rows=True), "not co"),
        (
            *("accepted_copy_kernel", trees.COPY),
            *(trees.accepted_copy(needed="(lane < 0)"), "count 3 of 3: the state is not copied"),
        ),
        ("recurrent_kernel", trees.RECURRENT, trees.recurrent("count", "0"), "starts from state 1"),
        ("conv_update_kernel", trees.CONVOLUTION, trees.conv_update(order=" - 1"), "the window is"),
    ],
)
def test_a_kernel_that_does_not_move_the_right_state_is_unknown(
    ask: Ask, probe: str, file: str, text: str, words: str
) -> None:
    reading, saw = ask(probe, file, text)
    assert (reading.value, reading.how, saw.findings) == (None, "unknown", ())
    assert words in reading.detail
