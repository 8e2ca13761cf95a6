"""The closed form of `plan_race`: what is found, from the parameters and the schedule alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..records import Kind, Prediction, Scalar
from .plan_arrival import BUFFERS, arrivals
from .plan_race import block_rows, contents, growth, pace, paging, prompts, reused_buffers, sizes
from .plan_reads import Caches, Place, launch_reads
from .split_plan import SplitPlan, make_plan
from .toy_tokens import continuation


@dataclass(slots=True)
class Forecast:
    """Wrong elements by place, and the requests that lose a draft.

    open: a damaged draft may be right or wrong, by the rounding of the last bit; `rounds` after it
    were not looked at.
    """

    wrong: dict[Place, set[int]] = field(default_factory=lambda: defaultdict(set))
    lost: set[int] = field(default_factory=set)
    open: bool = False

    def predictions(self) -> tuple[Prediction, ...]:
        return (
            *(
                Prediction(kind, op=op, tensor=tensor, elements=None if self.open else span)
                for (kind, op, tensor), elements in self.wrong.items()
                for span in spans(elements)
            ),
            *(
                Prediction(
                    Kind.ACCEPTANCE_LOSS,
                    op="rejection_sample",
                    tensor="draft_tokens",
                    request=number,
                )
                for number in sorted(self.lost)
            ),
        )


def forecast(point: Mapping[str, Scalar], settings: Mapping[str, Scalar]) -> Forecast:
    """What is found of a variant that reuses its buffers and has no fence."""
    k = int(point["num_speculative_tokens"])
    size, columns = paging(point, settings)
    tokens = [continuation(start, len(start) + growth(point) + k, 0) for start in prompts(point)]
    rows = block_rows(len(tokens), columns)
    lengths = [len(start) + 1 for start in prompts(point)]
    filled = list(lengths)
    reused = reused_buffers(settings)
    memory = HostMemory(sizes(point, columns), reused)
    found = Forecast()
    for turn in range(int(point["rounds"])):
        accepted = [k] * len(lengths)
        seen = [[n + j + 1 for n in lengths] for j in range(k - 1)]
        plans = [
            make_plan(s, rows, block_size=size, max_chunks=int(point["max_chunks"])) for s in seen
        ]
        written = [memory.write(plan) for plan in plans]
        carried = arrivals(k - 1, pace(point, turn), reused)
        for j, plan in enumerate(plans):
            filled = _higher(filled, seen[j])
            held = {name: written[carried[j][name]][name] for name in BUFFERS}
            reads = launch_reads(plan, held, Caches(size, columns, tokens, filled), seen[j])
            for place, elements in reads.wrong.items():
                found.wrong[place] |= elements
            for number, drafts in enumerate(reads.drafts):
                right = tokens[number][seen[j][number]]
                if right not in drafts:
                    accepted[number] = min(accepted[number], j + 1)
                elif len(drafts) > 1 and accepted[number] == k:
                    found.open = True
        found.lost.update(number for number, count in enumerate(accepted) if count < k)
        if found.open:
            break
        lengths = [n + count + 1 for n, count in zip(lengths, accepted, strict=True)]
        filled = _higher(filled, lengths)
    return found


class HostMemory:
    """The host buffers as lists: one for all plans where it is reused, else a new one each."""

    def __init__(self, sizes: Mapping[str, int], reused: Iterable[str]) -> None:
        self.sizes = sizes
        self.reused = {name: [0] * sizes[name] for name in reused}

    def write(self, plan: SplitPlan) -> dict[str, list[int]]:
        """What each buffer holds once `plan` is written."""
        held = {}
        for name, size in self.sizes.items():
            values = self.reused.get(name) or [0] * size
            for at, part in contents(plan, name):
                values[at : at + len(part)] = part
            held[name] = list(values)
        return held


def _higher(ones: Sequence[int], others: Sequence[int]) -> list[int]:
    return [max(one, other) for one, other in zip(ones, others, strict=True)]


def spans(elements: Iterable[int]) -> list[tuple[int, int]]:
    """First and last of each run of neighbours in a set of elements."""
    found: list[tuple[int, int]] = []
    for element in sorted(elements):
        if found and found[-1][1] == element - 1:
            found[-1] = found[-1][0], element
        else:
            found.append((element, element))
    return found
