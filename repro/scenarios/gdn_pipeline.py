"""Scenario `gdn_pipeline`: a GDN hybrid in pipeline stages, with cold chunked prefill (vllm#63505).

Three GDN layers, then one attention layer, repeated and cut into stages. A cold prompt is prefilled
in chunks, up to as many in flight as there are stages; then it is decoded. With prefix caching a
state moves to a new block at each block border ("align" mode). The upstream report was closed
without a cause, so every fault here is a *hypothesis*: FAULTS says what, where in which release,
and what it needs. None is predicted; all are run.

The pipeline moves in ticks. In each, every stage's host takes the next step (all are told of it at
the same time), then hidden states travel that were sent before, then a stage starts on those that
arrived a tick earlier, because it was busy with the step before. A later stage queues the copies of
its metadata behind the receive, so its host runs ahead of them; the first stage waits for nobody
and its copies are done at once. With blocking launches a step ends everywhere before the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..records import Outcome, Prediction, Scalar
from .declare import Parameter
from .gdn_partition import sizes

if TYPE_CHECKING:
    from ..ops import Ops

MOST_REQUESTS = 4  # rows a state index has room for
MOST_STAGES = 8

# setting → what it is, where it stood or stands in vLLM, what it needs to act
FAULTS: Mapping[str, str] = {
    "none": "the pipeline as it should be",
    "global_layer_index": "H1: a stage finds the cache group of a layer by the layer's number in "
    "the model, not on the stage. In no release that was read; needs a stage that does not start "
    "at a multiple of the period",
    "stale_padding": "H2: padding rows of a captured decode keep the state indices of an earlier "
    "batch. Upstream GDN takes captured buffers only in steps without prefill; needs graphs and a "
    "decode batch that shrinks",
    "batch_row_late": "H3: the align copy after a step finds its block by batch row while a "
    "stage before the last commits a step only once the last stage has counted it, after later "
    "steps gathered the tables anew. V2, 0.25.0 to 0.31.0; needs MTP, prefix caching, requests",
    "wrong_block_unit": "H4: after a cache hit the state's column is counted in blocks of the "
    "attention cache. V2, 0.26.0 to 0.31.0; needs a hit and prefix caching",
    "accepted_lost": "H5: a row without drafts starts from the first column instead of the one "
    "its last step accepted. 0.11.0 to 0.31.0; needs MTP",
    "staging_reused": "H6: the pinned buffer of the state metadata is used again for the next "
    "chunk while the copy of this one still waits behind the receive. A model: no release was "
    "shown to do it; needs chunks in flight",
    "receive_reused": "H7: one receive buffer a stage, overwritten by the hidden states of the "
    "next chunk before the stage has read it. A model; needs chunks in flight",
    "frozen_value": "H8: the compiled region of a stage that receives hidden states keeps the "
    "block table and the query starts of its first prefill call, while the columns move on. A "
    "model; needs compilation",
    "unmasked_state": "H9: the state of a freed block is not masked when a request starts in it. "
    "Upstream up to 0.30.0 for prompts that start with one token; here for all; needs a used block",
    "offset_32bit": "H10: the element offset of a state block is computed in 32 bits, with a "
    "stated huge block (`block_elements`). A model; needs high block numbers",
    "accepted_unbounded": "A3: the accepted count of the first decode is the token count of the "
    "last chunk, and nobody bounds it. The kernel trusts it in every release read (to 0.33.0); "
    "needs MTP",
}

PARAMETERS: Mapping[str, Parameter] = {
    "layers": Parameter(12, int, low=4, high=128, doc="layers of the model, 3 GDN to 1 attention"),
    "partition": Parameter(
        "cut",
        str,
        doc="layers of the stages: sizes such as 23,23,18, or cut (the period, as 23,23,18 does), "
        "keep (as 24,24,16), default (vLLM's split over 3), single (one stage)",
    ),
    "prompt": Parameter(10, int, low=1, high=4096, doc="tokens of the prompt in question"),
    "chunk": Parameter(4, int, low=1, high=512, doc="most prompt tokens a step computes"),
    "new_tokens": Parameter(2, int, low=1, high=64, doc="tokens each request makes"),
    "mamba_block": Parameter(4, int, low=1, high=512, doc="tokens a state block stands for"),
    "block_size": Parameter(2, int, low=1, high=256, doc="tokens in a KV block of attention"),
    "execution": Parameter(
        "graphs",
        str,
        choices=("graphs", "compiled", "eager"),
        doc="compiled with captured decode graphs, compiled alone, or eager",
    ),
    "blocking": Parameter(False, bool, doc="launches block the host (CUDA_LAUNCH_BLOCKING=1)"),
    "prefix_caching": Parameter(True, bool, doc="state blocks by block of tokens, align copies"),
    "in_flight": Parameter(
        0, int, low=0, high=MOST_STAGES, doc="steps in flight at most; 0: as many as stages"
    ),
    "requests": Parameter(1, int, low=1, high=3, doc="requests with the prompt's length"),
    "gap": Parameter(0, int, low=0, high=16, doc="ticks between the arrivals of two requests"),
    "short_prompts": Parameter(0, int, low=0, high=3, doc="2-token prompts answered before"),
    "cached": Parameter(0, int, low=0, high=4096, doc="tokens of the prompt found in the cache"),
    "num_speculative_tokens": Parameter(0, int, low=0, high=7, doc="drafts a step (MTP); 0: off"),
    "runner": Parameter("v2", str, choices=("v1", "v2"), doc="model runner"),
    "recycled": Parameter(True, bool, doc="state blocks hold what freed requests left"),
    "block_elements": Parameter(
        1 << 28, int, low=1, high=1 << 30, doc="elements of a state block in 32-bit arithmetic"
    ),
    "seed": Parameter(1, int, low=0, high=2**31 - 1, doc="of prompts and old states"),
}
SETTINGS: Mapping[str, Parameter] = {
    "fault": Parameter("none", str, choices=tuple(FAULTS), doc="the hypothesis that is true"),
}
UNITS: Mapping[str, tuple[str, ...]] = {"state": ("block",), "conv_history": ("block",)}
TENSORS: tuple[str, ...] = (
    "accepted",
    "batch_rows",
    "beta",
    "block_table",
    "conv_history",
    "conv_weight",
    "copy_rows",
    "decay",
    "delta_key",
    "delta_out",
    "delta_query",
    "delta_value",
    "flat_index",
    "hidden",
    "key",
    "key_cache",
    "mixed",
    "out",
    "positions",
    "query",
    "query_start",
    "seq_lens",
    "slots",
    "source_column",
    "spec_flat",
    "spec_index",
    "state",
    "state_index",
    "state_table",
    "state_tables",
    "table_rows",
    "target_column",
    "tokens",
    "value",
    "value_cache",
)


def contradiction(
    point: Mapping[str, Scalar], settings: Mapping[str, Scalar]
) -> tuple[str, str] | None:
    """The key and the sentence of a contradiction between parameters, or None."""
    layers, prompt, cached = (int(point[name]) for name in ("layers", "prompt", "cached"))
    try:
        counts = sizes(str(point["partition"]), layers)
    except ValueError as error:
        return "partition", f"{point['partition']} {error}"
    if len(counts) > MOST_STAGES:
        return "partition", f"has {len(counts)} stages; at most {MOST_STAGES}"
    if layers % 4:
        return "layers", f"{layers} is no multiple of the period of 4"
    if int(point["mamba_block"]) % int(point["block_size"]):
        return "block_size", f"{point['block_size']} does not divide {point['mamba_block']}"
    if point["prefix_caching"] and int(point["chunk"]) < int(point["mamba_block"]):
        return "chunk", f"{point['chunk']} is less than a state block of {point['mamba_block']}"
    if cached and (cached >= prompt or cached % int(point["mamba_block"])):
        return "cached", f"{cached} must be whole state blocks and less than the prompt"
    if cached and not point["prefix_caching"]:
        return "cached", "nothing is cached without prefix_caching"
    total = int(point["requests"]) + int(point["short_prompts"]) + bool(cached)
    if total > MOST_REQUESTS:
        return "requests", f"{total} in all; at most {MOST_REQUESTS}"
    return None


def predict(point: Mapping[str, Scalar], settings: Mapping[str, Scalar]) -> tuple[Prediction, ...]:
    """() for the pipeline as it should be. A hypothesis has no closed form: it is run, open."""
    return ()


def run(
    ops: Ops,
    point: Mapping[str, Scalar],
    settings: Mapping[str, Scalar],
    owners: Mapping[str, str],
) -> Outcome:
    """Play the scenario on a lane; the lane records what goes wrong in its launches."""
    from .gdn_pipeline_run import play

    return play(ops, point, settings, owners)
