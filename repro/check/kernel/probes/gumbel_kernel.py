"""What runner V2's Gumbel sampling reads for a row of the batch that no request has, and at the end
of the vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..probe import Bench, KernelProbe, Outcome, UnclearError
from ..subject import Nothing, Pointer, Scalar, Subject

VOCABULARY, BLOCK = 100, 64  # the last block of the vocabulary is not full
BLOCKS = -(-VOCABULARY // BLOCK)

SUBJECT = Subject(
    files=("v1/worker/gpu/sample/gumbel.py",),
    names=("_gumbel_sample_kernel",),
    roles={
        "local_argmax": Pointer("i64"),
        "local_argmax_stride": Scalar(BLOCKS),
        "local_max": Pointer("fp32"),
        "local_max_stride": Scalar(BLOCKS),
        "logits_cache": Nothing(also=("processed_logits",)),
        "logits_cache_stride": Scalar(
            0, also=("processed_logits_stride", "logits_cache_stride_0", "logits_cache_stride_1")
        ),
        "logits_cache_col": Nothing(also=("processed_logits_col",)),
        "logits_cache_source": Nothing(),
        "logits_cache_source_stride": Scalar(0),
        "logits": Pointer("fp32"),
        "logits_stride": Scalar(VOCABULARY),
        "idx_mapping": Pointer("i32", also=("expanded_idx_mapping",)),
        "seeds": Pointer("i64"),
        "pos": Pointer("i64"),
        "temp": Pointer("fp32"),
        "vocab_size": Scalar(VOCABULARY),
        "BLOCK_SIZE": Scalar(BLOCK),
        "APPLY_TEMPERATURE": Scalar(True),
        "IS_DRAFTING": Scalar(False),
        "USE_FP64": Scalar(False),
        "PER_TOKEN_COL": Scalar(False),
    },
    needs=("idx_mapping_ptr|expanded_idx_mapping_ptr", "temp_ptr", "seeds_ptr", "logits_ptr"),
)


def run(bench: Bench) -> Outcome:
    """Two tokens of two requests; then the second one is padding, whose slot is -1."""
    found, best = _sample(bench, [0, 1])
    if not found and not _argmax(best):
        raise UnclearError(f"the best tokens of each block are {best}")
    if found:
        one = found[0]
        said = f"a vocabulary of {VOCABULARY}: {one['kind']} of element {one['elements'][0]} of "
        return Outcome("past the vocabulary", said + str(one["tensor"]), found)
    found, _ = _sample(bench, [0, -1])
    if not found:
        return Outcome("guarded", "slot -1: nothing is read for it")
    said = ", ".join(f"{f['kind']} of element {f['elements'][0]} of {f['tensor']}" for f in found)
    return Outcome("reads outside", f"slot -1: {said}", found)


def _argmax(best: list[int]) -> bool:
    """Whether there is a token of the vocabulary for each block of it, of each row."""
    return all(
        BLOCK * number <= token < min(BLOCK * (number + 1), VOCABULARY)
        for row in range(2)
        for number, token in enumerate(best[row * BLOCKS : (row + 1) * BLOCKS])
    )


def _sample(bench: Bench, slots: list[int]) -> tuple[list[Mapping[str, Any]], list[int]]:
    """Launch for two tokens: the findings, and the best token of each block of each row."""
    best = bench.tensor("local_argmax", "i64", [-1] * (2 * BLOCKS))
    found = bench.launch(
        (2, BLOCKS, 1),
        {
            "local_argmax": best,
            "local_max": bench.tensor("local_max", "fp32", [0.0] * (2 * BLOCKS)),
            "logits": bench.tensor("logits", "fp32", [0.25] * (2 * VOCABULARY)),
            "idx_mapping": bench.tensor("expanded_idx_mapping", "i32", slots),
            "seeds": bench.tensor("seeds", "i64", [7, 8]),
            "pos": bench.tensor("pos", "i64", [3, 4]),
            "temp": bench.tensor("temp", "fp32", [1.0, 0.5]),
        },
    )
    return found, best.values


PROBE = KernelProbe(
    "gumbel_kernel",
    "what does runner V2's Gumbel sampling read for a row that no request has?",
    SUBJECT,
    {
        "guarded": "nothing",
        "reads outside": "temperature and seed before their tensors",
        "past the vocabulary": "logits past the vocabulary, for every row",
    },
    run,
    "there is no runner V2, or its kernel takes the row itself",
)
