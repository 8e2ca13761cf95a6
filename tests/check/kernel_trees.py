"""Release-shaped trees with kernels of our own, in the shape of the engine's, one an outcome."""

from __future__ import annotations

import textwrap
from pathlib import Path

HEAD = "from vllm.triton_utils import tl, triton\n\n"
STEP = "v1/spec_decode/utils.py"
UPDATE = "v1/worker/gpu/spec_decode/speculator.py"
V1_TABLE, V2_TABLE = "v1/worker/block_table.py", "v1/worker/gpu/block_table.py"
BATCH_REJECTION = "v1/worker/gpu/spec_decode/rejection_sampler_utils.py"
REJECTION, GUMBEL = "v1/sample/rejection_sampler.py", "v1/worker/gpu/sample/gumbel.py"
BATCH_STRICT = "v1/worker/gpu/spec_decode/rejection_sample.py"

STEP_BODY = """
    row = tl.program_id(0)
    position = tl.load(positions_ptr + row) + 1
    past = position >= max_model_len
    held = tl.where(past, {held}, position)
    number = tl.minimum(held // block_size, n_blocks_per_req - 1)
    block = tl.load(block_table_ptr + row * block_table_stride + number)
    slot = block * block_size + held % block_size
    tl.store(out_clamped_positions_ptr + row, held)
    tl.store(out_slot_mapping_ptr + row, {slot})
"""


def step(held: str = "0", slot: str = "tl.where(past, PAD_ID, slot)", body: str = STEP_BODY) -> str:
    """A draft step. held: the position that is fed back once it is past the end."""
    return kernel(
        "eagle_step_slot_mapping_metadata_kernel",
        "block_table_ptr, positions_ptr, block_table_stride, out_slot_mapping_ptr, "
        "out_clamped_positions_ptr, seq_lens_ptr, max_model_len: tl.constexpr, "
        "block_size: tl.constexpr, n_blocks_per_req: tl.constexpr, PAD_ID: tl.constexpr",
        body.format(held=held, slot=slot),
    )


def kernel(name: str, parameters: str, body: str) -> str:
    return f"{HEAD}@triton.jit\ndef {name}(\n    {parameters}\n):\n{indented(body)}"


def indented(body: str) -> str:
    return textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"


def update(position: str = "tl.minimum(position + 1, max_model_len - 1)") -> str:
    return kernel(
        "_update_draft_inputs_kernel",
        "seq_lens_ptr, positions_ptr, max_model_len",
        f"""
        row = tl.program_id(0)
        position = tl.load(positions_ptr + row)
        tl.store(positions_ptr + row, {position})
        length = tl.load(seq_lens_ptr + row)
        tl.store(seq_lens_ptr + row, tl.minimum(length + 1, max_model_len))
        """,
    )


def decode_input(position: str = "tl.minimum(position + 1, max_model_len - 1)") -> str:
    return kernel(
        "_prepare_decode_inputs_kernel",
        "draft_tokens_ptr, target_seq_lens_ptr, num_rejected_ptr, input_ids_ptr, positions_ptr, "
        "seq_lens_ptr, max_model_len",
        f"""
        row = tl.program_id(0)
        if row == tl.num_programs(0) - 1:
            return
        tl.store(input_ids_ptr + row, tl.load(draft_tokens_ptr + row))
        position = tl.load(positions_ptr + row)
        tl.store(positions_ptr + row, {position})
        length = tl.load(target_seq_lens_ptr + row) - tl.load(num_rejected_ptr + row)
        tl.store(seq_lens_ptr + row, tl.minimum(length + 1, max_model_len))
        """,
    )


def v1_mapping(mask: str = "inside") -> str:
    return kernel(
        "_compute_slot_mapping_kernel",
        "positions_ptr, query_start_loc_ptr, block_table_ptr, block_table_stride, block_size, "
        "slot_mapping_ptr, num_tokens, max_num_tokens, PAD_ID: tl.constexpr, "
        "BLOCK_SIZE: tl.constexpr",
        f"""
        row = tl.program_id(0)
        lane = tl.arange(0, BLOCK_SIZE)
        if row == tl.num_programs(0) - 1:
            at = num_tokens + lane
            tl.store(slot_mapping_ptr + at, PAD_ID, mask=at < max_num_tokens)
            return
        first = tl.load(query_start_loc_ptr + row)
        inside = first + lane < tl.load(query_start_loc_ptr + row + 1)
        position = tl.load(positions_ptr + first + lane, mask=inside, other=0)
        number = position // block_size
        block = tl.load(
            block_table_ptr + row * block_table_stride + number, mask={mask}, other=0
        )
        slot = block.to(tl.int64) * block_size + position % block_size
        tl.store(slot_mapping_ptr + first + lane, slot, mask=inside)
        """,
    )


def v2_mapping(mask: str = "inside", real: str = "True") -> str:
    return kernel(
        "_compute_slot_mappings_kernel",
        "pos, block_table_ptrs, block_table_strides, block_sizes, slot_mappings_ptr, "
        "slot_mappings_stride, idx_mapping, query_start_loc, max_num_tokens, "
        "PAD_ID: tl.constexpr, TRITON_BLOCK_SIZE: tl.constexpr",
        f"""
        group = tl.program_id(0)
        row = tl.program_id(1)
        lane = tl.arange(0, TRITON_BLOCK_SIZE)
        out = slot_mappings_ptr + group * slot_mappings_stride
        first = tl.load(query_start_loc + row)
        if row == tl.num_programs(1) - 1:
            for start in range(first, max_num_tokens, TRITON_BLOCK_SIZE):
                tl.store(out + start + lane, PAD_ID, mask=start + lane < max_num_tokens)
            return
        table = tl.load(block_table_ptrs + group).to(tl.pointer_type(tl.int32))
        stride = tl.load(block_table_strides + group)
        size = tl.load(block_sizes + group)
        slot = tl.load(idx_mapping + row)
        inside = first + lane < tl.load(query_start_loc + row + 1)
        position = tl.load(pos + first + lane, mask=inside, other=0)
        number = position // size
        block = tl.load(table + slot * stride + number, mask={mask} & {real}, other=0)
        tl.store(out + first + lane, block * size + position % size, mask=inside)
        """,
    )


def append(mask: str = "True") -> str:
    return kernel(
        "_append_block_ids_kernel",
        "req_indices, cu_num_new_blocks_ptr, new_block_ids_ptr, block_table_strides, "
        "block_table_ptrs, BLOCK_SIZE: tl.constexpr",
        f"""
        row = tl.load(req_indices + tl.program_id(1))
        count = tl.load(cu_num_new_blocks_ptr + 1)
        stride = tl.load(block_table_strides)
        table = tl.load(block_table_ptrs).to(tl.pointer_type(tl.int32))
        lane = tl.arange(0, BLOCK_SIZE)
        ids = tl.load(new_block_ids_ptr + lane, mask=lane < count)
        tl.store(table + row * stride + lane, ids, mask=(lane < count) & {mask})
        """,
    )


def rejection(guard: str = "draft >= 0") -> str:
    return kernel(
        "rejection_random_sample_kernel",
        "target_probs_ptr, draft_token_ids_ptr, cu_num_draft_tokens_ptr, output_token_ids_ptr, "
        "bonus_token_ids_ptr, recovered_token_ids_ptr, uniform_probs_ptr, max_spec_len, vocab_size",
        f"""
        row = tl.program_id(0)
        end = tl.load(cu_num_draft_tokens_ptr + row)
        first = end - max_spec_len
        kept = True
        for number in range(max_spec_len):
            if kept:
                at = first + number
                draft = tl.load(draft_token_ids_ptr + at)
                chance = tl.load(
                    target_probs_ptr + at * vocab_size + draft, mask={guard}, other=0.0
                )
                kept = chance >= tl.load(uniform_probs_ptr + at)
                token = draft if kept else tl.load(recovered_token_ids_ptr + at)
                tl.store(output_token_ids_ptr + row * (max_spec_len + 1) + number, token)
        if kept:
            bonus = tl.load(bonus_token_ids_ptr + row)
            tl.store(output_token_ids_ptr + row * (max_spec_len + 1) + max_spec_len, bonus)
        """,
    )


def batch_rejection(guard: str = "draft >= 0") -> str:
    return kernel(
        "_rejection_kernel",
        "draft_sampled_ptr, target_logits_ptr, target_logits_stride, sampled_ptr, sampled_stride, "
        "cu_num_logits_ptr",
        f"""
        row = tl.program_id(0)
        first = tl.load(cu_num_logits_ptr + row)
        kept = True
        for number in range(tl.load(cu_num_logits_ptr + row + 1) - first - 1):
            if kept:
                at = first + number
                draft = tl.load(draft_sampled_ptr + at + 1)
                score = tl.load(
                    target_logits_ptr + at * target_logits_stride + draft, mask={guard}, other=-9.0
                )
                kept = score > 0
                tl.store(sampled_ptr + row * sampled_stride + number, draft)
        """,
    )


def greedy(given: str = "target", right: str = "draft == target") -> str:
    """given: what comes out at a draft; right: whether it goes on after it."""
    return kernel(
        "rejection_greedy_sample_kernel",
        "output_token_ids_ptr, cu_num_draft_tokens_ptr, draft_token_ids_ptr, target_argmax_ptr, "
        "bonus_token_ids_ptr, max_spec_len",
        f"""
        row = tl.program_id(0)
        end = tl.load(cu_num_draft_tokens_ptr + row)
        first = tl.load(cu_num_draft_tokens_ptr + row - 1, mask=row > 0, other=0)
        out = output_token_ids_ptr + row * (max_spec_len + 1)
        kept = True
        for number in range(end - first):
            if kept:
                draft = tl.load(draft_token_ids_ptr + first + number)
                target = tl.load(target_argmax_ptr + first + number).to(tl.int32)
                tl.store(out + number, {given})
                kept = {right}
        if kept:
            tl.store(out + end - first, tl.load(bonus_token_ids_ptr + row))
        """,
    )


def batch_strict(right: str = "draft == target", first: str = "first") -> str:
    """first: where a request's drafts begin."""
    return kernel(
        "_rejection_sample_kernel",
        "sampled_ptr, sampled_stride, num_sampled_ptr, target_sampled_ptr, input_ids_ptr, "
        "cu_num_logits_ptr",
        f"""
        row = tl.program_id(0)
        first = tl.load(cu_num_logits_ptr + row)
        count = tl.load(cu_num_logits_ptr + row + 1) - first
        kept = True
        for number in range(count):
            if kept:
                target = tl.load(target_sampled_ptr + {first} + number)
                tl.store(sampled_ptr + row * sampled_stride + number, target)
                if number < count - 1:
                    draft = tl.load(input_ids_ptr + {first} + number + 1)
                    kept = {right}
        """,
    )


def batch_greedy(right: str = "draft == target") -> str:
    """A kernel that samples by probability too: a request of temperature 0 is greedy."""
    return kernel(
        "_rejection_kernel",
        "sampled_ptr, sampled_stride, target_local_argmax_ptr, target_local_argmax_stride, "
        "draft_sampled_ptr, cu_num_logits_ptr, temp_ptr, idx_mapping_ptr",
        f"""
        row = tl.program_id(0)
        first = tl.load(cu_num_logits_ptr + row)
        kept = tl.load(temp_ptr + tl.load(idx_mapping_ptr + row)) == 0.0
        for number in range(tl.load(cu_num_logits_ptr + row + 1) - first - 1):
            if kept:
                at = first + number
                draft = tl.load(draft_sampled_ptr + at + 1)
                target = tl.load(target_local_argmax_ptr + at * target_local_argmax_stride)
                tl.store(sampled_ptr + row * sampled_stride + number, target)
                kept = {right}
        """,
    )


def gumbel(valid: str = "slot >= 0", end: str = "vocab_size") -> str:
    return kernel(
        "_gumbel_sample_kernel",
        "logits_ptr, logits_stride, local_argmax_ptr, local_argmax_stride, temp_ptr, seeds_ptr, "
        "expanded_idx_mapping_ptr, vocab_size, BLOCK_SIZE: tl.constexpr",
        f"""
        row = tl.program_id(0)
        number = tl.program_id(1)
        slot = tl.load(expanded_idx_mapping_ptr + row)
        valid = {valid}
        warmth = tl.load(temp_ptr + slot, mask=valid, other=1.0)
        seed = tl.load(seeds_ptr + slot, mask=valid, other=0)
        at = number * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        worst = float("-inf")
        logits = tl.load(logits_ptr + row * logits_stride + at, mask=at < {end}, other=worst)
        logits = tl.where(at < vocab_size, logits / warmth + tl.rand(seed, at), worst)
        best = number * BLOCK_SIZE + tl.argmax(logits, axis=0)
        tl.store(local_argmax_ptr + row * local_argmax_stride + number, best)
        """,
    )


def plant(folder: Path, files: dict[str, str]) -> Path:
    """A tree of a build with these files below `vllm/`."""
    for name, text in {"_version.py": "__version__ = '0.99.0'\n", **files}.items():
        path = folder / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
