"""Which state blocks a step was to read and write, and which its tables led the device to.

Kept for reports: an access out of bounds says where a kernel went, and this says by which entry of
which table. Only what strays is kept; a healthy run has nothing here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..ops import Array, Device, Tensor
from .gdn_requests import Request, Setup, right_block

MOST = 24  # that are kept


@dataclass(frozen=True, slots=True)
class Move:
    """A copy of a row's state from one column of its table to another, in every state group.

    slot: of the request. source, target: columns as the scheduler has them.
    """

    slot: int
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Moved:
    """The copies of a step on one stage, in the order of the kernel's rows: group by group.

    table: int32[rows, columns], which the kernel reads. rows: of the table, one a kernel row.
    source, target: columns on the device, int32[kernel rows].
    """

    stage: int
    step: int
    groups: Sequence[int]
    moves: Sequence[Move]
    table: Tensor
    rows: Sequence[int]
    source: Tensor
    target: Tensor


@dataclass(slots=True)
class Moves:
    """Every copy of a run. The tensors of a step are its own, so that they can be read at its end:
    they hold then what its kernels read."""

    kept: list[Moved] = field(default_factory=list)

    def strayed(
        self, device: Device, setup: Setup, requests: Sequence[Request]
    ) -> list[dict[str, Any]]:
        """The copies that went elsewhere, the first MOST of them.

        Of each: stage, step, request, group, `row` (the blocks of its row of the table, none where
        the table has no such row), `meant` and `used` of {from: [column, block], to: …}; a block is
        None behind the table's end.
        """
        found: list[dict[str, Any]] = []
        for moved in self.kept:
            table = device.read(moved.table)
            source, target = device.read(moved.source), device.read(moved.target)
            for number, row in enumerate(moved.rows):
                group = moved.groups[number // len(moved.moves)]
                move = moved.moves[number % len(moved.moves)]
                request = requests[move.slot]
                meant = [
                    [column, right_block(setup, len(requests), request, group, column)]
                    for column in (move.source, move.target)
                ]
                columns = int(source.flat[number]), int(target.flat[number])
                used = [[column, _block(table, row, column)] for column in columns]
                still = move.source == move.target and columns[0] == columns[1]
                if used == meant or still:
                    continue
                found.append(
                    {
                        "stage": moved.stage,
                        "step": moved.step,
                        "request": move.slot,
                        "group": group,
                        "row": [int(block) for block in table[row : row + 1].flat],
                        "meant": {"from": meant[0], "to": meant[1]},
                        "used": {"from": used[0], "to": used[1]},
                    }
                )
                if len(found) == MOST:
                    return found
        return found


def _block(table: Array, row: int, column: int) -> int | None:
    """What the kernel reads: the table lies flat, so behind a row comes the next one."""
    at = row * table.shape[1] + column
    return int(table.flat[at]) if 0 <= at < table.size else None
