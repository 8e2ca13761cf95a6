"""Checks beyond bounds reach the page: marks of a buffer, races, asserts, what is skipped."""

from __future__ import annotations

from typing import Any

import pytest

LAUNCH = ("--grid", "2", "--block", "64", "--args", "ARGS.yaml")
SHIFT = """
__global__ void shift(int *out, const int *in) {
  __shared__ int tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];
}
"""
ARGS = """
args:
  - {name: out, dtype: i32, shape: 64, fill: uninitialised}
  - {name: in, dtype: i32, shape: 64, fill: FILL}
"""

pytestmark = [pytest.mark.compilers, pytest.mark.usefixtures("nvrtc")]


def test_reading_a_buffer_that_nobody_wrote_is_a_finding_and_writing_it_is_none(
    folder: Any,
) -> None:
    folder.write("shift.cu", SHIFT)
    folder.write("ARGS.yaml", ARGS.replace("FILL", "arange"))
    record = folder.json("emulate", "shift.cu", *LAUNCH, status=0)
    assert record["warnings"] == []  # both blocks write the same
    folder.write("ARGS.yaml", ARGS.replace("FILL", "uninitialised"))
    [finding] = folder.json("emulate", "shift.cu", *LAUNCH, status=1)["findings"]
    assert (finding["kind"], finding["tensor"]) == ("uninitialised_read", "in")
    assert finding["elements"] == [0, 63]
    assert finding["source"]["line"] == 3
    record = folder.json("emulate", "shift.cu", *LAUNCH, "--skip", "initialised", status=0)
    assert "initialised" in record["unchecked"]
    assert "initialised" not in record["checks"]


def test_a_race_on_shared_memory_names_both_sides(folder: Any) -> None:
    folder.write("shift.cu", SHIFT.replace("  __syncthreads();\n", "\n"))
    folder.write("ARGS.yaml", ARGS.replace("FILL", "arange"))
    [finding] = folder.json("emulate", "shift.cu", *LAUNCH, status=1)["findings"]
    assert finding["kind"] == "shared_race"
    assert finding["source"] == {"file": "shift.cu", "line": 3}
    assert "reads at shift.cu:5" in finding["lands_in"]
    page = folder.command("emulate", "shift.cu", *LAUNCH).stdout
    assert "race on shared memory at byte 0" in page
    assert folder.command("emulate", "shift.cu", *LAUNCH, "--skip", "shared_race").returncode == 0


def test_a_race_between_blocks_is_a_warning_and_no_finding(folder: Any) -> None:
    folder.write("shift.cu", SHIFT.replace("tile[63 -", "blockIdx.x + tile[63 -"))
    folder.write("ARGS.yaml", ARGS.replace("FILL", "arange"))
    record = folder.json("emulate", "shift.cu", *LAUNCH, status=0)
    [warned] = record["warnings"]
    assert (warned["tensor"], warned["elements"]) == ("out", [0, 63])
    assert "shift.cu:5" in warned["text"]
    page = folder.command("emulate", "shift.cu", *LAUNCH).stdout
    assert "warning   shift.cu:5: race between blocks" in page


def test_what_a_kernel_prints_and_asserts_is_on_the_page(folder: Any) -> None:
    folder.write(
        "shift.cu",
        """
        #include <cassert>
        #include <cstdio>
        __global__ void shift(int *out, const int *in) {
          if (threadIdx.x == 0) printf("block %d\\n", blockIdx.x);
          assert(in[threadIdx.x] < 63);
        }
        """,
    )
    folder.write("ARGS.yaml", ARGS.replace("FILL", "arange"))
    record = folder.json("emulate", "shift.cu", *LAUNCH, status=1)
    assert record["printed"] == "block 0\nblock 1\n"
    [finding] = record["findings"]
    assert (finding["kind"], finding["thread"]) == ("trap", [63, 0, 0])
    page = folder.command("emulate", "shift.cu", *LAUNCH).stdout
    assert "in[threadIdx.x] < 63" in page
    assert "printed   block 0" in page


def test_a_check_that_is_none_is_refused(folder: Any) -> None:
    folder.write("shift.cu", SHIFT)
    folder.write("ARGS.yaml", ARGS.replace("FILL", "arange"))
    for command in (("emulate", "shift.cu", *LAUNCH), ("sanitize",)):
        done = folder.command(*command, "--skip", "shared_rac", *(["x.py"] * (len(command) == 1)))
        assert (done.returncode, done.stdout) == (2, "")
