"""The plan of split-KV attention: chunks that cover every page once, fields that do not overlap."""

from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.scenarios.split_plan import ALIGN, make_plan, work_space

LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=6)
SIZES = st.integers(1, 20)


def rows(count: int) -> list[list[int]]:
    return [[1 + 60 * r + c for c in range(60)] for r in range(count)]


@given(lengths=LENGTHS, block_size=SIZES, extra=st.integers(0, 40))
def test_the_chunks_of_a_plan_cover_every_position_once(
    lengths: list[int], block_size: int, extra: int
) -> None:
    plan = make_plan(
        lengths, rows(len(lengths)), block_size=block_size, max_chunks=len(lengths) + extra
    )
    seen = []
    for request, tile in zip(plan.requests, plan.tiles, strict=True):
        first, last = plan.page_indptr[request], plan.page_indptr[request + 1]
        pages = plan.page_indices[first:last]
        size = plan.pages_in_chunk
        for number, page in enumerate(pages[tile * size : (tile + 1) * size], tile * size):
            full = number < len(pages) - 1
            seen += [
                (request, page, i)
                for i in range(block_size if full else plan.last_page_len[request])
            ]
    wanted = [
        (r, 1 + 60 * r + p // block_size, p % block_size)
        for r, length in enumerate(lengths)
        for p in range(length)
    ]
    assert sorted(seen) == sorted(wanted)
    assert len(seen) == len(set(seen))


@given(lengths=LENGTHS, block_size=SIZES, extra=st.integers(0, 40))
def test_a_plan_fits_the_grid_with_the_smallest_chunks(
    lengths: list[int], block_size: int, extra: int
) -> None:
    grid = len(lengths) + extra
    plan = make_plan(lengths, rows(len(lengths)), block_size=block_size, max_chunks=grid)
    pages = [-(-n // block_size) for n in lengths]
    assert plan.chunks <= grid
    if plan.pages_in_chunk > 1:
        assert sum(-(-n // (plan.pages_in_chunk - 1)) for n in pages) > grid


@given(lengths=LENGTHS, block_size=SIZES, extra=st.integers(0, 40))
def test_merged_chunks_are_the_requests_own(
    lengths: list[int], block_size: int, extra: int
) -> None:
    plan = make_plan(
        lengths, rows(len(lengths)), block_size=block_size, max_chunks=len(lengths) + extra
    )
    for request in range(len(lengths)):
        first, last = plan.merge_indptr[request], plan.merge_indptr[request + 1]
        assert {plan.requests[c] for c in range(first, last)} == {request}
    assert plan.merge_indptr[-1] == plan.chunks


@given(lengths=LENGTHS, block_size=SIZES, extra=st.integers(0, 40))
def test_fields_are_aligned_disjoint_and_inside_the_work_space(
    lengths: list[int], block_size: int, extra: int
) -> None:
    plan = make_plan(
        lengths, rows(len(lengths)), block_size=block_size, max_chunks=len(lengths) + extra
    )
    end = 0
    for at, values in plan.fields():
        assert at % ALIGN == 0
        assert at >= end
        end = at + len(values)
    assert end <= work_space(len(lengths), max(-(-n // block_size) for n in lengths))
