"""Sources of attention.ptx: an online softmax over a block table, and a random draw."""

import triton
import triton.language as tl


@triton.jit
def attention(
    query,
    key,
    value,
    table,
    out,
    length,
    dim,
    block_size,
    scale,
    TILE: tl.constexpr,
    D: tl.constexpr,
):
    row = tl.program_id(0)
    d = tl.arange(0, D)
    q = tl.load(query + row * dim + d, mask=d < dim, other=0.0).to(tl.float32)
    most, total, acc = -float("inf"), 0.0, tl.zeros([D], tl.float32)
    for start in range(0, length, TILE):
        at = start + tl.arange(0, TILE)
        block = tl.load(table + at // block_size, mask=at < length, other=0).to(tl.int64)
        slot = block * block_size + at % block_size
        seen = (at < length)[:, None] & (d < dim)[None, :]
        k = tl.load(key + slot[:, None] * dim + d[None, :], mask=seen, other=0.0).to(tl.float32)
        s = tl.where(at < length, tl.sum(k * q[None, :], 1) * scale, -float("inf"))
        new = tl.maximum(most, tl.max(s, 0))
        old = tl.exp(most - new)
        p = tl.exp(s - new)
        v = tl.load(value + slot[:, None] * dim + d[None, :], mask=seen, other=0.0).to(tl.float32)
        acc = acc * old + tl.sum(p[:, None] * v, 0)
        total = total * old + tl.sum(p, 0)
        most = new
    tl.store(out + row * dim + d, acc / total, mask=d < dim)


@triton.jit
def draw(logits, out, best, n, seed, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    u = tl.rand(seed, at)
    x = tl.load(logits + at, mask=at < n, other=-float("inf"))
    tl.store(out + at, u, mask=at < n)
    tl.store(best + tl.program_id(0), tl.argmax(x, 0))
