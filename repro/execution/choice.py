"""Where a command plays its tasks, as it was asked for: `--jobs`, `--ray`, or neither."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .here import here
from .play import Told, Where

if TYPE_CHECKING:
    from .cards import Cards


@dataclass(frozen=True, slots=True)
class Choice:
    """jobs: tasks at once on this machine; None: as many as suit it. ray: address of a cluster, or
    `local` for one of this machine alone; None: no cluster."""

    jobs: int | None = None
    ray: str | None = None

    @property
    def spread(self) -> bool:
        """Whether work is to be cut into pieces that can run apart."""
        return self.jobs is not None or self.ray is not None


@contextmanager
def place_of(
    choice: Choice, shared: Path, told: Told = lambda moment: None, cards: Cards | None = None
) -> Iterator[Where]:
    """Where tasks of a play go. shared: a folder of this machine that tasks at home share. cards:
    GPUs of this machine, for a place at home.

    ClusterError where the cluster cannot be had.
    """
    if choice.ray is not None:
        from .cluster import cluster

        with cluster(choice.ray, told) as remote:
            yield remote
        return
    workers = choice.jobs or os.cpu_count() or 1
    with here(workers, shared, cards) as tree:
        yield tree
