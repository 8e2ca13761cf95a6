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
    "block_size": Parameter(0, int, low=1, high=1024, doc="tokens in a KV block"),
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
FAMILIES: Mapping[str, tuple[str, ...]] = {"mimo": ("plain", "length_canary", "slot_canary")}
SIGNS = ("seen", "not seen")


@dataclass(frozen=True, slots=True)
class Oracle:
    """numbers: what `requests` of a case may set. settings: those of the engine that it can bring
    about, besides k."""

    doc: str
    numbers: Mapping[str, Parameter]
    settings: tuple[str, ...]


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
    first defect; k may be 0 here, which is no speculation. expect: one of SIGNS."""

    id: str
    title: str
    settings: Mapping[str, Value]
    expect: str


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """What a case says: which oracle, on what model, with which arguments and numbers.

    overrides: of `--hf-overrides`. defects: id → the settings in which it is looked for.
    checkpoint: None where the user must name a model.
    """

    oracle: str
    checkpoint: Checkpoint | None
    arguments: Mapping[str, Scalar]
    k: int
    overrides: Mapping[str, Any] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)
    defects: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    controls: tuple[Control, ...] = ()

    def number(self, name: str) -> int:
        """One of the oracle's numbers, as the case has it or by default."""
        default = ORACLES[self.oracle].numbers[name].default
        return self.numbers.get(name, int(default))
