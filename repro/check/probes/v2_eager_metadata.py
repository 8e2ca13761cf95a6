"""How often runner V2 builds attention metadata for draft steps that run without a graph."""

from __future__ import annotations

from ..probing import draft_loop, runner_v2
from ..probing.probe import Answer, NotFoundError, Probe, Sources

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
    if found is None:
        return None
    course = draft_loop.course(*found, mode)
    said = f"{draft_loop.DRAFTS} drafts: {course.builds} builds for {course.forwards} draft steps"
    if course.forwards != draft_loop.DRAFTS - 1:
        raise NotFoundError(said)
    value = "each step" if course.builds == course.forwards else "once"
    if course.builds == 0:
        value = "never"
    return Answer(value, course.path, course.line, True, said)


def once(sources: Sources) -> Answer:
    """Older code: all steps run inside generate_draft, on the metadata it is given."""
    found = draft_loop.by_name(sources, draft_loop.ONE_STEP)
    if found is None:
        raise NotFoundError("no loop over draft steps in a drafter of runner V2")
    path, node = found
    line = draft_loop.loop_line(node)
    course = draft_loop.course(path, node, draft_loop.Graphs.NONE)
    said = f"{course.builds} builds inside for {course.forwards} draft steps"
    if course.forwards != draft_loop.DRAFTS - 1:
        raise NotFoundError(said)
    value = "each step" if course.builds == course.forwards else "once"
    return Answer(value, path, line, True, said)


PROBE = Probe(
    "v2_eager_metadata",
    "when does runner V2 build metadata for draft steps that run eagerly?",
    (runner_v2.ENVIRONMENT, *runner_v2.DRAFTERS),
    VALUES,
    answer,
)
