"""One stage of the GDN pipeline: its caches, its metadata, its stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..ops import Array, Event, Graph, Ops, Tensor, Timeline
from .gdn_caches import Caches
from .gdn_layers import HEAD_DIM, Dense
from .gdn_moves import Move, Moved, Moves
from .gdn_partition import Binding, bindings
from .gdn_requests import Request, Setup, Step
from .gdn_tokens import is_attention

GARBAGE = 0x55555555  # what lies behind the table of a step
BEHIND = 64  # int32 words of it
ROOM = 4  # rows of a group in the state index, so that each group's part is aligned
PART = 16  # floats of a layer's convolution history, and of its delta-rule state, in a block


@dataclass(frozen=True, slots=True)
class Metadata:
    """What the state ops of one step read. table: int32[groups * batch, width], batch order."""

    table: Tensor
    rows: Tensor
    source: Tensor
    target: Tensor
    flat: Tensor
    query_start: Tensor
    moves: bool
    batch: int


class Stage:
    """Layers `places` of the model, on a stream of their own."""

    def __init__(
        self, ops: Ops, timeline: Timeline, setup: Setup, number: int, requests: Sequence[Request],
        owners: bool,
    ) -> None:  # fmt: skip
        self.ops, self.timeline, self.setup, self.number = ops, timeline, setup, number
        self.stream = f"stage {number}"
        self.slots = len(requests)
        self.places = [at for at in bindings(setup.counts) if at.stage == number]
        prefill = sum(min(setup.chunk, request.prompt) for request in requests)
        decode = (1 + setup.num_speculative_tokens) * self.slots
        self.most = max(prefill, decode, ROOM)
        self.dense = Dense(timeline, self.most)
        self.caches = caches = Caches(timeline, setup, self.places, requests, owners)
        self.groups, self.state_groups = caches.groups, caches.state_groups
        self.receive: Tensor | None = None  # the one buffer of a stage that reuses it
        self.latest: Metadata | None = None
        self.moves = Moves()
        self._staging: dict[tuple[str, int], Array] = {}
        self._frozen: tuple[Tensor, Tensor] | None = None
        self._graphs: dict[tuple[int, str], Graph] = {}
        self._decode_index = self._new_index()
        self._decode_starts = self._tensor("query_start", np.arange(self.slots + 1))

    def _tensor(self, name: str, values: Sequence[int] | Array) -> Tensor:
        return self.timeline.tensor(name, np.asarray(values, np.int32))

    def _new_index(self) -> Tensor:
        groups = max(1, len(self.state_groups))
        return self.timeline.tensor("state_index", np.zeros((groups * ROOM, 1), np.int32))

    # --- a step --------------------------------------------------------------------------------

    def issue(self, step: Step, received: Tensor | None, start: Event | None) -> Tensor:
        """Queue a step; the tensor that will hold its hidden states, fp32[tokens, 2].

        received: hidden states of the stage before; None: this stage embeds the tokens. start: what
        the stream waits for before anything of this step.
        """
        with self.timeline.on(self.stream):
            if start is not None:
                self.timeline.wait(start)
            self.dense.begin(step, received)
            meta = self._metadata(step)
            self.latest = meta
            index = self._state_index(step, meta)
            self._attend_begin(step)
            for at in self.places:
                if is_attention(at.layer):
                    self._attention(step, at)
                else:
                    self._gdn(step, meta, index, at)
            sent = self.timeline.tensor("sent", np.zeros((self.most, 2), np.float32))
            self.dense.end(sent)
        return sent

    def _stage(self, name: str, values: Sequence[int] | Array) -> Tensor:
        """Copy metadata to the device through a pinned buffer: its own, or the one kept for all."""
        fresh = np.asarray(values, np.int32)
        buffer = fresh
        if self.setup.fault == "staging_reused":
            buffer = self._staging.setdefault((name, fresh.size), fresh)
            buffer[:] = fresh
        target = self._tensor(name, np.zeros(fresh.size, np.int32))
        self.timeline.copy_async(target, buffer)
        return target

    def _metadata(self, step: Step) -> Metadata:
        """Stage what the state ops need, gather the tables, move states to this step's columns."""
        rows, batch = step.rows, len(step.rows)
        groups = range(len(self.state_groups))
        moves = [(row.source, row.base) for _ in groups for row in rows]
        flat = np.full((max(1, len(groups)), ROOM), -1)
        for group in groups:
            for number, row in enumerate(rows):
                flat[group, number] = (group * batch + number) * step.width + row.base
        table = np.zeros((max(1, len(groups)) * batch, step.width), np.int32)
        behind = np.full(BEHIND, GARBAGE, np.int32)
        meta = Metadata(
            table=self.timeline.tensor("state_table", table, behind=behind),
            rows=self._stage("table_rows", [g * self.slots + r.slot for g in groups for r in rows]),
            source=self._stage("source_column", [source for source, _ in moves]),
            target=self._stage("target_column", [target for _, target in moves]),
            flat=self._stage("flat_index", flat.reshape(-1)),
            query_start=self._stage("query_start", step.starts),
            moves=any(source != target for source, target in moves),
            batch=batch,
        )
        if not self.state_groups:
            return meta
        owner = [row.slot for _ in groups for row in rows]
        self.ops.gather_block_tables(meta.rows, self.caches.tables, meta.table, requests=owner)
        meta = self._compiled(step, meta)
        source = [row.source if step.decode else self.setup.column(row.start) for row in rows]
        asked = [Move(row.slot, at, row.base) for row, at in zip(rows, source, strict=True)]
        self.moves.kept.append(
            Moved(
                self.number, step.number, self.state_groups, asked, meta.table, range(len(owner)),
                meta.source, meta.target,
            )
        )  # fmt: skip
        if meta.moves:
            batch_rows = self._tensor("batch_rows", np.arange(len(owner)))
            self.ops.state_copy(
                self.caches.pool, meta.table, batch_rows, meta.source, meta.target, requests=owner
            )
        return meta

    def _compiled(self, step: Step, meta: Metadata) -> Metadata:
        """What a compiled region makes of the metadata: the same, or what it kept of its first."""
        frozen = self.setup.fault == "frozen_value" and self.setup.execution != "eager"
        if not frozen or self.number == 0 or step.decode:
            return meta
        if self._frozen is None:
            self._frozen = meta.table, meta.query_start
        table, query_start = self._frozen
        return Metadata(
            table, meta.rows, meta.source, meta.target, meta.flat, query_start, meta.moves,
            meta.batch,
        )  # fmt: skip

    def captured(self, step: Step) -> bool:
        """Whether the GDN ops of a step are captured: decodes of one token a row, with graphs."""
        plain = self.setup.num_speculative_tokens == 0
        return self.setup.execution == "graphs" and step.decode and plain

    def _state_index(self, step: Step, meta: Metadata) -> Tensor:
        """State blocks by group and row, int32[groups * ROOM, 1]; 0 (null) without a row."""
        index = self._decode_index if self.captured(step) else self._new_index()
        if not self.state_groups:
            return index
        if self.captured(step) and self.setup.fault != "stale_padding":
            self.timeline.copy_async(index, np.zeros(index.size, np.int32))
        requests = [
            step.rows[n].slot if n < len(step.rows) else self.slots
            for _ in self.state_groups
            for n in range(ROOM)
        ]
        self.ops.gather_block_tables(meta.flat, _flat(meta.table, 1), index, requests=requests)
        return index

    # --- layers --------------------------------------------------------------------------------

    def _group(self, at: Binding) -> int:
        if self.setup.fault == "global_layer_index":
            return at.layer % self.groups
        return at.group

    def _gdn(self, step: Step, meta: Metadata, index: Tensor, at: Binding) -> None:
        ops, dense, group = self.ops, self.dense, self._group(at)
        slots = [row.slot for row in step.rows]
        starts = meta.query_start
        if self.captured(step):
            slots += [self.slots] * (self.slots - len(slots))  # padding serves nobody
            starts = self._decode_starts
        if group in self.state_groups:
            first = self.state_groups.index(group) * ROOM
            blocks = Tensor(
                "state_index", index.data[first:], (len(slots),), recorder=index.recorder
            )
        else:
            blocks = self._attention_blocks(step, len(slots))
        history, memory = self.caches.history(at.slot), self.caches.memory(at.slot)

        def convolve() -> None:
            ops.conv_state(
                dense.hidden,
                self.caches.weight,
                history,
                blocks,
                starts,
                dense.mixed,
                requests=slots,
            )

        columns = Tensor("state_index", blocks.data, (len(slots), 1), recorder=blocks.recorder)
        accepted = None
        if self.setup.num_speculative_tokens and step.decode:
            columns, accepted = self._speculative(step, meta, group)

        def update() -> None:
            ops.gated_delta_rule(
                dense.ones, dense.key, dense.value, dense.zeros, dense.beta, memory, columns,
                accepted, starts, dense.out, requests=slots,
            )  # fmt: skip

        self._run(step, at.layer, "convolve", convolve, slots)
        dense.remember()
        self._run(step, at.layer, "update", update, slots)
        dense.after_gdn(at.layer)

    def _run(
        self, step: Step, layer: int, what: str, launch: Callable[[], None], slots: list[int]
    ) -> None:
        """Launch, or capture once and replay from then on."""
        if not self.captured(step):
            launch()
            return
        key = (layer, what)
        if key not in self._graphs:
            with self.timeline.capture() as graphs:
                launch()
            self._graphs[key] = graphs[0]
        self.timeline.replay(self._graphs[key], self.ops.number, self.ops.step, slots)

    def _speculative(self, step: Step, meta: Metadata, group: int) -> tuple[Tensor, Tensor]:
        """State blocks of a row's tokens, int32[batch, 1 + drafts], and where each row starts."""
        width = 1 + self.setup.num_speculative_tokens
        ordinal = self.state_groups.index(group) if group in self.state_groups else 0
        flat = [
            (ordinal * meta.batch + number) * step.width + row.base
            for number, row in enumerate(step.rows)
        ]
        columns = self.timeline.tensor("spec_index", np.zeros((len(step.rows), width), np.int32))
        self.ops.gather_block_tables(
            self._tensor("spec_flat", flat),
            _flat(meta.table, width),
            columns,
            requests=[row.slot for row in step.rows],
        )
        return columns, self._tensor("accepted", [row.accepted for row in step.rows])

    def _attention_blocks(self, step: Step, rows: int) -> Tensor:
        """Column `base` of the attention group's table, taken for state blocks."""
        table = self._tensor("block_table", self._kv(step))
        flat = [n * table.shape[1] + row.base for n, row in enumerate(step.rows)]
        blocks = self.timeline.tensor("state_index", np.zeros((rows, 1), np.int32))
        self.ops.gather_block_tables(
            self._tensor("flat_index", flat + [-1] * (rows - len(flat))),
            _flat(table, 1),
            blocks,
            requests=[row.slot for row in step.rows] + [self.slots] * (rows - len(flat)),
        )
        return Tensor("state_index", blocks.data, (rows,), recorder=blocks.recorder)

    def _kv(self, step: Step) -> NDArray[np.int32]:
        return self.caches.kv_rows[[row.slot for row in step.rows]]

    def _attend_begin(self, step: Step) -> None:
        if not self.caches.kv:
            return
        positions = np.concatenate([row.start + np.arange(len(row.tokens)) for row in step.rows])
        self.slot_tensor = self.timeline.tensor("slots", np.full(len(positions), -1, np.int64))
        self.kv_table = self._tensor("block_table", self._kv(step))
        self.kv_starts = self._tensor("query_start", step.starts)
        self.kv_lens = self._tensor("seq_lens", [r.start + len(r.tokens) for r in step.rows])
        self.visible = positions + 1
        self.ops.slot_mapping(
            self.kv_starts,
            self.timeline.tensor("positions", positions.astype(np.int64)),
            self.kv_table,
            self.slot_tensor,
            block_size=self.setup.block_size,
            requests=[row.slot for row in step.rows],
        )

    def _attention(self, step: Step, at: Binding) -> None:
        group, table = self._group(at), self.kv_table
        if group in self.state_groups and self.latest is not None:
            batch, wide = len(step.rows), self.latest.table
            table = self._tensor("state_table", np.zeros((batch, wide.shape[1]), np.int32))
            rows = np.arange(batch) + self.state_groups.index(group) * batch
            self.ops.gather_block_tables(self._tensor("table_rows", rows), wide, table)
        tensor, count = self.timeline.tensor, step.starts[-1]
        shape = (count, 1, HEAD_DIM)
        query, key, value = (
            tensor(name, np.zeros(shape, np.float16)) for name in ("query", "key", "value")
        )
        out = tensor("out", np.zeros(shape, np.float32))
        owner = np.repeat([row.slot for row in step.rows], [len(row.tokens) for row in step.rows])
        self.dense.project(value)
        key_cache, value_cache = self.caches.kv[at.layer]
        self.ops.kv_write(key, value, key_cache, value_cache, self.slot_tensor, requests=owner)
        self.ops.paged_attention(
            query, key_cache, value_cache, table, self.kv_starts, self.kv_lens, out,
            block_size=self.setup.block_size, scale=1.0,
            requests=[row.slot for row in step.rows],
        )  # fmt: skip
        self.dense.after_attention(out, self.visible, at.layer)

    # --- after a step (MTP) --------------------------------------------------------------------

    def commit(self, step: Step, commits: Sequence[tuple[int, int, int]], last: bool) -> None:
        """Copy accepted states to the column that counts from now on.

        By request: the tables as the scheduler has them. batch_row_late: by the row of the batch,
        in the tables that this stage gathered last.
        """
        if not commits or not self.state_groups:
            return
        setup, groups = self.setup, range(len(self.state_groups))
        late = setup.fault == "batch_row_late" and setup.runner == "v2" and not last
        table, batch = self.caches.tables, self.slots
        if late and self.latest is not None:
            table, batch = self.latest.table, self.latest.batch
        moves = [
            (group * batch + (number if late else step.rows[number].slot), source, target)
            for group in groups
            for number, source, target in commits
        ]
        owner = [step.rows[number].slot for _ in groups for number, _, _ in commits]
        with self.timeline.on(self.stream):
            memory = self.caches.memories()
            source, target = self._copy(memory, table, moves, owner)
            asked = [Move(step.rows[n].slot, *columns) for n, *columns in commits]
            rows = [row for row, _, _ in moves]
            self.moves.kept.append(
                Moved(
                    self.number, step.number, self.state_groups, asked, table, rows, source, target
                )
            )
            base = [(row, step.rows[n].base, target) for row, n, target in _with(moves, commits)]
            self._copy(self.caches.histories(), table, base, owner)

    def _copy(
        self, state: Tensor, table: Tensor, moves: list[tuple[int, int, int]], owner: list[int]
    ) -> tuple[Tensor, Tensor]:
        """Copy by (table row, source, target column); the columns as the device has them."""
        rows, sources, targets = zip(*moves, strict=True)
        source = self._tensor("source_column", sources)
        target = self._tensor("target_column", targets)
        copy_rows = self._tensor("copy_rows", rows)
        self.ops.state_copy(state, table, copy_rows, source, target, requests=owner)
        return source, target


def _with(
    moves: list[tuple[int, int, int]], commits: Sequence[tuple[int, int, int]]
) -> list[tuple[int, int, int]]:
    """(table row, batch row, target) of each move; the moves repeat the commits group by group."""
    return [(row, commits[n % len(commits)][0], target) for n, (row, _, target) in enumerate(moves)]


def _flat(table: Tensor, width: int) -> Tensor:
    """A table as rows of `width` that start at every element."""
    return Tensor(
        table.name,
        table.data,
        (table.size, width),
        strides=(1, 1),
        behind=table.behind,
        recorder=table.recorder,
    )
