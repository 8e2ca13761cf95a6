"""What the kernels of 35 releases do, against what was read and run in them before there was an
emulator: values, and where the fault is known, the file, tensor, element and line.

Needs the package index, and Triton to compile with. About 40 s of CPU time from an empty cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from specrepro.repro.check.builds import Builds
from specrepro.repro.check.cache import Cache, default_folder
from specrepro.repro.check.kernel.compiler import Compiler, compiler
from specrepro.repro.check.kernel.depth import Looked, look_at
from specrepro.repro.check.kernel.probes import PROBES
from specrepro.repro.errors import SpecreproError

pytest.importorskip("triton", reason="Triton is not installed")
pytestmark = [pytest.mark.network, pytest.mark.compilers]

TABLES = Path(__file__).parent / "releases"


def column(table: str, name: str) -> dict[str, str]:
    lines = (TABLES / f"{table}.txt").read_text(encoding="utf-8").splitlines()
    head, *body = [[cell.strip() for cell in line.split("|")] for line in lines]
    return {cells[0]: cells[head.index(name)] for cells in body}


STEP = column("tail", "v1_draft_position")
UPDATE = column("tail", "v2_draft_position")
ROW = column("gdn", "state_copy_row")
RELEASES = list(STEP)
Seen = tuple[str, Looked]


def number(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


@pytest.fixture(scope="module")
def builds() -> Iterator[Builds]:
    with Builds() as opened:
        try:
            opened.versions("0.11.0..0.33.0")
        except SpecreproError as error:
            pytest.skip(f"the package index cannot be read: {error}")
        yield opened


@pytest.fixture(scope="module")
def made() -> Compiler:
    return compiler(Cache(default_folder(), print))


@pytest.fixture(scope="module", params=RELEASES)
def seen(request: pytest.FixtureRequest, builds: Builds, made: Compiler) -> Seen:
    tree = builds.open(request.param)
    try:
        return request.param, look_at(tree, made, PROBES, [], 300.0)
    finally:
        tree.close()


def value(seen: Seen, probe: str) -> str | Mapping[str, str] | None:
    return seen[1].readings[probe].value


def test_the_draft_step_goes_on_in_the_first_block_since_it_is_a_kernel(seen: Seen) -> None:
    release, looked = seen
    reading, saw = looked.readings["draft_step_kernel"], looked.saw["draft_step_kernel"]
    if STEP[release].startswith("inline"):
        assert reading.value is None
        assert "inline code here, no kernel; the source depth answers" in reading.detail
        return
    assert STEP[release].startswith("kernel, wraps")
    assert reading.value == "starts again"
    first = saw.findings[0]
    assert (first["kind"], first["tensor"], first["elements"]) == (
        "wrong_value",
        "out_slot_mapping",
        [0, 0],
    )
    # padding once, then position 1: the second slot of the first block, which is number 10
    assert (first["step"], first["expected"], first["got"]) == (2, -1, 10 * 16 + 1)
    assert first["source"]["file"] == "vllm/v1/spec_decode/utils.py"
    assert int(STEP[release].rpartition(":")[2]) < first["source"]["line"]
    assert "out_slot_mapping_ptr" in dict(reading.excerpt)[first["source"]["line"]]


def test_the_update_of_inputs_is_clamped_wherever_there_is_one(seen: Seen) -> None:
    expected = None if UPDATE[seen[0]] == "—" else "clamped"
    assert value(seen, "input_update_kernel") == expected


def test_the_state_copy_uses_the_row_of_the_batch_from_0_25_0_to_0_31_0(seen: Seen) -> None:
    release, looked = seen
    word = ROW[release].rpartition(" ")[0]
    expected = {"": None, "BATCH ROW (0)": "batch", "REQ SLOT (5)": "request"}[word]
    assert value(seen, "state_copy_kernel") == expected
    found = looked.saw["state_copy_kernel"].findings
    assert bool(found) == (expected == "batch")
    if found:
        assert (0, 25, 0) <= number(release) <= (0, 31, 0)
        # request 5 is in row 0, which by then is request 3's
        rows = {
            (f["request"], f["elements"][0] // 4) for f in found if f["tensor"] == "block_table"
        }
        assert rows == {(5, 0), (3, 1)}
        kinds = {f["kind"] for f in found if f["tensor"] == "recurrent_state"}
        assert kinds == {"foreign_read", "foreign_write"}
        assert found[0]["source"]["file"] == "vllm/v1/worker/mamba_utils.py"


def test_no_release_bounds_the_accepted_count(seen: Seen) -> None:
    _, looked = seen
    assert value(seen, "recurrent_kernel") == "unchecked"
    found = looked.saw["recurrent_kernel"].findings
    assert [(f["kind"], f["tensor"], f["elements"]) for f in found] == [
        ("out_of_bounds_read", "ssm_state_indices", [-1, -1]),  # count 0
        ("foreign_read", "ssm_state_indices", [4, 4]),  # one past the width, 4
        ("out_of_bounds_read", "ssm_state_indices", [8, 8]),  # one past the table of two
    ]


# probe → (first release, last, what its kernel does there); in the others there is none
END = "0.33.0"
SAID = {
    "decode_input_kernel": [("0.12.0", END, "clamped")],
    "slot_mapping_kernel": [("0.19.0", END, "unchecked")],
    "batch_slot_mapping_kernel": [("0.12.0", END, "unchecked")],
    "padding_row_kernel": [("0.15.0", "0.30.0", "reads outside"), ("0.31.0", END, "guarded")],
    "append_blocks_kernel": [("0.12.0", "0.13.0", "silent")],
    "rejection_kernel": [("0.11.0", "0.24.0", "looked up"), ("0.25.0", END, "refused")],
    "batch_rejection_kernel": [("0.18.0", "0.24.0", "looked up"), ("0.25.0", END, "refused")],
    # tokens are compared, so a placeholder is another token than the target's in all of them
    "greedy_rejection_kernel": [("0.11.0", END, "rejected")],
    "batch_greedy_kernel": [("0.12.0", END, "rejected")],
    "gumbel_kernel": [("0.14.0", "0.24.0", "reads outside"), ("0.25.0", END, "guarded")],
    # the copies share one body, and with it the row
    "state_precopy_kernel": [("0.25.0", "0.31.0", "batch"), ("0.32.0", END, "request")],
    "conv_copy_kernel": [("0.25.0", "0.31.0", "batch"), ("0.32.0", END, "request")],
    "conv_rows_copy_kernel": [("0.25.0", "0.31.0", "batch"), ("0.32.0", END, "request")],
    "accepted_copy_kernel": [("0.22.0", END, "unchecked")],
    "gated_recurrent_kernel": [("0.18.0", END, "unchecked")],
    # the one kernel that checks the count
    "mtp_recurrent_kernel": [("0.33.0", END, "checked")],
    "conv_update_kernel": [("0.11.0", END, "unchecked")],
}


@pytest.mark.parametrize("probe", SAID)
def test_a_kernel_does_in_each_release_what_was_read_there(seen: Seen, probe: str) -> None:
    release = number(seen[0])
    expected = next(
        (said for first, last, said in SAID[probe] if number(first) <= release <= number(last)),
        None,
    )
    assert value(seen, probe) == expected, seen[1].readings[probe].detail


def test_a_copy_before_a_step_stays_with_the_requests_of_that_step(seen: Seen) -> None:
    assert seen[1].saw["state_precopy_kernel"].findings == ()


def test_every_probe_has_a_table_here() -> None:
    with_their_own = {
        "draft_step_kernel",
        "input_update_kernel",
        "state_copy_kernel",
        "recurrent_kernel",
    }
    assert {*SAID, *with_their_own} == set(PROBES)


def test_every_kernel_that_is_there_is_compiled_and_run(seen: Seen) -> None:
    """What is not known is a kernel that is not there, never one that could not be followed."""
    for probe, reading in seen[1].readings.items():
        if reading.value is None:
            assert reading.detail.startswith("no kernel "), f"{probe}: {reading.detail}"
