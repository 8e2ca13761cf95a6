"""Ops on recurrent state: causal convolution, gated delta rule, copies at block borders."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .launcher import Launcher
from .tensor import Tensor


class StateOps(Launcher):
    """What a linear-attention (GDN) layer of a hybrid model calls."""

    def conv_state(
        self,
        x: Tensor,
        weight: Tensor,
        state: Tensor,
        state_index: Tensor,
        query_start: Tensor,
        out: Tensor,
        *,
        requests: ArrayLike | None = None,
    ) -> None:
        """Causal depthwise conv1d over each request's tokens, its history in an indexed state.

        x fp32[tokens, dim], weight fp32[dim, width] (last column: the current token), state
        fp32[blocks, dim, width - 1] (oldest first), state_index int32[requests], query_start
        int32[requests + 1], out fp32[tokens, dim]. An index <= 0 (null block) or a request without
        tokens leaves out and state as they are. width at most 9. Rows: requests.
        """
        self._launch(
            "conv_state",
            (state_index.shape[0], 1, 1),
            requests,
            x=x,
            weight=weight,
            state=state,
            state_index=state_index,
            query_start=query_start,
            out=out,
            dim=x.shape[1],
            width=weight.shape[1],
            x_stride=x.strides[0],
            out_stride=out.strides[0],
            state_stride=state.strides[0],
        )

    def gated_delta_rule(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        decay: Tensor,
        beta: Tensor,
        state: Tensor,
        state_index: Tensor,
        accepted: Tensor | None,
        query_start: Tensor,
        out: Tensor,
        *,
        requests: ArrayLike | None = None,
    ) -> None:
        """Recurrent gated delta rule over each request's tokens, from and to indexed states.

        q, k fp32[tokens, heads, key dim], v fp32[tokens, heads, value dim], decay (log of the
        forget gate) and beta fp32[tokens, heads], state fp32[blocks, heads, value dim, key dim],
        state_index int32[requests, columns], out fp32 like v. S = exp(decay) S; S += beta (v - S k)
        k^T; out = S q. The start is state[state_index[r, accepted[r] - 1]] (None: column 0; the
        column is not checked, as upstream). With accepted the state after token t goes to
        state_index[r, t]; without, the last one goes to column 0. A start index <= 0 returns and
        leaves out as it is; a target index <= 0 is not written. Dims at most 16. Rows: requests;
        grid y: heads.
        """
        self._launch(
            "gated_delta_rule",
            (state_index.shape[0], q.shape[1], 1),
            requests,
            q=q,
            k=k,
            v=v,
            decay=decay,
            beta=beta,
            state=state,
            state_index=state_index,
            accepted=accepted,
            query_start=query_start,
            out=out,
            heads=q.shape[1],
            key_dim=q.shape[2],
            value_dim=v.shape[2],
            index_stride=state_index.strides[0],
            state_stride=state.strides[0],
            has_accepted=int(accepted is not None),
        )

    def state_copy(
        self,
        state: Tensor,
        block_table: Tensor,
        idx_mapping: Tensor,
        source_column: Tensor,
        target_column: Tensor,
        *,
        requests: ArrayLike | None = None,
    ) -> None:
        """Copy state blocks at block borders ("align" mode of prefix caching).

        For batch row b: row = idx_mapping[b]; state[block_table[row, target_column[b]]] becomes
        state[block_table[row, source_column[b]]]. A negative row, a negative column, equal columns
        or a null block (0) on either side: nothing. state fp32[blocks, ...], block_table
        int32[rows, columns], the rest int32[batch]. Rows: batch rows.
        """
        self._launch(
            "state_copy",
            (idx_mapping.shape[0], 1, 1),
            requests,
            state=state,
            block_table=block_table,
            idx_mapping=idx_mapping,
            source_column=source_column,
            target_column=target_column,
            size=int(np.prod(state.shape[1:], dtype=np.int64)),
            state_stride=state.strides[0],
            table_stride=block_table.strides[0],
        )
