"""Whether a function given as hf_overrides reaches the config of the draft model."""

from __future__ import annotations

from ..probing.probe import Probe
from .dict_override import FILES, VALUES, with_callable

PROBE = Probe(
    "callable_override",
    "does a function given as hf_overrides reach the draft?",
    FILES,
    VALUES,
    with_callable,
)
