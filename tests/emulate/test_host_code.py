"""Host code of a CUDA C++ file: what is blanked out, what stays, and on which lines."""

from __future__ import annotations

import pytest

from specrepro.repro.emulation.host_code import LeftOut, device_code

SOURCE = """\
#include <cstdio>
#define HD __host__ __device__
struct P { int n; };
HD inline int twice(int x) { return 2 * x; }
namespace ours {
// void comment() { }
extern "C" __global__ void __launch_bounds__(128) k(int *p, P q) { if (q.n) { p[0] = twice(1); } }
template <typename T>
void launch(T *p) {
  k<<<1, 1>>>(p, P{"}"[0]});
}
}  // namespace ours
__device__ int table[] = {1, 2};
constexpr int three() { return 3; }
int main() { return 0; }
"""


def test_functions_without_a_device_mark_are_blanked_and_nothing_else() -> None:
    device = device_code(SOURCE)
    assert device.left_out == (LeftOut("launch", 8, 11), LeftOut("main", 15, 15))
    lines = device.text.split("\n")
    assert [len(line) for line in lines] == [len(line) for line in SOURCE.split("\n")]
    kept = {n for n, line in enumerate(lines, 1) if line.strip()}
    assert kept == {1, 2, 3, 4, 5, 6, 7, 12, 13, 14}
    assert all(lines[n - 1] == SOURCE.split("\n")[n - 1] for n in kept)


@pytest.mark.parametrize(
    "source",
    [
        "namespace a {" * 9999,
        "",
        "{",
        "}",
        "int f() {",
        'extern "C" {',
        "/* ",
        '"',
        'void f() { " } ',
        "'",
        'R"(',
        "#",
    ],
)
def test_broken_text_is_left_to_the_compiler(source: str) -> None:
    assert len(device_code(source).text) == len(source)
