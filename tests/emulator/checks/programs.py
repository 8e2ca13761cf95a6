"""Triton kernels: planted faults, and near misses of them."""

import triton
import triton.language as tl


@triton.jit
def total(x, out, N: tl.constexpr):
    """The sum of N numbers, through shared memory."""
    at = tl.arange(0, N)
    tl.store(out, tl.sum(tl.load(x + at)))


@triton.jit
def best(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out, tl.argmax(tl.load(x + at), 0))


@triton.jit
def running(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.cumsum(tl.load(x + at), 0))


@triton.jit
def transposed(x, out, N: tl.constexpr):
    rows, columns = tl.arange(0, N)[:, None], tl.arange(0, 16)[None, :]
    tile = tl.load(x + rows * 16 + columns)
    back = tl.trans(tile)
    tl.store(out + tl.arange(0, 16)[:, None] * N + tl.arange(0, N)[None, :], back)


@triton.jit
def sorted_row(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@triton.jit
def normalised(x, out, N: tl.constexpr):
    """Two reductions, so that shared memory is used twice."""
    at = tl.arange(0, N)
    row = tl.load(x + at)
    row = tl.exp(row - tl.max(row))
    tl.store(out + at, row / tl.sum(row))


@triton.jit
def row_tail(x, out, n, N: tl.constexpr):
    """Reads a whole tile where only n numbers were written."""
    at = tl.arange(0, N)
    tl.store(out + at, tl.load(x + at) * 2, mask=at < n)


@triton.jit
def row_masked(x, out, n, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@triton.jit
def accumulate(x, out, n, N: tl.constexpr):
    """Adds to what is there."""
    at = tl.arange(0, N)
    old = tl.load(out + at, mask=at < n)
    tl.store(out + at, old + tl.load(x + at, mask=at < n), mask=at < n)


@triton.jit
def counted(x, out, n, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.atomic_add(out + at % 4, tl.load(x + at, mask=at < n, other=0.0), mask=at < n)


@triton.jit
def shifted(x, out, n, N: tl.constexpr):
    """Program p writes tile p + n of out, from tile p of x."""
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + at + n, tl.load(x + at))


@triton.jit
def strided(x, out, n, N: tl.constexpr):
    """Tiles begin n apart: they overlap where n < N."""
    at = tl.arange(0, N)
    tl.store(out + tl.program_id(0) * n + at, tl.load(x + tl.program_id(0) * N + at))


@triton.jit
def in_place(x, out, n, N: tl.constexpr):
    """Shifts x by n, in place."""
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(x + at, tl.load(x + at + n))


@triton.jit
def summed(x, out, n, N: tl.constexpr):
    """A sum over programs without an atomic, where n programs share a place."""
    at = tl.program_id(0) * N + tl.arange(0, N)
    place = out + tl.program_id(0) // n
    tl.store(place, tl.load(place) + tl.sum(tl.load(x + at)))
