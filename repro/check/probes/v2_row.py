"""What runner V2 does with more block ids than a row of its block table holds."""

from __future__ import annotations

from ..probing import runner_v2
from ..probing.lift import lift, parameters
from ..probing.probe import Answer, NotFoundError, Probe, Sources
from ..probing.stubs import Record

FILES = ("v1/worker/gpu/block_table.py",)
WIDTH, IDS = 4, 6


def answer(sources: Sources) -> Answer:
    if (none := runner_v2.missing(sources)) is not None:
        return none
    path, _, node = sources.function(FILES, "BlockTables.append_block_ids")
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
    names = parameters(node)
    if len(names) != 3:
        raise NotFoundError(f"append_block_ids has other parameters: {', '.join(names)}")
    said = f"{IDS} ids into a row of {WIDTH}"
    try:
        lift(node, path, {"cdiv": lambda a, b: -(-a // b)})(tables, 0, ([1] * IDS,), True)
    except RuntimeError as error:
        return Answer("raises", path, node.lineno, True, f"{said}: {str(error)[:100]}")
    if sum(written) < IDS:
        raise NotFoundError(f"{said}: {sum(written)} were seen to be written")
    return Answer("silent", path, node.lineno, True, f"{said}: all are written")


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
