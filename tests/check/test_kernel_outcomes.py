"""What the probes say of kernels of our own: each value, each tensor, element and line; and kernels
that do something else, or nothing, which are unknown and never clean."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from specrepro.repro.check.kernel.launching import Saw
from specrepro.repro.check.source import Reading

pytest.importorskip("triton", reason="Triton is not installed")
pytestmark = pytest.mark.compilers


def trees_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "kernel_trees", Path(__file__).parent / "kernel_trees.py"
    )
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


trees: Any = trees_module()
Ask = Callable[..., tuple[Reading, Saw]]


def line_of(text: str, part: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if part in line)


GOOD = [
    ("draft_step_kernel", trees.STEP, trees.step(held="max_model_len + 5"), "masked"),
    ("decode_input_kernel", trees.UPDATE, trees.decode_input(), "clamped"),
    ("input_update_kernel", trees.UPDATE, trees.update(), "clamped"),
    ("slot_mapping_kernel", trees.V1_TABLE, trees.v1_mapping("inside & (number < 4)"), "checked"),
    (
        "batch_slot_mapping_kernel",
        trees.V2_TABLE,
        trees.v2_mapping("inside & (number < stride)"),
        "checked",
    ),
    ("padding_row_kernel", trees.V2_TABLE, trees.v2_mapping(real="(slot >= 0)"), "guarded"),
    ("append_blocks_kernel", trees.V2_TABLE, trees.append("(lane < stride)"), "checked"),
    ("rejection_kernel", trees.REJECTION, trees.rejection(), "refused"),
    ("batch_rejection_kernel", trees.BATCH_REJECTION, trees.batch_rejection(), "refused"),
    ("gumbel_kernel", trees.GUMBEL, trees.gumbel(), "guarded"),
    ("greedy_rejection_kernel", trees.REJECTION, trees.greedy(), "rejected"),
    ("batch_greedy_kernel", trees.BATCH_STRICT, trees.batch_strict(), "rejected"),
    ("batch_greedy_kernel", trees.BATCH_REJECTION, trees.batch_greedy(), "rejected"),
]


@pytest.mark.parametrize(("probe", "file", "text", "value"), GOOD)
def test_a_kernel_that_stays_where_it_belongs_has_no_finding(
    ask: Ask, probe: str, file: str, text: str, value: str
) -> None:
    reading, saw = ask(probe, file, text)
    assert (reading.value, reading.how) == (value, "kernel"), reading.detail
    assert saw.findings == ()
    assert (reading.path, reading.line) == (f"vllm/{file}", line_of(text, "def "))


# probe, file, kernel, value, then of the first finding: kind, tensor, elements, part of its line
BAD = [
    (
        *("draft_step_kernel", trees.STEP, trees.step(), "starts again"),
        *("wrong_value", "out_slot_mapping", [0, 0], "tl.store(out_slot_mapping"),
    ),
    (
        # the block is clamped to the row, so a position past the end gets a slot of the last one
        *("draft_step_kernel", trees.STEP, trees.step("position", "slot"), "past the end"),
        *("wrong_value", "out_slot_mapping", [0, 0], "tl.store(out_slot_mapping"),
    ),
    (
        *("decode_input_kernel", trees.UPDATE, trees.decode_input("position + 1"), "past the end"),
        *("wrong_value", "positions", [0, 0], "tl.store(positions"),
    ),
    (
        *("input_update_kernel", trees.UPDATE, trees.update("position + 1"), "past the end"),
        *("wrong_value", "positions", [0, 0], "tl.store(positions"),
    ),
    (
        *("slot_mapping_kernel", trees.V1_TABLE, trees.v1_mapping(), "unchecked"),
        *("foreign_read", "block_table", [4, 4], "block = tl.load("),
    ),
    (
        *("batch_slot_mapping_kernel", trees.V2_TABLE, trees.v2_mapping(), "unchecked"),
        *("foreign_read", "block_table", [4, 4], "block = tl.load("),
    ),
    (
        *("padding_row_kernel", trees.V2_TABLE, trees.v2_mapping(), "reads outside"),
        *("out_of_bounds_read", "block_table", [-4, -4], "block = tl.load("),
    ),
    (
        *("append_blocks_kernel", trees.V2_TABLE, trees.append(), "silent"),
        *("foreign_write", "block_table", [4, 5], "tl.store(table"),
    ),
    (
        *("rejection_kernel", trees.REJECTION, trees.rejection("True"), "looked up"),
        *("foreign_read", "target_probs", [15, 15], "chance = tl.load("),
    ),
    (
        *("batch_rejection_kernel", trees.BATCH_REJECTION, trees.batch_rejection("True")),
        *("looked up", "foreign_read", "target_logits", [23, 23], "score = tl.load("),
    ),
    (
        *("gumbel_kernel", trees.GUMBEL, trees.gumbel("slot >= -9"), "reads outside"),
        *("out_of_bounds_read", "temp", [-1, -1], "warmth = tl.load("),
    ),
    (
        *("gumbel_kernel", trees.GUMBEL, trees.gumbel(end="vocab_size + 9"), "past the vocabulary"),
        *("out_of_bounds_read", "logits", [200, 208], "logits = tl.load("),
    ),
    (
        *("greedy_rejection_kernel", trees.REJECTION, trees.greedy("draft", "True"), "accepted"),
        *("wrong_value", "output_token_ids", [0, 0], "tl.store(out + number"),
    ),
    (
        *("batch_greedy_kernel", trees.BATCH_STRICT, trees.batch_strict("True"), "accepted"),
        *("wrong_value", "sampled", [1, 1], "tl.store(sampled_ptr"),
    ),
    (
        *("batch_greedy_kernel", trees.BATCH_STRICT, trees.batch_strict(first="first + 1")),
        *("outside", "foreign_read", "input_ids", [3, 3], "draft = tl.load("),
    ),
    (
        *("batch_greedy_kernel", trees.BATCH_REJECTION, trees.batch_greedy("True"), "accepted"),
        *("wrong_value", "sampled", [1, 1], "tl.store(sampled_ptr"),
    ),
]


@pytest.mark.parametrize(
    ("probe", "file", "text", "value", "kind", "tensor", "elements", "part"), BAD
)
def test_a_wrong_access_comes_with_tensor_element_and_line(
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
    assert any(f[:3] == (kind, tensor, elements) for f in found), found
    where = (f"vllm/{file}", line_of(text, part))
    assert where in {f[3:] for f in found if f[1] == tensor}
    assert (reading.path, reading.line) in {f[3:] for f in found}
    assert saw.findings[0]["op"] in text


def test_after_a_masked_step_the_slot_is_in_the_first_block_of_the_request(ask: Ask) -> None:
    _, saw = ask("draft_step_kernel", trees.STEP, trees.step())
    # blocks of 16 slots from number 10 on: position 1 is slot 161, then position 2
    said = [(f["step"], f["request"], f["expected"], f["got"], f["lands_in"]) for f in saw.findings]
    assert said == [
        (2, 0, -1, 161, "block 0 of the request itself, slot 1"),
        (3, 0, -1, 162, "block 0 of the request itself, slot 2"),
    ]


NOTHING = "\n    return\n"


@pytest.mark.parametrize(
    ("probe", "file", "text", "words"),
    [
        ("draft_step_kernel", trees.STEP, trees.step(body=NOTHING), "slots 7 and 7"),
        ("decode_input_kernel", trees.UPDATE, trees.decode_input("position"), "position 3"),
        ("input_update_kernel", trees.UPDATE, trees.update("position"), "30, 30"),
        ("slot_mapping_kernel", trees.V1_TABLE, trees.v1_mapping("lane < 0"), "positions in the"),
        ("batch_slot_mapping_kernel", trees.V2_TABLE, trees.v2_mapping("(lane < 0)"), "slots"),
        ("padding_row_kernel", trees.V2_TABLE, trees.v2_mapping("(lane < 0)"), "slots"),
        ("append_blocks_kernel", trees.V2_TABLE, trees.append("(lane < 0)"), "4 ids fit"),
        ("rejection_kernel", trees.REJECTION, trees.rejection("draft < 0"), "came out as"),
        (
            *("batch_rejection_kernel", trees.BATCH_REJECTION),
            *(trees.batch_rejection("draft < 0"), "came out as"),
        ),
        ("greedy_rejection_kernel", trees.REJECTION, trees.greedy(right="False"), "came out as"),
        ("batch_greedy_kernel", trees.BATCH_STRICT, trees.batch_strict("False"), "came out as"),
    ],
)
def test_a_kernel_that_does_not_do_its_work_is_unknown(
    ask: Ask, probe: str, file: str, text: str, words: str
) -> None:
    reading, saw = ask(probe, file, text)
    assert (reading.value, reading.how, saw.findings) == (None, "unknown", ())
    assert words in reading.detail


def test_a_build_without_the_kernel_is_unknown_and_says_who_answers(ask: Ask) -> None:
    reading, _ = ask("draft_step_kernel", trees.STEP, "x = 1\n")
    assert (reading.value, reading.how) == (None, "unknown")
    assert "inline code here, no kernel; the source depth answers" in reading.detail


def test_a_parameter_that_no_role_knows_is_a_changed_signature(ask: Ask) -> None:
    text = trees.step().replace(
        "block_table_ptr, positions", "block_table_ptr, fresh_ptr, positions"
    )
    reading, _ = ask("draft_step_kernel", trees.STEP, text)
    assert reading.value is None
    assert "signature changed: fresh_ptr is not known" in reading.detail
    # one with a default of its own is passed that
    text = trees.step().replace(
        "PAD_ID: tl.constexpr", "PAD_ID: tl.constexpr, FRESH: tl.constexpr = 3"
    )
    assert ask("draft_step_kernel", trees.STEP, text)[0].value == "starts again"


def test_parameters_are_known_by_name_wherever_they_stand(ask: Ask) -> None:
    text = trees.step().replace(
        "block_table_ptr, positions_ptr, block_table_stride,",
        "block_table_stride, positions_ptr, block_table_ptr,",
    )
    assert ask("draft_step_kernel", trees.STEP, text)[0].value == "starts again"


def test_a_kernel_that_is_endless_is_unknown_and_ends(ask: Ask) -> None:
    body = """
    row = tl.program_id(0)
    while tl.load(positions_ptr + row) >= 0:
        tl.store(out_slot_mapping_ptr + row, row)
    """
    reading, _ = ask("draft_step_kernel", trees.STEP, trees.step(body=body), 8.0)
    assert reading.value is None
    assert "the emulator: " in reading.detail or "did not end" in reading.detail


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "-" * 100_000 + "1\n",
        "x = " + "(" * 300 + "1" + ")" * 300 + "\n",
        "x = 1\0\n",
        "\n".join(f"a{n} = a{n + 1}" for n in range(300)) + "\n" + trees.step("a0"),
    ],
)
def test_a_file_that_breaks_its_reader_is_unknown(ask: Ask, text: str) -> None:
    reading, _ = ask("draft_step_kernel", trees.STEP, text)
    assert (reading.value, reading.how) == (None, "unknown")


def test_a_kernel_that_does_not_compile_is_unknown_in_tritons_words(ask: Ask) -> None:
    text = trees.step().replace("past = position >=", "past = position.nonsense >=")
    reading, _ = ask("draft_step_kernel", trees.STEP, text)
    assert reading.value is None
    assert "nonsense" in reading.detail
