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
APART = """
__global__ void shift(int *out, const int *in) {
  __shared__ int tile[64][3];
  tile[threadIdx.x][0] = in[threadIdx.x];
  out[threadIdx.x] = tile[63 - threadIdx.x][0];
}
"""
FILL = """
__global__ void fill(int *out) {
  const int n = 200;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = i;
}
"""
ROWS = "out[threadIdx.x] = in[threadIdx.x * 8]; }"
RACING = "if (threadIdx.x % 8 == 0) out[threadIdx.x] = in[threadIdx.x] + blockIdx.x; }"
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


def test_an_output_that_a_grid_leaves_unwritten_is_noted(folder: Any) -> None:
    folder.write("fill.cu", FILL)
    folder.write("ARGS.yaml", "args: [{name: out, dtype: i32, shape: 200, fill: uninitialised}]")
    record = folder.json("emulate", "fill.cu", *LAUNCH, status=0)
    assert record["notes"] == [
        "this launch left 72 of the 200 elements of out unwritten, the first is out[128]"
    ]
    page = folder.command("emulate", "fill.cu", *LAUNCH).stdout
    assert "left 72 of the 200 elements of out unwritten" in page
    whole = ("--grid", "4", "--block", "64", "--args", "ARGS.yaml")
    assert folder.json("emulate", "fill.cu", *whole, status=0)["notes"] == []
    skipped = folder.json("emulate", "fill.cu", *LAUNCH, "--skip", "initialised", status=0)
    assert skipped["notes"] == []  # nothing was kept of it
    folder.write("fill.cu", FILL.replace("i < n", "i < 0"))
    record = folder.json("emulate", "fill.cu", *LAUNCH, status=0)
    assert record["notes"] == ["this launch wrote no element of out"]


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


def test_a_race_on_bytes_that_do_not_adjoin_is_one_finding(folder: Any) -> None:
    folder.write("shift.cu", APART)
    folder.write("ARGS.yaml", ARGS.replace("FILL", "arange"))
    [finding] = folder.json("emulate", "shift.cu", *LAUNCH, status=1)["findings"]
    assert (finding["elements"], finding["count"]) == ([0, 63 * 12 + 3], 64 * 4)
    page = " ".join(folder.command("emulate", "shift.cu", *LAUNCH).stdout.split())
    assert "race on shared memory at byte 0, 256 bytes up to 759" in page


def test_reads_of_many_rows_are_one_finding_and_of_few_are_one_each(folder: Any) -> None:
    folder.write("shift.cu", "__global__ void shift(int *out, const int *in) {" + ROWS)
    folder.write("ARGS.yaml", ARGS.replace("FILL", "uninitialised"))
    few = (*LAUNCH[:2], "--block", "4", *LAUNCH[4:])
    found = folder.json("emulate", "shift.cu", *few, status=1)["findings"]
    assert [one["elements"] for one in found] == [[n, n] for n in (0, 8, 16, 24)]
    many = (*LAUNCH[:2], "--block", "8", *LAUNCH[4:])
    [finding] = folder.json("emulate", "shift.cu", *many, status=1)["findings"]
    assert (finding["elements"], finding["count"]) == ([0, 56], 8)


def test_a_race_between_blocks_on_many_rows_is_one_warning(folder: Any) -> None:
    folder.write("shift.cu", "__global__ void shift(int *out, const int *in) {" + RACING)
    folder.write("ARGS.yaml", ARGS.replace("FILL", "arange"))
    [warned] = folder.json("emulate", "shift.cu", *LAUNCH, status=0)["warnings"]
    assert warned["elements"] == [0, 56]
    assert "write of element 0 of out to 56, 8 of them, by block (0, 0, 0)" in warned["text"]


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


def test_limits_and_constants_of_the_c_library_are_there(folder: Any) -> None:
    folder.write(
        "shift.cu",
        """
        #include <cfloat>
        #include <climits>
        #include <cmath>
        #include <limits>
        __device__ void expect(bool right) { if (!right) __trap(); }
        __global__ void shift(int *out, const int *in) {
          expect(FLT_MAX == __int_as_float(0x7f7fffff) && FLT_MIN == __int_as_float(0x00800000));
          expect(FLT_EPSILON == __int_as_float(0x34000000) && isinf(INFINITY) && isnan(NAN));
          expect(DBL_MAX == __longlong_as_double(0x7fefffffffffffffLL) && HUGE_VAL > DBL_MAX);
          expect(DBL_MIN == __longlong_as_double(0x0010000000000000LL) && -INFINITY < -FLT_MAX);
          expect(DBL_EPSILON == __longlong_as_double(0x3cb0000000000000LL));
          expect(INT_MAX == 0x7fffffff && INT_MIN == ~INT_MAX && UINT_MAX == ~0u);
          expect(LLONG_MIN == 1LL << 63 && ULLONG_MAX == ~0ULL && LONG_MAX == LLONG_MAX);
          expect(SHRT_MIN == (short)0x8000 && USHRT_MAX == (ushort)~0 && UCHAR_MAX == 255);
          expect(std::numeric_limits<float>::lowest() == -FLT_MAX && fabs(sin(M_PI)) < 1e-15);
        }
        """,
    )
    folder.write("ARGS.yaml", ARGS.replace("FILL", "arange"))
    assert folder.json("emulate", "shift.cu", *LAUNCH, status=0)["findings"] == []


def test_infinity_is_known_without_a_header_as_to_nvcc(folder: Any) -> None:
    source = "__global__ void shift(int *out, const int *in) { if (in[0] < -INFINITY) __trap(); }"
    folder.write("shift.cu", source)
    folder.write("ARGS.yaml", ARGS.replace("FILL", "arange"))
    assert folder.json("emulate", "shift.cu", *LAUNCH, status=0)["findings"] == []
