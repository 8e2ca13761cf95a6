"""`specrepro emulate` as a shell sees it: PTX and CUDA C++, findings, statuses, pages."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from specrepro.repro.compilation import cuda_headers

ADD_YAML = """
args:
  - {name: a, dtype: i32, shape: A, fill: arange}
  - {name: c, dtype: i32, shape: 32, fill: uninitialised}
  - {u32: N}
"""
LAUNCH = ("--grid", "1", "--block", "32", "--args", "ARGS.yaml")


def arguments(size: int, number: int) -> str:
    return ADD_YAML.replace("A,", f"{size},").replace("N}", f"{number}}}")


def test_a_clean_launch_ends_with_0_and_says_what_was_checked(folder: Any, add_ptx: str) -> None:
    folder.write("add.ptx", add_ptx)
    folder.write("ARGS.yaml", arguments(32, 32))
    record = folder.json("emulate", "add.ptx", *LAUNCH, status=0)
    assert record["schema"] == "specrepro/emulate@1"
    assert record["findings"] == []
    assert record["unsupported"] is None
    assert "bounds" in record["checks"]
    assert record["kernel"]["entry"] == "add"
    assert record["launch"]["grid"] == [1, 1, 1]
    assert record["launch"]["block"] == [32, 1, 1]
    assert [b["name"] for b in record["launch"]["buffers"]] == ["a", "c"]


def test_a_finding_in_ptx_without_line_information_stands_on_its_line(
    folder: Any, add_ptx: str
) -> None:
    path = folder.write("add.ptx", add_ptx)
    folder.write("ARGS.yaml", arguments(30, 32))
    [finding] = folder.json("emulate", "add.ptx", *LAUNCH, status=1)["findings"]
    line = path.read_text().splitlines().index("ld.global.u32 %v, [%a];") + 1
    assert finding["source"] == {"file": "add.ptx", "line": line}
    assert finding["kind"] == "out_of_bounds_read"
    assert (finding["tensor"], finding["elements"]) == ("a", [30, 31])
    assert (finding["block"], finding["thread"]) == ([0, 0, 0], [30, 0, 0])
    page = folder.command("emulate", "add.ptx", *LAUNCH)
    assert page.returncode == 1
    assert "read of 4 bytes at element 30 of a i32[30], first byte past its end" in page.stdout
    assert f"▶ {line:4} │ ld.global.u32 %v, [%a];" in page.stdout
    quiet = folder.command("emulate", "add.ptx", *LAUNCH, "-q")
    assert quiet.stdout == "add   1 FINDING\n"


def test_what_is_not_executed_is_unknown_with_opcode_and_line(folder: Any, add_ptx: str) -> None:
    text = add_ptx.replace("add.u32 %v, %v, %n;", "tcgen05.alloc.cta %v, %n;")
    path = folder.write("add.ptx", text)
    line = next(n for n, at in enumerate(path.read_text().splitlines(), 1) if "tcgen05" in at)
    folder.write("ARGS.yaml", arguments(32, 32))
    record = folder.json("emulate", "add.ptx", *LAUNCH, status=125)
    assert "tcgen05" in record["unsupported"]["message"]
    assert record["unsupported"]["where"] == f"add, PTX line {line}"
    assert folder.command("emulate", "add.ptx", *LAUNCH).stdout.startswith("add.ptx   UNKNOWN")


def test_what_is_not_executed_has_the_line_of_the_source_where_the_ptx_tells_it(
    folder: Any, add_ptx: str
) -> None:
    wrong = '.file 1 "add.cu"\n.loc 1 7 0\ntcgen05.alloc.cta %v, %n;'
    path = folder.write("add.ptx", add_ptx.replace("add.u32 %v, %v, %n;", wrong))
    line = next(n for n, at in enumerate(path.read_text().splitlines(), 1) if "tcgen05" in at)
    folder.write("ARGS.yaml", arguments(32, 32))
    record = folder.json("emulate", "add.ptx", *LAUNCH, status=125)
    assert record["unsupported"]["where"] == f"add, PTX line {line}, add.cu:7"


def test_a_launch_that_does_not_end_is_unknown(folder: Any, add_ptx: str) -> None:
    folder.write("add.ptx", add_ptx.replace("mad.wide.u32 %c", "L: bra L;\nmad.wide.u32 %c"))
    folder.write("ARGS.yaml", arguments(32, 32))
    done = folder.command("emulate", "add.ptx", *LAUNCH, "--timeout", "2")
    assert done.returncode == 125
    assert "UNKNOWN" in done.stdout


def test_pointers_in_a_table_are_followed_and_charged_to_their_buffers(folder: Any) -> None:
    folder.write(
        "gather.ptx",
        """
        .version 8.8
        .target sm_80
        .address_size 64
        .visible .entry gather(.param .u64 table, .param .u64 out)
        {
        .reg .b64 %t, %o, %e; .reg .b32 %i, %v;
        ld.param.u64 %t, [table];
        ld.param.u64 %o, [out];
        mov.u32 %i, %tid.x;
        mad.wide.u32 %t, %i, 8, %t;
        ld.global.u64 %e, [%t];
        ld.global.u32 %v, [%e];
        mad.wide.u32 %o, %i, 8, %o;
        st.global.u32 [%o], %v;
        ret;
        }
        """,
    )
    folder.write(
        "ARGS.yaml",
        """
        args:
          - name: t
            dtype: u64
            shape: 3
            fill: {values: [{ptr: a}, {ptr: a, offset: 2}, {ptr: t}]}
          - {view: b, offset: 1}
        memory:
          - {name: a, dtype: i32, shape: 2}
          - {name: b, dtype: i32, shape: 5}
        """,
    )
    record = folder.json(
        "emulate", "gather.ptx", "--grid", "1", "--block", "3", "--args", "ARGS.yaml", status=1
    )
    seen = [(f["kind"], f["tensor"], f["elements"], f["thread"][0]) for f in record["findings"]]
    assert seen == [
        ("out_of_bounds_read", "a", [2, 2], 1),
        ("out_of_bounds_write", "b", [5, 5], 2),
    ]


def test_a_unit_of_another_request_is_foreign(folder: Any, add_ptx: str) -> None:
    folder.write("add.ptx", add_ptx)
    folder.write(
        "ARGS.yaml",
        """
        args:
          - {name: a, dtype: i32, shape: 32, owner: {unit: 16, of: [0, 1]}}
          - {name: c, dtype: i32, shape: 32}
          - {u32: 32}
        requests: [0]
        """,
    )
    record = folder.json("emulate", "add.ptx", *LAUNCH, status=1)
    [finding] = record["findings"]
    assert (finding["kind"], finding["elements"]) == ("foreign_read", [16, 31])
    assert finding["lands_in"] == "request 1's unit 1 of a"
    assert "ownership" in record["checks"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--grid", "0"), "--grid needs"),
        (("--grid", "1,2,3,4"), "--grid needs"),
        (("--block", "x"), "--block needs"),
        (("--entry", "ad"), "did you mean `add`?"),
        (("--num-warps", "4"), "--num-warps is for Triton"),
        (("--args", "none.yaml"), "no such file"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_2_and_an_empty_stdout(
    folder: Any, add_ptx: str, options: tuple[str, str], said: str
) -> None:
    folder.write("add.ptx", add_ptx)
    folder.write("ARGS.yaml", arguments(32, 32))
    done = folder.command("emulate", "add.ptx", *LAUNCH, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{u32: 32}", "{u64: 32}", "ARGS.yaml:4:5: args[2]: has 8 bytes, parameter 2 of add"),
        ("{u32: 32}", "{f32: 32}", "is a float"),
        ("{u32: 32}", "{constexpr: 32}", "constexpr is for Triton kernels only"),
        ("  - {u32: 32}\n", "", "2 arguments, but add has 3 parameters"),
        ("arange", "{file: x.npy}", "is no .npy file in the folder"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_at_their_place(
    folder: Any, add_ptx: str, old: str, new: str, said: str
) -> None:
    folder.write("add.ptx", add_ptx)
    folder.write("ARGS.yaml", arguments(32, 32).replace(old, new))
    done = folder.command("emulate", "add.ptx", *LAUNCH)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_template_printed_for_a_kernel_launches_it(folder: Any, add_ptx: str) -> None:
    folder.write("add.ptx", add_ptx)
    done = folder.command("emulate", "add.ptx", "--write-args")
    assert done.returncode == 0
    folder.write("ARGS.yaml", done.stdout)
    assert folder.json("emulate", "add.ptx", *LAUNCH, status=0)["findings"] == []


CUDA = """
#include <cstdint>
#include <vector>
struct Scale { int32_t n; float by; };
namespace ours {
__global__ void scale(float *x, Scale s) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= s.n) x[i] *= s.by;
}
template <typename T> __global__ void fill(T *x) { x[threadIdx.x] = T(1); }
}
int main() {
  std::vector<float> x;
  ours::scale<<<1, 64>>>(x.data(), Scale{64, 2.0f});
}
"""


@pytest.mark.compilers
@pytest.mark.usefixtures("nvrtc")
def test_a_cuda_file_is_compiled_without_its_host_code(folder: Any) -> None:
    folder.write("scale.cu", CUDA)
    folder.write(
        "ARGS.yaml",
        """
        args:
          - {name: x, dtype: f32, shape: 63, fill: arange}
          - {struct: [{i32: 63}, {f32: 2}]}
        """,
    )
    launch = ("emulate", "scale.cu", "--grid", "2", "--block", "32", "--args", "ARGS.yaml")
    record = folder.json(*launch, "--entry", "scale", status=1)
    assert {f["kind"] for f in record["findings"]} == {"out_of_bounds_read", "out_of_bounds_write"}
    for finding in record["findings"]:
        assert finding["elements"] == [63, 63]
        assert finding["source"] == {"file": "scale.cu", "line": 7}
        assert (finding["block"], finding["thread"]) == ([1, 0, 0], [31, 0, 0])
    assert record["notes"] == [
        "host code left out: main, lines 11–14",
        "header left out: vector",
    ]
    done = folder.command(*launch, "--entry", "fill")
    assert done.returncode == 2  # a template has no instance by itself
    folder.write("ARGS.yaml", "args:\n  - {name: x, dtype: f64, shape: 32}\n")
    record = folder.json(*launch, "--entry", "ours::fill<double>", status=0)
    assert record["findings"] == []


@pytest.mark.compilers
@pytest.mark.usefixtures("nvrtc")
def test_a_cuda_file_that_does_not_compile_is_unknown_in_the_compilers_words(folder: Any) -> None:
    folder.write("bad.cu", "__global__ void k(int *p) {\n  p[0] = q;\n}\n")
    folder.write("ARGS.yaml", "args:\n  - {name: p, dtype: i32, shape: 1}\n")
    record = folder.json("emulate", "bad.cu", *LAUNCH, status=125)
    assert 'bad.cu(2): error: identifier "q" is undefined' in record["unsupported"]["message"]


@pytest.mark.compilers
@pytest.mark.usefixtures("nvrtc")
def test_a_template_of_a_cuda_kernel_has_its_names_and_types(folder: Any) -> None:
    folder.write("scale.cu", CUDA)
    done = folder.command("emulate", "scale.cu", "--entry", "scale", "--write-args")
    assert "- {name: x, dtype: f32, shape: [1024], fill: zeros}" in done.stdout
    assert "# Scale s" in done.stdout


def test_a_struct_is_laid_out_as_c_does(parsed: Any) -> None:
    from specrepro.repro.emulation.job import _Given
    from specrepro.repro.emulator.ptx import parse

    [argument] = parsed(
        "args:\n  - {struct: [{i8: -1}, {f64: 0.5}, {bool: true}, {i16: 2}, {f16: 1}, {i32: 9}]}\n"
    ).args
    kernel = parse(
        ".version 8.8\n.target sm_80\n.address_size 64\n"
        ".visible .entry k(.param .align 8 .b8 s[32])\n{\nret;\n}\n"
    ).kernels["k"]
    given = _Given(parsed("args: []"), kernel, [])
    packed = given.value(0, argument.value, kernel.params[0], argument.place)
    assert packed == struct.pack("@bd?heil0d"[:-3] + "0d", -1, 0.5, True, 2, 1.0, 9)


def test_a_kernel_that_reads_a_clock_is_said_to(folder: Any, add_ptx: str) -> None:
    clocked = add_ptx.replace("mov.u32 %i,", "mov.u32 %v, %clock;\nmov.u32 %i,")
    folder.write("ARGS.yaml", arguments(32, 32))
    notes = {}
    for name, text in (("add", add_ptx), ("clocked", clocked)):
        folder.write(f"{name}.ptx", text)
        notes[name] = folder.json("emulate", f"{name}.ptx", *LAUNCH, status=0)["notes"]
    assert notes["add"] == []
    [note] = notes["clocked"]
    assert note.startswith("%clock has no meaning here")


CUB = """
#include <cooperative_groups.h>
#include <cub/block/block_reduce.cuh>

__global__ void total(const int* in, int* out) {
  using Reduce = cub::BlockReduce<int, 128>;
  __shared__ typename Reduce::TempStorage space;
  int rank = cooperative_groups::this_thread_block().thread_rank();
  int sum = Reduce(space).Sum(in[blockIdx.x * 128 + rank]);
  if (rank == 0) out[blockIdx.x] = sum;
}
"""


@pytest.mark.compilers
@pytest.mark.usefixtures("nvrtc")
def test_headers_of_the_cuda_library_are_found(folder: Any) -> None:
    if not (cuda_headers()[0] / "nv" / "target").is_file():
        pytest.skip("nvidia-cuda-cccl is not installed")
    folder.write("total.cu", CUB)
    folder.write(
        "ARGS.yaml",
        """
        args:
          - {name: in, dtype: i32, shape: 250, fill: arange}
          - {name: out, dtype: i32, shape: 2, fill: uninitialised}
        """,
    )
    launch = ("emulate", "total.cu", "--grid", "2", "--block", "128", "--args", "ARGS.yaml")
    record = folder.json(*launch, status=1)
    assert record["notes"] == []
    [finding] = record["findings"]
    line = CUB.strip().splitlines().index(next(x for x in CUB.splitlines() if "Sum(" in x)) + 1
    assert (finding["tensor"], finding["elements"]) == ("in", [250, 255])
    assert finding["source"] == {"file": "total.cu", "line": line}
