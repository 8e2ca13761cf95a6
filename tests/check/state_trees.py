"""Kernels of our own that move and index recurrent state, in the shape of the engine's.

`kernel` is that of kernel_trees.py; tests load both files by path.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any


def _trees() -> Any:
    path = Path(__file__).with_name("kernel_trees.py")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


kernel = _trees().kernel
COPY = "v1/worker/mamba_utils.py"
CONVOLUTION = "layers/mamba/ops/causal_conv1d.py"
RECURRENT = "layers/ops/fused_recurrent.py"
MTP_RECURRENT = "layers/ops/fused_gdn_decode_post_conv_mtp.py"

COPY_PARAMETERS = (
    "idx_mapping_ptr, mamba_state_idx_ptr, num_accepted_tokens_ptr, num_computed_tokens_ptr, "
    "block_table_ptrs_ptr, block_table_stride_req, state_base_addrs_ptr, state_block_strides_ptr, "
    "state_inner_sizes_ptr, block_size: tl.constexpr, COPY_BLOCK_SIZE: tl.constexpr, "
    "HAS_IDX_MAPPING: tl.constexpr, PRECOMPUTED_NEW_COMPUTED: tl.constexpr"
)


def copy(row: str = "slot", needed: str = "True") -> str:
    """row: of the block table; needed: whether a state is copied at all."""
    return kernel(
        "postprocess_mamba_fused_kernel",
        COPY_PARAMETERS,
        f"""
        batch = tl.program_id(0)
        slot = tl.load(idx_mapping_ptr + batch)
        computed = tl.load(num_computed_tokens_ptr + slot)
        running = computed - tl.load(num_accepted_tokens_ptr + slot) + 1
        aligned = computed // block_size * block_size
        source = tl.load(mamba_state_idx_ptr + slot) + aligned - running
        table = tl.load(block_table_ptrs_ptr).to(tl.pointer_type(tl.int32))
        table += {row} * block_table_stride_req
        state = tl.load(state_base_addrs_ptr)
        stride = tl.load(state_block_strides_ptr)
        lane = tl.arange(0, COPY_BLOCK_SIZE)
        inside = (lane < tl.load(state_inner_sizes_ptr)) & {needed}
        here = (state + tl.load(table + source) * stride).to(tl.pointer_type(tl.float32))
        there = (state + tl.load(table + aligned // block_size - 1) * stride).to(
            tl.pointer_type(tl.float32)
        )
        tl.store(there + lane, tl.load(here + lane, mask=inside), mask=inside)
        """,
    )


def recurrent(count: str = "tl.minimum(tl.maximum(count, 1), 4)", start: str = "count - 1") -> str:
    """count: what the accepted count is made of, with a table of four states a request."""
    return kernel(
        "fused_recurrent_small_kernel",
        "ht, h0, q, ssm_state_indices, num_accepted_tokens, stride_indices_seq: tl.constexpr, "
        "stride_init_state_token: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr",
        f"""
        row = tl.program_id(2)
        count = tl.load(num_accepted_tokens + row)
        count = {count}
        lane = tl.arange(0, BK * BV)
        table = ssm_state_indices + row * stride_indices_seq
        before = tl.load(table + {start}).to(tl.int64)
        state = tl.load(h0 + before * stride_init_state_token + lane)
        after = tl.load(table).to(tl.int64)
        tl.store(ht + after * stride_init_state_token + lane, state)
        """,
    )


def precopy(row: str = "slot", source: str = "source + shift") -> str:
    """row: of the block table; source: column from which a state comes."""
    return kernel(
        "precopy_mamba_align_fused_kernel",
        "idx_mapping_ptr, src_col_ptr, token_bias_ptr, mamba_state_idx_ptr, block_table_ptrs_ptr, "
        "block_table_stride_req, state_base_addrs_ptr, state_block_strides_ptr, "
        "state_inner_sizes_ptr, COPY_BLOCK_SIZE: tl.constexpr",
        f"""
        batch = tl.program_id(0)
        slot = tl.load(idx_mapping_ptr + batch)
        source = tl.load(src_col_ptr + slot)
        shift = tl.load(token_bias_ptr + slot)
        table = tl.load(block_table_ptrs_ptr).to(tl.pointer_type(tl.int32))
        table += {row} * block_table_stride_req
        state = tl.load(state_base_addrs_ptr)
        stride = tl.load(state_block_strides_ptr)
        lane = tl.arange(0, COPY_BLOCK_SIZE)
        inside = lane < tl.load(state_inner_sizes_ptr)
        old = tl.load(table + {source})
        new = tl.load(table + tl.load(mamba_state_idx_ptr + slot))
        here = (state + old * stride).to(tl.pointer_type(tl.float32))
        there = (state + new * stride).to(tl.pointer_type(tl.float32))
        tl.store(there + lane, tl.load(here + lane, mask=inside), mask=inside)
        """,
    )


def window_copy(row: str = "slot", shift: str = "shift", in_rows: bool = False) -> str:
    """A window of tokens is moved, and shifted by what was accepted. in_rows: the tokens of a
    channel lie side by side."""
    parameters = COPY_PARAMETERS.replace(
        "state_inner_sizes_ptr,", "state_inner_sizes_ptr, state_conv_widths_ptr,"
    )
    if in_rows:
        parameters += ", state_dim_row_count_ptr, CONV_STATE_DIM_FIRST: tl.constexpr"
        rows, step = "tl.load(state_dim_row_count_ptr)", "1"
    else:
        rows, step = "tl.load(state_inner_sizes_ptr)", "tl.load(state_inner_sizes_ptr)"
    apart = "width" if in_rows else "1"
    return kernel(
        "postprocess_mamba_fused_kernel",
        parameters,
        f"""
        batch = tl.program_id(0)
        slot = tl.load(idx_mapping_ptr + batch)
        computed = tl.load(num_computed_tokens_ptr + slot)
        running = computed - tl.load(num_accepted_tokens_ptr + slot) + 1
        aligned = computed // block_size * block_size
        shift = (aligned - running).to(tl.int64)
        table = tl.load(block_table_ptrs_ptr).to(tl.pointer_type(tl.int32))
        table += {row} * block_table_stride_req
        state = tl.load(state_base_addrs_ptr)
        stride = tl.load(state_block_strides_ptr)
        old = tl.load(table + tl.load(mamba_state_idx_ptr + slot))
        new = tl.load(table + aligned // block_size - 1)
        here = (state + old * stride).to(tl.pointer_type(tl.float32))
        there = (state + new * stride).to(tl.pointer_type(tl.float32))
        width = tl.load(state_conv_widths_ptr)
        step = {step}
        lane = tl.arange(0, COPY_BLOCK_SIZE)
        inside = lane < {rows}
        for token in range(width - shift):
            value = tl.load(here + lane * {apart} + (token + {shift}) * step, mask=inside)
            tl.store(there + lane * {apart} + token * step, value, mask=inside)
        """,
    )


def accepted_copy(accepted: str = "tl.minimum(accepted, drafts + 1)", needed: str = "True") -> str:
    """Runner V1's: what it decides with lies in the order of the batch, and so does the table."""
    return kernel(
        "postprocess_mamba_fused_kernel",
        "num_accepted_tokens_ptr, mamba_state_idx_ptr, num_scheduled_tokens_ptr, "
        "num_computed_tokens_ptr, num_draft_tokens_ptr, block_table_ptrs_ptr, "
        "block_table_stride_req, state_base_addrs_ptr, state_block_strides_ptr, "
        "state_inner_sizes_ptr, block_size: tl.constexpr, COPY_BLOCK_SIZE: tl.constexpr",
        f"""
        row = tl.program_id(0)
        accepted = tl.load(num_accepted_tokens_ptr + row)
        drafts = tl.load(num_draft_tokens_ptr + row)
        accepted = {accepted}
        running = tl.load(num_computed_tokens_ptr + row) - drafts
        running += tl.load(num_scheduled_tokens_ptr + row)
        aligned = (running + accepted - 1) // block_size * block_size
        if aligned < running:
            return
        table = tl.load(block_table_ptrs_ptr).to(tl.pointer_type(tl.int32))
        table += row * block_table_stride_req
        state = tl.load(state_base_addrs_ptr)
        stride = tl.load(state_block_strides_ptr)
        old = tl.load(table + tl.load(mamba_state_idx_ptr + row) + aligned - running)
        new = tl.load(table + aligned // block_size - 1)
        lane = tl.arange(0, COPY_BLOCK_SIZE)
        inside = (lane < tl.load(state_inner_sizes_ptr)) & {needed}
        here = (state + old * stride).to(tl.pointer_type(tl.float32))
        there = (state + new * stride).to(tl.pointer_type(tl.float32))
        tl.store(there + lane, tl.load(here + lane, mask=inside), mask=inside)
        """,
    )


def conv_update(count: str = "tl.minimum(tl.maximum(count, 1), 4)", order: str = "") -> str:
    """A convolution of width 4 on a window of 6 tokens, of which 2 stay. count: what the accepted
    count is made of; order: added to the token that is kept."""
    return kernel(
        "_causal_conv1d_update_kernel",
        "x_ptr, conv_state_ptr, conv_state_indices_ptr, num_accepted_tokens_ptr, batch: int, "
        "stride_conv_state_seq: tl.constexpr, stride_conv_state_tok: tl.constexpr, "
        "seqlen: tl.constexpr, state_len: tl.constexpr, BLOCK_N: tl.constexpr",
        f"""
        row = tl.program_id(0)
        if row >= batch:
            return
        count = tl.load(num_accepted_tokens_ptr + row)
        count = {count}
        line = tl.load(conv_state_indices_ptr + row).to(tl.int64)
        window = conv_state_ptr + line * stride_conv_state_seq + tl.arange(0, BLOCK_N)
        for token in range(state_len):
            if token < state_len - seqlen:
                from_token = token + count{order}
                value = tl.load(window + from_token * stride_conv_state_tok)
            else:
                at = token - (state_len - seqlen)
                value = tl.load(x_ptr + at * BLOCK_N + tl.arange(0, BLOCK_N))
            tl.store(window + token * stride_conv_state_tok, value)
        """,
    )


def mtp_recurrent(right: str = "(count > 0) & (count <= num_indices_per_row)") -> str:
    """right: of which counts the state is looked up."""
    return kernel(
        "_gdn_mtp_update_kernel",
        "state, state_indices, num_accepted_tokens, stride_state_slot, stride_indices_row, "
        "num_indices_per_row, K: tl.constexpr, BV: tl.constexpr",
        f"""
        row = tl.program_id(1)
        count = tl.load(num_accepted_tokens + row)
        table = state_indices + row * stride_indices_row
        before = tl.load(table + count - 1, mask={right}, other=0)
        if before <= 0:
            return
        lane = tl.arange(0, K * BV)
        after = tl.load(table)
        value = tl.load(state + before * stride_state_slot + lane)
        tl.store(state + after * stride_state_slot + lane, value)
        """,
    )
