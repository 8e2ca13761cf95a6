"""Matrix products: tl.dot kernels against numpy, and each form of mma element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from specrepro.repro.emulator.checks import ALL
from specrepro.repro.emulator.eight_bits import EIGHT_BITS
from specrepro.repro.emulator.launch import Buffer, LaunchReport
from specrepro.repro.emulator.ptx import Kernel
from specrepro.repro.emulator.rounding import from_bf16, to_bf16
from specrepro.repro.records import Kind

Array = np.ndarray[Any, Any]
Run = Callable[..., LaunchReport]
Build = Callable[..., Kernel]
SHARED = 48 << 10
M, N, K = 40, 48, 70  # of `product`, no multiples of its tiles
TOLERANCE = {"f16": 1e-4, "bf16": 1e-4, "tf32": 0.1, "s8": 0, "f64": 1e-12, "e4m3": 1e-4}


def operands(name: str, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Random values as stored, and as float64."""
    rng = np.random.default_rng(shape[0])
    values = rng.standard_normal(shape)
    if name == "f16":
        stored: Array = values.astype(np.float16)
        return stored, stored.astype(np.float64)
    if name == "bf16":
        stored = to_bf16(values.astype(np.float32))
        return stored, from_bf16(stored).astype(np.float64)
    if name == "s8":
        stored = rng.integers(-128, 128, shape).astype(np.int8)
        return stored, stored.astype(np.float64)
    if name == "e4m3":
        stored = EIGHT_BITS["e4m3"].encode(values, saturate=True)
        return stored, EIGHT_BITS["e4m3"].decode(stored).astype(np.float64)
    stored = values.astype(np.float64 if name == "f64" else np.float32)
    return stored, stored.astype(np.float64)


def check(name: str, kernel: Kernel, launch_grid: Any) -> None:
    tiled = name in ("f16", "bf16", "tf32")
    m, n, k = (M, N, K) if tiled else (32, 32, 32)
    (a, exact_a), (b, exact_b) = operands(name, (m, k)), operands(name, (k, n))
    c = np.zeros((m, n), {"s8": np.int32, "f64": np.float64}.get(name, np.float32))
    args = [Buffer("a", a.ravel()), Buffer("b", b.ravel()), Buffer("c", c.reshape(-1))]
    if tiled:
        report = launch_grid(kernel, (2, 2, 1), (128, 1, 1), [*args, m, n, k])
    else:
        report = launch_grid(kernel, (1, 1, 1), (128, 1, 1), args)
    assert report.accesses == ()
    assert all(race.benign for race in report.warnings)
    assert np.abs(c - exact_a @ exact_b).max() <= TOLERANCE[name]


@pytest.fixture
def launch_grid() -> Callable[..., LaunchReport]:
    from specrepro.repro.emulator.launch import launch

    def go(*args: Any) -> LaunchReport:
        return launch(*args, shared_bytes=SHARED, checks=ALL)

    return go


@pytest.mark.parametrize("name", ["f16", "bf16", "tf32", "s8", "f64"])
def test_a_product_of_triton_is_that_of_numpy(
    name: str, kept_product: Callable[[str], Kernel], launch_grid: Any
) -> None:
    check(name, kept_product(name), launch_grid)


@pytest.mark.compilers
@pytest.mark.parametrize("arch", [80, 90, 100, 120])
@pytest.mark.parametrize("name", ["f16", "bf16", "tf32", "s8", "f64", "e4m3"])
def test_a_product_runs_as_compiled_for_every_target(
    name: str, arch: int, fresh_product: Callable[[str, int], Kernel], launch_grid: Any
) -> None:
    if name == "e4m3" and arch == 80:
        pytest.skip("sm_80 has no e4m3")
    check(name, fresh_product(name, arch), launch_grid)


def test_a_short_operand_is_found_through_asynchronous_copies(
    kept_product: Callable[[str], Kernel], launch_grid: Any
) -> None:
    a, b = np.ones(M * K - 1, np.float32), np.ones(K * N, np.float32)
    c = np.zeros(M * N, np.float32)
    args = [Buffer("a", a), Buffer("b", b), Buffer("c", c), M, N, K]
    (access,) = launch_grid(kept_product("tf32"), (2, 2, 1), (128, 1, 1), args).accesses
    assert (access.kind, access.buffer) == (Kind.OUT_OF_BOUNDS_READ, "a")
    assert (access.elements.tolist(), access.file) == ([M * K - 1], "products.py")


# --- one mma, its fragments laid out from the tables of the PTX ISA -------------------------------
FORMS = [
    # shape, A and B, C and D, registers of A, B, C
    ("m16n8k16", "f16", "f32", 4, 2, 4),
    ("m16n8k8", "f16", "f32", 2, 1, 4),
    ("m16n8k16", "bf16", "f32", 4, 2, 4),
    ("m16n8k8", "tf32", "f32", 4, 2, 4),
    ("m16n8k4", "tf32", "f32", 2, 1, 4),
    ("m16n8k16", "f16", "f16", 4, 2, 2),
    ("m16n8k32", "s8", "s32", 4, 2, 4),
    ("m16n8k16", "u8", "s32", 2, 1, 4),
    ("m16n8k32", "e4m3", "f32", 4, 2, 4),
    ("m16n8k32", "e5m2", "f32", 4, 2, 4),
]
DTYPES = {"f16": "<f2", "bf16": "<u2", "tf32": "<f4", "s8": "i1", "u8": "u1"}


def a_place(kind: str, register: int, lane: int, element: int) -> tuple[int, int]:
    """Row and column of an element of A (the figures of mma.m16n8k*, by type)."""
    group, inside = lane >> 2, lane & 3
    row = group + 8 * (register & 1)
    if kind in ("f16", "bf16"):
        return row, inside * 2 + element + 8 * (register >> 1)
    if kind == "tf32":
        return row, inside + 4 * (register >> 1)
    return row, inside * 4 + element + 16 * (register >> 1)


def b_place(kind: str, register: int, lane: int, element: int) -> tuple[int, int]:
    group, inside = lane >> 2, lane & 3
    if kind in ("f16", "bf16"):
        return inside * 2 + element + 8 * register, group
    if kind == "tf32":
        return inside + 4 * register, group
    return inside * 4 + element + 16 * register, group


def c_place(number: int, lane: int) -> tuple[int, int]:
    return (lane >> 2) + 8 * (number >> 1), (lane & 3) * 2 + (number & 1)


def fragment(kind: str, matrix: Array, registers: int, place: Any) -> Array:
    """uint32[registers, 32] of a matrix of stored elements."""
    packed = 4 // matrix.itemsize
    found = np.zeros((registers, 32, packed), matrix.dtype)
    for register in range(registers):
        for lane in range(32):
            for element in range(packed):
                found[register, lane, element] = matrix[place(kind, register, lane, element)]
    return found.view(np.uint32).reshape(registers, 32)


@pytest.mark.parametrize(("shape", "kind", "result", "na", "nb", "nc"), FORMS)
def test_mma_multiplies_what_the_fragments_hold(
    shape: str, kind: str, result: str, na: int, nb: int, nc: int, build: Build, run: Run
) -> None:
    depth = int(shape.split("k")[1])
    rng = np.random.default_rng(depth)

    def random(rows: int, columns: int) -> tuple[Array, Array]:
        if kind in ("s8", "u8"):
            stored: Array = rng.integers(0, 128, (rows, columns)).astype(DTYPES[kind])
            return stored, stored.astype(np.float64)
        values = rng.integers(-8, 9, (rows, columns)) / 4  # exact in every format here
        if kind in EIGHT_BITS:
            stored = EIGHT_BITS[kind].encode(values, saturate=True)
        elif kind == "bf16":
            stored = to_bf16(values.astype(np.float32))
        else:
            stored = values.astype(DTYPES[kind])
        return stored, values

    (a, exact_a), (b, exact_b) = random(16, depth), random(depth, 8)
    c = rng.integers(-9, 9, (16, 8))
    regs = {"a": na, "b": nb, "c": nc, "d": nc}
    lines = ["mov.u32 %w, %tid.x; mad.wide.u32 %x, %w, 4, %p0; mad.wide.u32 %y, %w, 4, %p1;"]
    number = 0
    for name in "abc":
        for register in range(regs[name]):
            lines.append(f"ld.global.b32 %{name}{register}, [%x+{128 * number}];")
            number += 1
    groups = {n: "{" + ", ".join(f"%{n}{i}" for i in range(regs[n])) + "}" for n in "abcd"}
    types = f"{result}.{kind}.{kind}.{result}"
    lines.append(
        f"mma.sync.aligned.{shape}.row.col.{types} "
        f"{groups['d']}, {groups['a']}, {groups['b']}, {groups['c']};"
    )
    lines += [f"st.global.b32 [%y+{128 * i}], %d{i};" for i in range(nc)]
    declarations = ".reg .b64 %x, %y; " + " ".join(f".reg .b32 %{n}<{c}>;" for n, c in regs.items())
    out = np.zeros(32 * nc, np.uint32)
    start = np.zeros((4, 32), np.int32 if result == "s32" else np.float32)
    for i in range(4):
        for lane in range(32):
            start[i, lane] = c[c_place(i, lane)]
    if result == "f16":
        halves = start.astype(np.float16).reshape(2, 2, 32).transpose(0, 2, 1)
        start = np.ascontiguousarray(halves).view(np.uint32).reshape(2, 32)
    inputs = np.concatenate(
        [fragment(kind, a, na, a_place), fragment(kind, b, nb, b_place), start.view(np.uint32)]
    )
    kernel = build("\n".join(lines), 2, declarations)
    report = run(kernel, 1, 32, [Buffer("in", inputs.reshape(-1)), Buffer("out", out)])
    assert report.accesses == ()
    wanted = exact_a @ exact_b + c
    if result == "f16":
        pairs = out.view(np.float16).reshape(2, 32, 2).transpose(0, 2, 1).reshape(4, 32)
        found = {c_place(i, lane): float(pairs[i, lane]) for i in range(4) for lane in range(32)}
    else:
        values = out.view(np.int32 if result == "s32" else np.float32).reshape(4, 32)
        found = {c_place(i, lane): float(values[i, lane]) for i in range(4) for lane in range(32)}
    for place, value in found.items():
        assert value == (np.float16(wanted[place]) if result == "f16" else wanted[place])


LOADED = """.shared .align 16 .b8 tile[512];
.reg .b32 %d<4>, %s, %m, %v; .reg .b64 %y;"""


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_gives_two_elements_of_a_row_and_stmatrix_puts_them_back(
    count: int, transposed: bool, build: Build, run: Run
) -> None:
    trans = ".trans" if transposed else ""
    group = "{" + ", ".join(f"%d{i}" for i in range(count)) + "}"
    form = f"sync.aligned.m8n8.x{count}{trans}.shared.b16"
    body = f"""mov.u32 %m, tile;
    shl.b32 %s, %t, 4; add.u32 %s, %s, %m;
    mad.wide.u32 %y, %t, 16, %p0;
    ld.global.v4.b32 {{%d0, %d1, %d2, %d3}}, [%y];
    st.shared.v4.b32 [%s], {{%d0, %d1, %d2, %d3}};
    bar.sync 0;
    ldmatrix.{form} {group}, [%s];
    mad.wide.u32 %y, %t, {4 * count}, %p1;
    {" ".join(f"st.global.b32 [%y+{4 * i}], %d{i};" for i in range(count))}
    bar.sync 0;
    mov.b32 %v, 0; st.shared.v4.b32 [%s], {{%v, %v, %v, %v}};
    bar.sync 0;
    stmatrix.{form} [%s], {group};
    bar.sync 0;
    ld.shared.v4.b32 {{%d0, %d1, %d2, %d3}}, [%s];
    mad.wide.u32 %y, %t, 16, %p2;
    st.global.v4.b32 [%y], {{%d0, %d1, %d2, %d3}};"""
    rows = np.arange(32 * 8, dtype=np.uint16).reshape(4, 8, 8)
    out, back = np.zeros((32, count, 2), np.uint16), np.ones((4, 8, 8), np.uint16)
    buffers = [
        Buffer("rows", rows.reshape(-1)),
        Buffer("out", out.reshape(-1)),
        Buffer("back", back.reshape(-1)),
    ]
    report = run(build(body, 3, LOADED), 1, 32, buffers, checks=ALL)
    assert report.accesses == ()
    for lane in range(32):
        for matrix in range(count):
            for element in range(2):
                row, column = lane // 4, 2 * (lane % 4) + element
                place = (column, row) if transposed else (row, column)
                assert out[lane, matrix, element] == rows[matrix][place]
    assert np.array_equal(back[:count], rows[:count])
    assert not back[count:].any()


def test_integer_sums_saturate_or_wrap(build: Build, run: Run) -> None:
    form = "m16n8k16.row.col{}.s32.s8.s8.s32"
    body = """mov.b32 %a, 0x7f7f7f7f; mov.b32 %c, 2147483647;
    mad.wide.u32 %y, %t, 8, %p0;
    mma.sync.aligned.@ {%d0, %d1, %d2, %d3}, {%a, %a}, {%a}, {%c, %c, %c, %c};
    mma.sync.aligned.$ {%e0, %e1, %e2, %e3}, {%a, %a}, {%a}, {%c, %c, %c, %c};
    st.global.v2.b32 [%y], {%d0, %e3};"""
    body = body.replace("@", form.format("")).replace("$", form.format(".satfinite"))
    declarations = ".reg .b32 %a, %c, %d<4>, %e<4>; .reg .b64 %y;"
    out = np.zeros((32, 2), np.int32)
    run(build(body, 1, declarations), 1, 32, [Buffer("out", out.reshape(-1))])
    wrapped = (2**31 - 1 + 16 * 127 * 127) - 2**32
    assert out.tolist() == [[wrapped, 2**31 - 1]] * 32


def test_tf32_ignores_the_lower_bits_of_its_operands(build: Build, run: Run) -> None:
    body = """mov.b32 %a, 0x3f801fff; mov.b32 %c, 0;
    mad.wide.u32 %y, %t, 4, %p0;
    mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32
    {%d0, %d1, %d2, %d3}, {%a, %a}, {%a}, {%c, %c, %c, %c};
    st.global.b32 [%y], %d2;"""
    out = np.zeros(32, np.float32)
    declarations = ".reg .b32 %a, %c, %d<4>; .reg .b64 %y;"
    run(build(body, 1, declarations), 1, 32, [Buffer("out", out)])
    assert out.tolist() == [4.0] * 32
