"""Executes runner V2's loop over draft steps on stand-ins, and counts what it builds."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from . import runner_v2
from .lift import lift, parameters
from .probe import Answer, Function, NotFoundError, Sources, called
from .stubs import Ghost, Ghosts, Record

DRAFTS = 4
LOOPS = ("multi_step_decode", "_multi_step_decode")
ONE_STEP = "generate_draft"
# drafters of models that draft by themselves
NOT_MTP = ("draft_model/", "standalone_ar/")
FUSED, FUSED_CALLER = "_generate_fused_drafts", "_fused_multi_step_decode"


class Graphs:
    """The modes that a dispatch can choose."""

    NONE, PIECEWISE, FULL = "none", "piecewise", "full"


@dataclass(frozen=True, slots=True)
class Course:
    """What a loop of DRAFTS - 1 draft steps did.

    builds: of attention metadata. renewed: for each forward pass in order, whether metadata was
    built or updated since the one before.
    """

    path: str
    line: int
    builds: int
    renewed: tuple[bool, ...]

    @property
    def forwards(self) -> int:
        return len(self.renewed)


def by_name(sources: Sources, *names: str) -> list[tuple[str, Function]]:
    """The functions of all drafters with one of these last names."""
    return [
        (path, node)
        for path, name, node in runner_v2.drafter_functions(sources)
        if name.rsplit(".", 1)[-1] in names and not isinstance(node, ast.ClassDef)
    ]


def worst(answers: Sequence[Answer], order: Sequence[str]) -> Answer:
    """Of several drafters the one whose value comes first in `order`, of equals one of MTP's."""

    def rank(answer: Answer) -> tuple[int, bool]:
        return order.index(str(answer.value)), any(name in answer.path for name in NOT_MTP)

    return min(answers, key=rank)


def is_build(name: str) -> bool:
    return "build" in name and "metadata" in name


def is_update(name: str) -> bool:
    return "update" in name and "metadata" in name


def is_forward(name: str) -> bool:
    last = name.rsplit(".", 1)[-1].lstrip("_")
    return last in ("generate_draft", "generate_fused_drafts", "run_fullgraph", "run_model")


def course(path: str, node: Function, mode: str) -> Course:
    """Run one loop with DRAFTS drafts and a graph mode."""
    calls: list[str] = []
    drafter = Ghost(
        calls, num_speculative_steps=DRAFTS, advance_draft_positions=True, max_model_len=64
    )

    def run_model(*_arguments: object, **_options: object) -> tuple[Ghost, Ghost]:
        calls.append("run_model")
        return Ghost(calls), Ghost(calls)

    drafter.run_model = run_model
    batch = Record(num_tokens=2, num_reqs=2, cg_mode=mode)
    numbers = {
        "num_reqs": 2,
        "num_tokens_padded": 2,
        "skip_attn": False,
        "batch_desc": batch,
        "num_speculative_steps": DRAFTS,
        "num_speculative_tokens": DRAFTS,
    }
    given = {name: numbers.get(name, Ghost(calls, name)) for name in parameters(node)}
    lift(node, path, Ghosts(calls, CUDAGraphMode=Graphs))(drafter, **given)
    renewed, fresh = [], False
    for call in calls:
        if is_forward(call):
            renewed.append(fresh)
            fresh = False
        fresh = fresh or is_build(call) or is_update(call)
    return Course(path, node.lineno, sum(map(is_build, calls)), tuple(renewed))


def loop_line(node: Function) -> int:
    """The line of the `for` over draft steps."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.For) and "range" in {name for name, _ in called(inner.iter)}:
            return inner.lineno
    raise NotFoundError(f"no loop over draft steps in {node.name}")
