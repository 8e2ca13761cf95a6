"""How often runner V2 builds attention metadata for draft steps that run without a graph."""

from __future__ import annotations

from ..probing import draft_loop, runner_v2
from ..probing.probe import Answer, Function, NotFoundError, Probe, Sources

WORST_FIRST = ("never", "once", "each step")
VALUES = {
    "each step": "before every draft step",
    "once": "once, before the first draft step of the loop",
    "never": "not at all",
    runner_v2.NONE: "there is no runner V2",
}


def answer(sources: Sources) -> Answer:
    if (none := runner_v2.missing(sources)) is not None:
        return none
    return loop(sources, draft_loop.Graphs.NONE) or once(sources)


def loop(sources: Sources, mode: str) -> Answer | None:
    """The answer of code with a loop around the steps; None for code without."""
    found = draft_loop.by_name(sources, *draft_loop.LOOPS)
    return draft_loop.worst([_loop(*one, mode) for one in found], WORST_FIRST) if found else None


def _loop(path: str, node: Function, mode: str) -> Answer:
    course = draft_loop.course(path, node, mode)
    said = f"{draft_loop.DRAFTS} drafts: {course.builds} builds for {course.forwards} draft steps"
    if course.forwards != draft_loop.DRAFTS - 1:
        raise NotFoundError(said)
    value = "never"
    if course.builds:
        value = "each step" if all(course.renewed) else "once"
    return Answer(value, path, node.lineno, True, said)


def once(sources: Sources) -> Answer:
    """Older code: all steps run inside generate_draft, on the metadata it is given."""
    found = draft_loop.by_name(sources, draft_loop.ONE_STEP)
    if not found:
        raise NotFoundError("no loop over draft steps in a drafter of runner V2")
    return draft_loop.worst([_once(*one) for one in found], WORST_FIRST)


def _once(path: str, node: Function) -> Answer:
    line = draft_loop.loop_line(node)
    course = draft_loop.course(path, node, draft_loop.Graphs.NONE)
    said = f"{course.builds} builds inside for {course.forwards} draft steps"
    if course.forwards != draft_loop.DRAFTS - 1:
        raise NotFoundError(said)
    value = "each step" if all(course.renewed) else "once"
    return Answer(value, path, line, True, said)


PROBE = Probe(
    "v2_eager_metadata",
    "when does runner V2 build metadata for draft steps that run eagerly?",
    (runner_v2.ENVIRONMENT, *runner_v2.DRAFTERS),
    VALUES,
    answer,
)
