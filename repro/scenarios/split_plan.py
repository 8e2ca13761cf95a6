"""The plan of a split-KV decode attention, as a host makes it. Standard library only.

Two parts, made by two owners: the engine says which pages a request has, the library which chunk of
pages each row of the launch computes and which rows are merged. The library's part lies in one work
space, at offsets that depend on the number of chunks: a kernel that was launched with the offsets
of one plan misreads the work space of another. Origin: DecodePlan in FlashInfer's
attention/scheduler.cuh (0.7.2.post1): requests, tiles, merge indptr, each aligned to 16 bytes; the
chunk size is the smallest whose chunks fit the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ALIGN = 4  # int32 elements in 16 bytes


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """A plan. Chunk c is tile `tiles[c]` of request `requests[c]`; request r merges the chunks
    merge_indptr[r] ... merge_indptr[r + 1] - 1. Pages of r: page_indices[page_indptr[r]:...]."""

    page_indptr: tuple[int, ...]
    page_indices: tuple[int, ...]
    last_page_len: tuple[int, ...]
    pages_in_chunk: int
    requests: tuple[int, ...]
    tiles: tuple[int, ...]
    merge_indptr: tuple[int, ...]

    @property
    def chunks(self) -> int:
        return len(self.requests)

    @property
    def request_at(self) -> int:
        return 0

    @property
    def tile_at(self) -> int:
        return aligned(self.chunks)

    @property
    def indptr_at(self) -> int:
        return 2 * aligned(self.chunks)

    def fields(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Offset and contents of each field of the work space; what lies between is untouched."""
        return (
            (self.request_at, self.requests),
            (self.tile_at, self.tiles),
            (self.indptr_at, self.merge_indptr),
        )


def make_plan(
    lengths: Sequence[int], rows: Sequence[Sequence[int]], *, block_size: int, max_chunks: int
) -> SplitPlan:
    """Plan a decode step. lengths: positions of each request, all at least 1; rows: its blocks.

    max_chunks: what the grid holds; a request has at least one chunk, even where that is too many.
    """
    pages = [-(-length // block_size) for length in lengths]
    size = next(
        (p for p in range(1, max(pages)) if sum(-(-n // p) for n in pages) <= max_chunks),
        max(pages),
    )
    tiles = [-(-n // size) for n in pages]
    return SplitPlan(
        page_indptr=_running(pages),
        page_indices=tuple(b for row, n in zip(rows, pages, strict=True) for b in row[:n]),
        last_page_len=tuple(
            length - (n - 1) * block_size for length, n in zip(lengths, pages, strict=True)
        ),
        pages_in_chunk=size,
        requests=tuple(r for r, n in enumerate(tiles) for _ in range(n)),
        tiles=tuple(t for n in tiles for t in range(n)),
        merge_indptr=_running(tiles),
    )


def aligned(count: int) -> int:
    """`count` int32 elements rounded up to the alignment of a field."""
    return -(-count // ALIGN) * ALIGN


def work_space(requests: int, columns: int) -> int:
    """int32 elements that hold every plan of a batch with `columns` pages a request at most."""
    return 2 * aligned(requests * columns) + aligned(requests + 1)


def _running(counts: Sequence[int]) -> tuple[int, ...]:
    sums = [0]
    for count in counts:
        sums.append(sums[-1] + count)
    return tuple(sums)
