"""Ops that derive, plan and consume attention metadata, and the sampler of the draft loop."""

from __future__ import annotations

from numpy.typing import ArrayLike

from .launcher import Launcher
from .tensor import Tensor


class MetadataOps(Launcher):
    """What attention builders and draft samplers of Model Runner V2 and FlashInfer call."""

    def window_index(
        self,
        seq_lens: Tensor,
        block_table: Tensor,
        index: Tensor,
        lengths: Tensor,
        *,
        block_size: int,
        window: int,
        requests: ArrayLike | None = None,
    ) -> None:
        """The slots a windowed attention reads: index[r, i] for the last positions of request r.

        seq_lens int32[requests], block_table int32[requests, columns], index int32[requests,
        >= window], lengths int32[requests]. lengths[r] = min(seq_lens[r], window); entries of index
        past it are left as they are. Attention over it is paged_attention with block size 1. Rows:
        requests.
        """
        self._launch(
            "window_index",
            (seq_lens.shape[0], 1, 1),
            requests,
            seq_lens=seq_lens,
            block_table=block_table,
            index=index,
            lengths=lengths,
            table_stride=block_table.strides[0],
            index_stride=index.strides[0],
            block_size=block_size,
            window=window,
        )

    def gather_block_tables(
        self,
        idx_mapping: Tensor,
        source: Tensor,
        out: Tensor,
        *,
        requests: ArrayLike | None = None,
    ) -> None:
        """out[b] = source[idx_mapping[b]]: block tables in request order to batch order.

        idx_mapping int32[batch] (negative: the row of out is left as it is), source int32[requests,
        columns], out int32[batch, columns]. Rows: batch rows.
        """
        self._launch(
            "gather_block_tables",
            (idx_mapping.shape[0], 1, 1),
            requests,
            idx_mapping=idx_mapping,
            source=source,
            out=out,
            columns=out.shape[1],
            source_stride=source.strides[0],
            out_stride=out.strides[0],
        )

    def gumbel_sample(
        self,
        logits: Tensor,
        positions: Tensor,
        sampled: Tensor,
        processed: Tensor,
        column_scalar: Tensor | None,
        *,
        column: int,
        seed: int,
        temperature: float,
        requests: ArrayLike | None = None,
    ) -> None:
        """sampled[r] = argmax(logits[r] / temperature + Gumbel noise of (seed, position, token)).

        logits fp32[requests, vocab], positions int64[requests], sampled int32[requests], processed
        fp32[requests, columns, vocab] gets logits / temperature at a column: the value in
        column_scalar int32[1] when the kernel runs, or `column` where it is None (a value, frozen
        in a captured launch). Temperature 0 is greedy: logits as they are, no noise. Rows:
        requests.
        """
        self._launch(
            "gumbel_sample",
            (logits.shape[0], 1, 1),
            requests,
            logits=logits,
            positions=positions,
            sampled=sampled,
            processed=processed,
            column_scalar=column_scalar,
            vocab=logits.shape[1],
            logits_stride=logits.strides[0],
            processed_stride=processed.strides[0],
            column_stride=processed.strides[1],
            column=column,
            has_column_scalar=int(column_scalar is not None),
            seed=seed,
            temperature=float(temperature),
        )

    def planned_attention(
        self,
        query: Tensor,
        key_cache: Tensor,
        value_cache: Tensor,
        page_indptr: Tensor,
        page_indices: Tensor,
        last_page_len: Tensor,
        split: Tensor,
        partial_out: Tensor,
        partial_lse: Tensor,
        *,
        chunks: int,
        pages_in_chunk: int,
        request_at: int,
        tile_at: int,
        block_size: int,
        scale: float,
        requests: ArrayLike | None = None,
    ) -> None:
        """Split-KV decode attention by a plan: one chunk of pages of one request a row.

        query fp16[requests, heads, dim] (one token each), caches fp16[slots, kv heads, dim]; the
        engine's part of the plan: page_indptr int32[requests + 1], page_indices int32[pages],
        last_page_len int32[requests]; the library's part, in the work space split int32[...]:
        split[request_at + c] is the request of chunk c, split[tile_at + c] its number within that
        request. partial_out fp32[chunks, heads, dim], partial_lse fp32[chunks, heads] (natural
        log). Rows: chunks.
        """
        self._launch(
            "planned_attention",
            (chunks, query.shape[1], 1),
            requests,
            query=query,
            key_cache=key_cache,
            value_cache=value_cache,
            page_indptr=page_indptr,
            page_indices=page_indices,
            last_page_len=last_page_len,
            split=split,
            partial_out=partial_out,
            partial_lse=partial_lse,
            heads=query.shape[1],
            head_dim=query.shape[2],
            group=query.shape[1] // key_cache.shape[1],
            query_stride=query.strides[0],
            cache_stride=key_cache.strides[0],
            pages_in_chunk=pages_in_chunk,
            request_at=request_at,
            tile_at=tile_at,
            block_size=block_size,
            scale=float(scale),
        )

    def merge_states(
        self,
        partial_out: Tensor,
        partial_lse: Tensor,
        split: Tensor,
        out: Tensor,
        *,
        indptr_at: int,
        requests: ArrayLike | None = None,
    ) -> None:
        """Merge the partial results of each request by their log-sum-exp.

        Chunks split[indptr_at + r] ... split[indptr_at + r + 1] - 1 belong to request r.
        partial_out fp32[chunks, heads, dim], partial_lse fp32[chunks, heads], split int32[...], out
        fp32[requests, heads, dim]. Rows: requests.
        """
        self._launch(
            "merge_states",
            (out.shape[0], out.shape[1], 1),
            requests,
            partial_out=partial_out,
            partial_lse=partial_lse,
            split=split,
            out=out,
            heads=out.shape[1],
            head_dim=out.shape[2],
            out_stride=out.strides[0],
            indptr_at=indptr_at,
        )
