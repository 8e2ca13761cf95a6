"""One file an oracle: which starts an experiment takes, and what is seen in them. Both are pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ....errors import UsageError
from ....escape import quoted
from ...exposure import Value
from ..answer import Answer, Played
from ..declare import EngineSpec
from ..start import Start
from . import (
    draft_gate,
    gdn_pipeline,
    mtp_tail,
    one_token_chunk,
    stale_metadata,
    zero_draft_rows,
)


class Oracle(Protocol):
    """`following`: the name of the next start and the start, given those that were played; None
    for the end. `judge`: of all of them. `known`: the model is one of ours, whose text is known."""

    def following(
        self,
        spec: EngineSpec,
        settings: Mapping[str, Value],
        package: str,
        played: Mapping[str, Played],
        known: bool,
        /,
    ) -> tuple[str, Start] | None: ...

    def judge(
        self,
        spec: EngineSpec,
        settings: Mapping[str, Value],
        played: Mapping[str, Played],
        known: bool,
        /,
    ) -> Answer: ...


_ORACLES: Mapping[str, Oracle] = {
    "draft_gate": draft_gate,
    "gdn_pipeline": gdn_pipeline,
    "mtp_tail": mtp_tail,
    "one_token_chunk": one_token_chunk,
    "stale_metadata": stale_metadata,
    "zero_draft_rows": zero_draft_rows,
}


def oracle(name: str) -> Oracle:
    """The oracle of that name; UsageError for one that this version has not."""
    if name not in _ORACLES:
        raise UsageError(f"unknown oracle {quoted(name)}")
    return _ORACLES[name]
