"""What runner V2 does with more block ids than a row of its block table holds."""

from __future__ import annotations

import ast
from typing import Any

from ..probing import runner_v2
from ..probing.lift import lift, parameters
from ..probing.probe import Answer, Function, NotFoundError, Probe, Sources, names
from ..probing.stubs import Record
from ..probing.triton_stub import Language, OutOfBoundsError, Pointer, integer_range

FILES = ("v1/worker/gpu/block_table.py",)
KERNEL = "_append_block_ids_kernel"
WIDTH, IDS = 4, 6
SAID = f"{IDS} ids into a row of {WIDTH}"


def answer(sources: Sources) -> Answer:
    if (none := runner_v2.missing(sources)) is not None:
        return none
    path, _, node = sources.function(FILES, "BlockTables.append_block_ids")
    kernel = sources.functions(path).get(KERNEL)
    if kernel is not None and KERNEL in names(node):
        return _launched(path, node, kernel)
    written: list[int] = []

    def write(*arguments: object) -> None:
        ids = [a for a in arguments if isinstance(a, list)]
        written.append(len(ids[0]) if ids else 1)

    class Table:
        gpu = Record(shape=(2, WIDTH))

        def stage_write(self, *arguments: object) -> None:
            write(*arguments)

        def stage_write_elem(self, *arguments: object) -> None:
            write(*arguments)

        append = stage_write

    class Counts(dict[object, int]):
        def stage_write_elem(self, *_arguments: object) -> None:
            """A count; nothing to see here."""

        def __missing__(self, _key: object) -> int:
            return 0

    counts = Counts()
    counts_holder = Record(np=counts, stage_write_elem=counts.stage_write_elem)
    tables = Record(
        num_kv_cache_groups=1,
        block_tables=[Table()],
        blocks_per_kv_block=[1],
        redirect_writes_to_null_block=False,
        num_blocks=counts_holder,
    )
    given = parameters(node)
    if len(given) != 3:
        raise NotFoundError(f"append_block_ids has other parameters: {', '.join(given)}")
    try:
        lift(node, path, {"cdiv": lambda a, b: -(-a // b)})(tables, 0, ([1] * IDS,), True)
    except RuntimeError as error:
        return Answer("raises", path, node.lineno, True, f"{SAID}: {str(error)[:100]}")
    if sum(written) < IDS:
        raise NotFoundError(f"{SAID}: {sum(written)} were seen to be written")
    return Answer("silent", path, node.lineno, True, f"{SAID}: all are written")


def _launched(path: str, node: Function, kernel: Function) -> Answer:
    """Of a build that appends in a kernel, and not in its host code."""
    if checks := [n for n in ast.walk(node) if isinstance(n, ast.Raise | ast.Assert)]:
        raise NotFoundError(f"append_block_ids may refuse: {ast.unparse(checks[0])[:80]}")
    if (fitting := _row(path, kernel, WIDTH)) != [1] * WIDTH + [0] * WIDTH:
        raise NotFoundError(f"{WIDTH} ids fit, and the table is {fitting}")
    try:
        table = _row(path, kernel, IDS)
    except OutOfBoundsError as error:
        raise NotFoundError(f"{SAID}: {error}") from error
    past = sum(table) - WIDTH
    if past != IDS - WIDTH:
        raise NotFoundError(f"{SAID}: {past} are seen in the next row")
    said = f"{SAID}: {past} are written into the next one, by {KERNEL}"
    return Answer("silent", path, node.lineno, True, said)


def _row(path: str, kernel: Function, ids: int) -> list[int]:
    """A table of two rows after `ids` ids were appended to its first, by the kernel."""
    table = [0] * (2 * WIDTH)
    known: dict[str, Any] = {
        "req_indices": Pointer([0]),
        "cu_num_new_blocks_ptr": Pointer([0, ids]),
        "cu_num_new_blocks_stride": 2,
        "new_block_ids_ptr": Pointer([1] * IDS),
        "new_block_ids_stride": IDS,
        "overwrite": Pointer([True]),
        "block_table_strides": Pointer([WIDTH]),
        "block_table_ptrs": Pointer([0]),
        "num_blocks_ptr": Pointer([0, 0]),
        "num_blocks_stride": 2,
        "BLOCK_SIZE": 2 * WIDTH,
    }
    if missing := [name for name in parameters(kernel) if name not in known]:
        raise NotFoundError(f"{KERNEL} has a parameter {missing[0]}")

    def load_pointer(*_arguments: object) -> Pointer:
        return Pointer(table)

    scope = {"tl": Language(), "range": integer_range, "_load_ptr": load_pointer}
    lift(kernel, path, scope)(**{name: known[name] for name in parameters(kernel)})
    return table


PROBE = Probe(
    "v2_row",
    "does runner V2 notice that a row of its block table is full?",
    (runner_v2.ENVIRONMENT, *FILES),
    {
        "raises": "yes, it raises",
        "silent": "no: it writes on",
        runner_v2.NONE: "there is no runner V2",
    },
    answer,
)
