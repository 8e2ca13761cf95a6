"""The host's plan buffers and their copies to the device, in the ways a variant may handle them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..ops import Event, Ops, Timeline
from ..records import Scalar
from .plan_race import contents, reused_buffers
from .split_plan import SplitPlan


class PlanBuffers:
    """The host's plan buffers and the device tensors they are copied to."""

    def __init__(self, ops: Ops, sizes: Mapping[str, int], settings: Mapping[str, Scalar]) -> None:
        self.reused = reused_buffers(settings)
        self.way = str(settings["host"])
        self.host = {name: np.zeros(size, np.int32) for name, size in sizes.items()}
        self.device = {name: ops.device.tensor(name, array) for name, array in self.host.items()}
        self._copied: dict[str, Event] = {}

    def send(self, timeline: Timeline, plan: SplitPlan, names: Sequence[str]) -> None:
        """Write the plan's part into these buffers and queue their copies."""
        for name in names:
            if name not in self.reused or self.way == "fresh":
                self.host[name] = np.zeros_like(self.host[name])
            elif self.way == "wait" and name in self._copied:
                timeline.synchronize(self._copied[name])
            for at, values in contents(plan, name):
                self.host[name][at : at + len(values)] = values
        for name in names:
            staged = self.way == "pageable"  # the driver takes the contents when the copy is issued
            source = self.host[name].copy() if staged else self.host[name]
            timeline.copy_async(self.device[name], source)
            if self.way == "wait":
                self._copied[name] = timeline.record()
