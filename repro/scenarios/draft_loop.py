"""A draft loop over persistent buffers: k - 1 steps, launched anew or replayed from a graph.

As in Model Runner V2: the buffers are as long as the batch ever gets; a row without a request works
on the null block. Attention reads the slots that the builder derived (`index`, `lengths`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..ops import EVERYBODY, Graph, Ops, Owners, Tensor, Timeline
from ..records import Scalar
from . import toy_model as model
from .serving import Layer, starts

AT_LIMIT_IGNORE = 0  # no guard of the draft kernel takes part in this fault


@dataclass(frozen=True, slots=True)
class DraftedStep:
    """What one draft step used, a row a request of the batch: for the table and the findings.

    attention: the number of the launch that read the index.
    """

    step: int
    attention: int
    slots: NDArray[np.int64]
    lengths: NDArray[np.int32]
    index: NDArray[np.int32]


class DraftLoop:
    """The loop and its buffers. `settings` are those of scenario `stale_metadata`."""

    def __init__(
        self,
        ops: Ops,
        timeline: Timeline,
        layer: Layer,
        tables: NDArray[np.int32],
        point: Mapping[str, Scalar],
        settings: Mapping[str, Scalar],
    ) -> None:
        self.ops = ops
        self.timeline = timeline
        self.layer = layer
        self.k = int(point["num_speculative_tokens"])
        self.window = int(point["window"])
        self.block_size = int(point["block_size"])
        self.build = settings["build"]
        self.captured = point["mode"] == "captured"
        self.skips_last = settings["last_update"] == "skipped"
        self.rows, columns = tables.shape
        rows = np.full(self.rows, EVERYBODY, np.int32)
        owners = None
        if layer.pages.declared.get("block_table") == "row":
            owners = Owners(columns, rows)
        self.in_row = rows  # request of each row
        null_row = np.zeros((1, columns), np.int32)
        self.request_tables = timeline.tensor("request_tables", np.concatenate([tables, null_row]))
        self.idx_mapping = timeline.tensor("idx_mapping", np.zeros(self.rows, np.int32))
        self.block_table = timeline.tensor("block_table", np.zeros_like(tables), owners=owners)
        self.positions = timeline.tensor("positions", np.zeros(self.rows, np.int64))
        self.seq_lens = timeline.tensor("seq_lens", np.zeros(self.rows, np.int32))
        self.first_lens = timeline.tensor("first_lens", np.zeros(self.rows, np.int32))
        self.slots = timeline.tensor("slots", np.zeros(self.rows, np.int64))
        self.slots_kept = timeline.tensor("slots_kept", np.zeros(self.rows, np.int64))
        # as a warm-up on the null block leaves them: one position, slot 0
        self.index, self.lengths = self._derived()
        timeline.write(self.lengths, np.ones(self.rows, np.int32))
        query, key, value = model.embed([0] * self.rows)
        self.query = timeline.tensor("query", query)
        self.key = timeline.tensor("key", key)
        self.value = timeline.tensor("value", value)
        self.query_start = timeline.tensor("query_start", starts([1] * self.rows))
        self.out = timeline.tensor("out", np.zeros(query.shape, np.float32))
        self.graph = self._capture() if self.captured and self.k > 1 else None

    def _derived(self) -> tuple[Tensor, Tensor]:
        """New tensors for what the builder derives."""
        index = np.zeros((self.rows, self.window), np.int32)
        return (
            self.timeline.tensor("index", index),
            self.timeline.tensor("lengths", np.zeros(self.rows, np.int32)),
        )

    def _capture(self) -> Graph:
        with self.timeline.capture() as graphs:
            self._forward(self.index, self.lengths)
            if not self.skips_last:  # else captured as the last step is: without its update
                self._advance()
        return graphs[0]

    def gather(self, batch: Sequence[int], tables: NDArray[np.int32]) -> None:
        """The block tables of this engine step, from request order to batch order."""
        self.in_row[:] = [*batch, *[EVERYBODY] * (self.rows - len(batch))]
        null_row = self.rows  # the last row of request_tables
        mapping = np.where(self.in_row == EVERYBODY, null_row, self.in_row)
        null = np.zeros((1, tables.shape[1]), np.int32)
        self.timeline.write(self.request_tables, np.concatenate([tables, null]))
        self.timeline.write(self.idx_mapping, mapping)
        self.ops.gather_block_tables(
            self.idx_mapping, self.request_tables, self.block_table, requests=self.in_row.copy()
        )

    def run(
        self, sequence_lengths: Sequence[int], tokens: Sequence[int]
    ) -> tuple[list[list[int]], list[DraftedStep]]:
        """Drafts of each row behind its first draft `tokens`; what each step used.

        sequence_lengths: tokens of each row's request, the first draft not among them.
        """
        count = len(tokens)
        before = np.zeros(self.rows, np.int64)
        before[:count] = sequence_lengths
        self.timeline.write(self.positions, before - 1)
        self.timeline.write(self.seq_lens, before)
        self.timeline.write(self.first_lens, before + 1)
        self._advance()
        late = self.captured and self.build == "never"
        if not late:
            self._build(self.seq_lens, self.index, self.lengths)
        if self.build == "snapshot":
            self.timeline.write(self.slots_kept, self.timeline.read(self.slots))
        drafts, steps = [[token] for token in tokens], []
        for step in range(1, self.k):
            self.ops.step = step
            last = [row[-1] for row in drafts]
            steps.append(self._step(step, last))
            for row, token in zip(drafts, self._next_tokens(steps[-1], last), strict=True):
                row.append(token)
        if late:
            self._build(self.first_lens, self.index, self.lengths)
        return drafts, steps

    def _step(self, step: int, tokens: Sequence[int]) -> DraftedStep:
        """One draft step over the drafts before it."""
        padded = [*tokens, *[0] * (self.rows - len(tokens))]
        for tensor, values in zip(
            (self.query, self.key, self.value), model.embed(padded), strict=True
        ):
            self.timeline.write(tensor, values)
        index, lengths = self.index, self.lengths
        if step > 1 and self.build == "rebuild_in_place":
            self._build(self.seq_lens, index, lengths)
        elif step > 1 and self.build == "rebuild_new":
            fresh = self._derived()
            self._build(self.seq_lens, *fresh)
            if self.graph is None:  # a graph reads the tensors it was captured with
                index, lengths = fresh
        slots = self.timeline.read(self._slots_used())
        launches = self.ops.launches
        if self.graph is not None:
            self.timeline.replay(self.graph, self.ops.number, step, requests=self.in_row.copy())
        else:
            self._forward(index, lengths)
            if not (self.skips_last and step == self.k - 1):
                self._advance()
        return DraftedStep(
            step, launches + 1, slots, self.timeline.read(lengths), self.timeline.read(index)
        )

    def _build(self, seq_lens: Tensor, index: Tensor, lengths: Tensor) -> None:
        """What an attention builder does: derive from the lengths which slots are read."""
        self.ops.window_index(
            seq_lens,
            self.block_table,
            index,
            lengths,
            block_size=self.block_size,
            window=self.window,
            requests=self.in_row.copy(),
        )

    def _slots_used(self) -> Tensor:
        return self.slots_kept if self.build == "snapshot" else self.slots

    def _forward(self, index: Tensor, lengths: Tensor) -> None:
        self.ops.kv_write(
            self.key,
            self.value,
            self.layer.key_cache,
            self.layer.value_cache,
            self._slots_used(),
            requests=self.in_row.copy(),
        )
        self.ops.paged_attention(
            self.query,
            self.layer.key_cache,
            self.layer.value_cache,
            index,
            self.query_start,
            lengths,
            self.out,
            block_size=1,
            scale=1.0,
            requests=self.in_row.copy(),
        )

    def _advance(self) -> None:
        self.ops.draft_step(
            self.positions,
            self.seq_lens,
            self.block_table,
            self.slots,
            block_size=self.block_size,
            limit=self.block_table.shape[1] * self.block_size,
            at_limit=AT_LIMIT_IGNORE,
            requests=self.in_row.copy(),
        )

    def _next_tokens(self, used: DraftedStep, tokens: Sequence[int]) -> list[int]:
        """The sum of what attention saw, and the token of the step, which needs no attention."""
        means = self.timeline.read(self.out)[: len(tokens), 0, 0]
        totals = np.rint(means * used.lengths[: len(tokens)])
        return [
            model.next_token(int(total), token) for total, token in zip(totals, tokens, strict=True)
        ]
