"""Matrix products as Triton compiles them: mma, ldmatrix, cp.async."""

import triton
import triton.language as tl


@triton.jit
def product(
    a,
    b,
    c,
    m,
    n,
    k,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        at = start + inner
        left = tl.load(
            a + rows[:, None] * k + at[None, :],
            mask=(rows[:, None] < m) & (at[None, :] < k),
            other=0.0,
        )
        right = tl.load(
            b + at[:, None] * n + columns[None, :],
            mask=(at[:, None] < k) & (columns[None, :] < n),
            other=0.0,
        )
        total = tl.dot(left, right, total)
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=mask)


@triton.jit
def whole(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + rows[:, None] * K + inner[None, :])
    right = tl.load(b + inner[:, None] * N + columns[None, :])
    tl.store(c + rows[:, None] * N + columns[None, :], tl.dot(left, right))
