"""Ops of a decode step: slots, cache, attention, verification."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .launcher import Launcher
from .tensor import EVERYBODY, Tensor


class DecodeOps(Launcher):
    """What every speculative decode step calls."""

    def slot_mapping(
        self,
        query_start: Tensor,
        positions: Tensor,
        block_table: Tensor,
        slots: Tensor,
        *,
        block_size: int,
        requests: ArrayLike | None = None,
    ) -> None:
        """slots[t] = block_table[r, positions[t] // block_size] * block_size + offset.

        query_start int32[requests + 1], positions int64[tokens], block_table int32[requests,
        columns], slots int64[>= tokens]; slots past the last token become -1. Rows: requests.
        """
        count = query_start.shape[0] - 1
        rows = None
        if requests is not None:  # the program after the last request only pads
            rows = np.append(np.asarray(requests, np.int32), EVERYBODY)
        self._launch(
            "slot_mapping",
            (count + 1, 1, 1),
            rows,
            query_start=query_start,
            positions=positions,
            block_table=block_table,
            slots=slots,
            num_requests=count,
            num_slots=slots.shape[0],
            table_stride=block_table.strides[0],
            block_size=block_size,
        )

    def draft_step(
        self,
        positions: Tensor,
        seq_lens: Tensor,
        block_table: Tensor,
        slots: Tensor,
        *,
        block_size: int,
        limit: int,
        at_limit: int,
        requests: ArrayLike | None = None,
    ) -> None:
        """Advance every request by one draft token, in place; see kernels/draft_step.

        positions int64[requests], seq_lens int32[requests], slots int64[requests]. at_limit: what
        happens to a position >= limit (AT_LIMIT of the draft_step reference). Rows: requests.
        """
        self._launch(
            "draft_step",
            (positions.shape[0], 1, 1),
            requests,
            positions=positions,
            seq_lens=seq_lens,
            block_table=block_table,
            slots=slots,
            table_stride=block_table.strides[0],
            block_size=block_size,
            limit=limit,
            at_limit=at_limit,
        )

    def kv_write(
        self,
        key: Tensor,
        value: Tensor,
        key_cache: Tensor,
        value_cache: Tensor,
        slots: Tensor,
        *,
        requests: ArrayLike | None = None,
    ) -> None:
        """key_cache[slots[t]] = key[t], the same for value; slot -1 is skipped.

        key, value [tokens, ...], caches [slots, ...], all of one 16-bit dtype; slots int64[tokens].
        Rows: tokens.
        """
        width = int(np.prod(key.shape[1:], dtype=np.int64))
        self._launch(
            "kv_write",
            (key.shape[0], 1, 1),
            requests,
            key=key,
            value=value,
            key_cache=key_cache,
            value_cache=value_cache,
            slots=slots,
            width=width,
            key_stride=key.strides[0],
            value_stride=value.strides[0],
            cache_stride=key_cache.strides[0],
        )

    def rope(
        self,
        x: Tensor,
        positions: Tensor,
        table: Tensor,
        *,
        requests: ArrayLike | None = None,
    ) -> None:
        """Rotate x fp16[tokens, heads, dim] in place by table fp32[positions, dim] (cos | sin).

        positions int64[tokens]. Rows: tokens.
        """
        self._launch(
            "rope",
            (x.shape[0], 1, 1),
            requests,
            x=x,
            positions=positions,
            table=table,
            heads=x.shape[1],
            head_dim=x.shape[2],
            x_stride=x.strides[0],
            table_stride=table.strides[0],
        )

    def paged_attention(
        self,
        query: Tensor,
        key_cache: Tensor,
        value_cache: Tensor,
        block_table: Tensor,
        query_start: Tensor,
        seq_lens: Tensor,
        out: Tensor,
        *,
        block_size: int,
        scale: float,
        window: int = 0,
        requests: ArrayLike | None = None,
    ) -> None:
        """Causal attention of each request's last tokens over its paged KV cache.

        query fp16[tokens, heads, dim], caches fp16[slots, kv heads, dim], block_table
        int32[requests, columns], query_start int32[requests + 1], seq_lens int32[requests] (the
        request's whole length, its queries being the last of it), out fp32 like query. window > 0:
        a query sees that many positions, itself included. Rows: requests.
        """
        self._launch(
            "paged_attention",
            (seq_lens.shape[0], query.shape[1], 1),
            requests,
            query=query,
            key_cache=key_cache,
            value_cache=value_cache,
            block_table=block_table,
            query_start=query_start,
            seq_lens=seq_lens,
            out=out,
            head_dim=query.shape[2],
            group=query.shape[1] // key_cache.shape[1],
            query_stride=query.strides[0],
            out_stride=out.strides[0],
            cache_stride=key_cache.strides[0],
            table_stride=block_table.strides[0],
            block_size=block_size,
            window=window,
            scale=float(scale),
        )

    def rejection_sample(
        self,
        draft_start: Tensor,
        draft_tokens: Tensor,
        draft_probs: Tensor | None,
        target_probs: Tensor,
        bonus_tokens: Tensor,
        uniform: Tensor,
        noise: Tensor,
        output: Tensor,
        *,
        greedy: bool,
        requests: ArrayLike | None = None,
    ) -> None:
        """Accept drafts from the left, then one recovered or bonus token, then -1.

        draft_start int32[requests + 1], draft_tokens int32[drafts], draft_probs fp32[drafts, vocab]
        (None: the draft has no distribution), target_probs fp32[drafts, vocab], bonus_tokens
        int32[requests], uniform fp32[drafts], noise fp32[requests, vocab] (exponential, for the
        recovered token), output int32[requests, k + 1]. Rows: requests.
        """
        self._launch(
            "rejection_sample",
            (output.shape[0], 1, 1),
            requests,
            draft_start=draft_start,
            draft_tokens=draft_tokens,
            draft_probs=draft_probs,
            target_probs=target_probs,
            bonus_tokens=bonus_tokens,
            uniform=uniform,
            noise=noise,
            output=output,
            output_stride=output.strides[0],
            vocab=target_probs.shape[1],
            greedy=int(greedy),
            has_draft_probs=int(draft_probs is not None),
        )
