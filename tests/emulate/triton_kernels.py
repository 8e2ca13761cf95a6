"""Triton kernels that the tests launch: some right, some only for the right arguments."""

import triton
import triton.language as tl

TWO = tl.constexpr(2)


@triton.jit
def scaled(x, by):
    return x * by * TWO


@triton.jit
def add(x, y, out, n, by=0.5, B: tl.constexpr = 128):
    i = tl.program_id(0) * B + tl.arange(0, B)
    keep = i < n
    value = scaled(tl.load(x + i, mask=keep), by) + tl.load(y + i, mask=keep)
    tl.store(out + i, value, mask=keep)


@triton.autotune([triton.Config({"B": 64}, num_warps=2), triton.Config({"B": 256})], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["B"] == 0})
@triton.jit
def copy(x, out, n, B: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    if EVEN:
        tl.store(out + i, tl.load(x + i))
    else:
        tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def rows(x, out, stride, n, B: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.load(x + tl.program_id(0) * stride + i)
    tl.store(out + tl.program_id(0), tl.sum(row, 0))


@triton.jit
def count(out, n):
    tl.atomic_add(out, n)


@triton.jit
def summed(pair, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(pair[0] + i) + tl.load(pair[1] + i) + pair[2])


@triton.jit
def tile(described, out, B: tl.constexpr):
    i = tl.arange(0, B)
    value = described.load([B, 0])
    tl.store(out + i[:, None] * B + i[None, :], value)


@triton.jit
def checked(x, B: tl.constexpr):
    value = tl.load(x + tl.arange(0, B))
    tl.device_assert(value < 7, "too large")


@triton.jit
def weighted(x, weights, out, N: tl.constexpr, D: tl.constexpr):
    t, d = tl.arange(0, N), tl.arange(0, D)
    values = tl.load(x + t[:, None] * D + d[None, :])
    tl.store(out + d, tl.sum(tl.load(weights + t)[:, None] * values, 0))


@triton.jit
def narrowed(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i).to(tl.float8e4nv).to(tl.float32))


@triton.jit
def behind(table, out, N: tl.constexpr):
    i = tl.arange(0, N)
    row = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(out + i, tl.load(row + i))
