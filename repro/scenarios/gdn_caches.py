"""What a stage of the GDN pipeline keeps from step to step: state blocks, their tables, KV caches.

A state block holds one period of layers: the convolution histories of all its layers, then their
delta-rule states, each part of PART floats. Blocks 0 (null) and 1 (always zero) are everybody's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..ops import EVERYBODY, NOBODY, Owners, Tensor, Timeline
from .gdn_layers import HEAD_DIM
from .gdn_partition import Binding
from .gdn_requests import FIRST_BLOCK, Request, Setup, block_number, right_block, wrapped
from .gdn_tokens import CONV_WEIGHT, PERIOD, VOCAB, is_attention

PART = 16  # floats of a layer's part of a block


class Caches:
    """Caches of the layers `places` of one stage.

    groups: cache groups of the stage; state_groups: those of GDN layers. tables: int32[state groups
    * requests, columns], state blocks by group and request; column 0 is the zero block. pool:
    fp32[blocks, stride].
    """

    def __init__(
        self,
        timeline: Timeline,
        setup: Setup,
        places: Sequence[Binding],
        requests: Sequence[Request],
        owners: bool,
    ) -> None:
        self.setup, self.timeline = setup, timeline
        self.slots = len(requests)
        self.groups = min(PERIOD, len(places))
        attention = {at.group for at in places if is_attention(at.layer)}
        self.state_groups = [g for g in range(self.groups) if g not in attention]
        longest = max(r.end for r in requests) + setup.num_speculative_tokens
        self.columns = 1 + setup.column(longest) + setup.num_speculative_tokens
        self.stride = 2 * PART * (max(at.slot for at in places) + 1)
        table, of = self._tables(requests)
        self.owned = Owners(self.stride, of) if owners else None
        self.pool = timeline.tensor("state", self._blocks(len(of)), owners=self.owned)
        self.tables = timeline.tensor("state_tables", table)
        self.kv_rows = self._kv_rows(requests, 1 + -(-longest // setup.block_size))
        self.kv_tokens = int(self.kv_rows.max()) * setup.block_size
        shape = ((1 + int(self.kv_rows.max())) * setup.block_size, 1, HEAD_DIM)
        empty = np.zeros(shape, np.float16)
        self.kv = {
            at.layer: (timeline.tensor("key_cache", empty), timeline.tensor("value_cache", empty))
            for at in places
            if is_attention(at.layer)
        }
        self.weight = timeline.tensor("conv_weight", np.asarray(CONV_WEIGHT, np.float32))

    def _tables(self, requests: Sequence[Request]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The tables, and the owner of every block."""
        setup = self.setup
        of = np.full(block_number(setup, self.slots, 0, 0, self.columns), NOBODY, np.int32)
        of[:FIRST_BLOCK] = EVERYBODY
        rows = max(1, len(self.state_groups)) * self.slots
        table = np.ones((rows, self.columns), np.int32)
        for ordinal, group in enumerate(self.state_groups):
            for request in requests:
                for column in range(1, self.columns):
                    block = right_block(setup, self.slots, request, group, column)
                    cached = request.shared >= 0 and column <= setup.column(request.cached)
                    of[block] = EVERYBODY if cached else request.slot
                    if setup.fault == "offset_32bit":
                        block = wrapped(block, setup.block_elements)
                    table[ordinal * self.slots + request.slot, column] = block
        return table, of

    def _blocks(self, count: int) -> NDArray[np.float32]:
        blocks = np.zeros((count, self.stride), np.float32)
        if self.setup.recycled:
            draw = np.random.default_rng(self.setup.seed)
            blocks[FIRST_BLOCK:] = draw.integers(1, 8, blocks[FIRST_BLOCK:].shape)
        return blocks

    def _kv_rows(self, requests: Sequence[Request], pages: int) -> NDArray[np.int32]:
        """KV blocks of every request, int32[requests, pages]; a cached prefix shares its own."""
        rows = 1 + np.arange(self.slots * pages, dtype=np.int32).reshape(-1, pages)
        for request in requests:
            if request.shared >= 0:
                kept = request.cached // self.setup.block_size
                rows[request.slot, :kept] = rows[request.shared, :kept]
        return rows

    def history(self, slot: int) -> Tensor:
        """Convolution histories of the layers at `slot` of their groups, fp32[blocks, 2, 1]."""
        return self._part("conv_history", slot * PART, (2, 1))

    def memory(self, slot: int) -> Tensor:
        """Delta-rule states of the layers at `slot` of their groups, fp32[blocks, 1, 1, VOCAB]."""
        return self._part("state", self.stride // 2 + slot * PART, (1, 1, VOCAB))

    def histories(self) -> Tensor:
        """The convolution histories of all layers, fp32[blocks, floats]."""
        return self._part("conv_history", 0, (self.stride // 2,))

    def memories(self) -> Tensor:
        """The delta-rule states of all layers, fp32[blocks, floats]."""
        return self._part("state", self.stride // 2, (self.stride // 2,))

    def _part(self, name: str, first: int, shape: tuple[int, ...]) -> Tensor:
        inner = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
        return Tensor(
            name,
            self.pool.data[first:],
            (self.pool.shape[0], *shape),
            strides=(self.stride, *inner),
            owners=self.owned,
            recorder=self.pool.recorder,
        )
