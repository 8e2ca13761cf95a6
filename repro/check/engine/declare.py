"""What a case may say about its experiment on an engine, and what each oracle takes. Pure.

A case is data: no argument here names a program, a module, a path or an address, and arguments that
could make an engine load code or fetch files are not in the list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...records import Scalar
from ...scenarios.declare import Parameter
from ..exposure import Value

# Keywords of vllm.LLM, each with what it may be; defaults are those of our starts.
ARGUMENTS: Mapping[str, Parameter] = {
    "max_model_len": Parameter(512, int, low=16, high=1 << 22, doc="of the target"),
    "max_num_seqs": Parameter(4, int, low=1, high=1024, doc="requests in a batch"),
    "max_num_batched_tokens": Parameter(2048, int, low=16, high=1 << 20, doc="tokens in a step"),
    # layers of each stage; what an engine takes from its environment
    "partition": Parameter(
        "3,3,3",
        str,
        choices=("2,4,3", "3,3,3", "4,2,3", "2,2,2", "1,3,2", "4,4,4"),
        doc="layers by stage",
    ),
    "block_size": Parameter(0, int, low=1, high=1024, doc="tokens in a KV block"),
    "num_gpu_blocks_override": Parameter(
        16, int, low=4, high=1 << 20, doc="KV blocks in the pool, whatever there is room for"
    ),
    "dtype": Parameter(
        "float32", str, choices=("float32", "bfloat16", "float16", "auto"), doc="of weights"
    ),
    "enforce_eager": Parameter(True, bool, doc="no graphs, no compilation"),
    "enable_prefix_caching": Parameter(False, bool, doc="prefix caching"),
    "mamba_ssm_cache_dtype": Parameter(
        "auto", str, choices=("auto", "float32"), doc="of recurrent state"
    ),
}
# what --hf-overrides may change
OVERRIDES = (
    "max_position_embeddings",
    "original_max_position_embeddings",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
)
# family → kinds. Of a hybrid `length` is the number of its layers.
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "mimo": ("plain", "length_canary", "slot_canary"),
    "gdn_hybrid": ("random", "canary"),
}
SIGNS = ("seen", "not seen")
# changes to an engine that are made on purpose, each to show that an oracle sees what it brings
CHANGES: Mapping[str, str] = {
    "unguarded_draft": "runner V1 drafts past max_model_len: gate open, positions not masked",
    "stale_metadata": "runner V2 keeps the attention metadata of a step's first loop pass",
    "stale_slots": "runner V2 keeps the slots and the metadata of a step's first loop pass",
    "target_length": "runner V1 lets its draft go as far as the target does, which ends the fault",
}


@dataclass(frozen=True, slots=True)
class Oracle:
    """numbers: what `requests` of a case may set. settings: those of the engine that it can bring
    about, besides k. needs: arguments that a case must give. outcome: what the
    sign is to who asked, in the words of hypotheses; "" where they have none for it."""

    doc: str
    numbers: Mapping[str, Parameter]
    settings: tuple[str, ...]
    needs: tuple[str, ...] = ()
    outcome: str = ""


ORACLES: Mapping[str, Oracle] = {
    "draft_gate": Oracle(
        "from which prompt length on no draft is accepted, and what that does to a neighbour",
        {
            "low": Parameter(
                20, int, low=1, high=1 << 20, doc="prompt that must be sound, in tokens"
            ),
            "high": Parameter(300, int, low=2, high=1 << 20, doc="longest prompt tried, in tokens"),
            "new": Parameter(12, int, low=4, high=256, doc="tokens made after each prompt"),
            "short": Parameter(
                10, int, low=1, high=1 << 20, doc="prompt of the neighbour, in tokens"
            ),
            "short_new": Parameter(90, int, low=4, high=4096, doc="tokens that it makes"),
            "long": Parameter(140, int, low=1, high=1 << 20, doc="prompt beside it, in tokens"),
            "long_new": Parameter(20, int, low=4, high=4096, doc="tokens that this one makes"),
        },
        ("hf_overrides", "runner", "async", "prefix_caching"),
    ),
    "mtp_tail": Oracle(
        "positions and slots that the draft model is fed near max_model_len, for every k",
        {
            "before": Parameter(
                20, int, low=4, high=4096, doc="tokens before the end, of a prompt"
            ),
            "neighbour": Parameter(30, int, low=1, high=4096, doc="prompt beside it, in tokens"),
            "neighbour_new": Parameter(60, int, low=4, high=4096, doc="tokens that it makes"),
            "most_k": Parameter(8, int, low=1, high=16, doc="k from 1 to this, if k is not fixed"),
        },
        ("runner", "async", "prefix_caching"),
    ),
    "gdn_pipeline": Oracle(
        "whether a hybrid in pipeline stages answers as in one, at equal chunks",
        {
            "long": Parameter(1500, int, low=300, high=1 << 20, doc="long prompt, in tokens"),
            "new": Parameter(24, int, low=1, high=4096, doc="tokens made after each"),
        },
        ("pp", "runner", "async", "prefix_caching"),
        outcome="wrong_output",
    ),
    "one_token_chunk": Oracle(
        "whether a prompt of one token starts from the recurrent state in a block used before",
        {
            "prompts": Parameter(8, int, low=1, high=64, doc="prompts of one token"),
            "new": Parameter(4, int, low=1, high=256, doc="tokens made after each prompt"),
        },
        ("runner", "async", "prefix_caching"),
        needs=("num_gpu_blocks_override",),
        outcome="wrong_output",
    ),
    "zero_draft_rows": Oracle(
        "whether a step without drafts goes on from the recurrent state of the accepted ones",
        {"steps": Parameter(7, int, low=1, high=64, doc="steps with drafts before it")},
        ("runner", "async", "prefix_caching"),
        needs=("max_model_len",),
        outcome="wrong_output",
    ),
    "stale_metadata": Oracle(
        "acceptance by the position of a draft in its step, with two canaries",
        {
            "first": Parameter(20, int, low=4, high=4096, doc="shortest prompt, in tokens"),
            "last": Parameter(100, int, low=4, high=4096, doc="longest prompt at most, in tokens"),
            "apart": Parameter(37, int, low=1, high=4096, doc="tokens between two prompts"),
            "new": Parameter(24, int, low=4, high=4096, doc="tokens made after each"),
        },
        ("runner", "async", "prefix_caching"),
    ),
}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A tiny model. length: its `max_position_embeddings`, of target and draft."""

    family: str
    kind: str
    length: int


@dataclass(frozen=True, slots=True)
class Control:
    """An experiment that is to show that the oracle can be trusted. settings: over those of the
    first defect; k may be 0 here, which is no speculation. expect: one of SIGNS. change: one of
    CHANGES, "" for the engine as it is. served: asked over HTTP. models: parameters of the case's
    scenario that stand for it, against which hypotheses are held."""

    id: str
    title: str
    settings: Mapping[str, Value]
    expect: str
    change: str = ""
    served: bool = False
    models: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """What a case says: which oracle, on what model, with which arguments and numbers.

    overrides: of `--hf-overrides`. defects: id → the settings in which it is looked for.
    checkpoint: None where the user must name a model. also: further experiments of the case, each
    with an oracle of its own; those have no more. models: as of a control, for what decides.
    """

    oracle: str
    checkpoint: Checkpoint | None
    arguments: Mapping[str, Scalar]
    k: int
    overrides: Mapping[str, Any] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)
    defects: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    controls: tuple[Control, ...] = ()
    also: tuple[EngineSpec, ...] = ()
    models: Mapping[str, Scalar] = field(default_factory=dict)

    @property
    def all(self) -> tuple[EngineSpec, ...]:
        """Every experiment of the case."""
        return (self, *self.also)

    def number(self, name: str) -> int:
        """One of the oracle's numbers, as the case has it or by default."""
        default = ORACLES[self.oracle].numbers[name].default
        return self.numbers.get(name, int(default))
