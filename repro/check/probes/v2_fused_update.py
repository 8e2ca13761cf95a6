"""Whether runner V2's fused path renews metadata inside its loop over draft steps."""

from __future__ import annotations

from ..probing import draft_loop, runner_v2
from ..probing.probe import Answer, Function, NotFoundError, Probe, Sources


def answer(sources: Sources) -> Answer:
    if (none := runner_v2.missing(sources)) is not None:
        return none
    fused = draft_loop.by_name(sources, draft_loop.FUSED)
    if fused:
        answers = [_fused(sources, *one) for one in fused]
        return draft_loop.worst(answers, ("not each step", "each step"))
    other = draft_loop.by_name(sources, *draft_loop.LOOPS, draft_loop.ONE_STEP)
    if not other:
        raise NotFoundError("no loop over draft steps in a drafter of runner V2")
    path, node = other[-1]
    return Answer("no fused path", path, node.lineno, False, f"no {draft_loop.FUSED}")


def _fused(sources: Sources, path: str, node: Function) -> Answer:
    callers = [c for p, c in draft_loop.by_name(sources, draft_loop.FUSED_CALLER) if p == path]
    if not callers:
        raise NotFoundError(f"no {draft_loop.FUSED_CALLER} beside {draft_loop.FUSED}")
    course = draft_loop.course(path, node, draft_loop.Graphs.NONE)
    if course.forwards != draft_loop.DRAFTS - 1:
        raise NotFoundError(f"{course.forwards} draft steps, not {draft_loop.DRAFTS - 1}")
    # what the first step works on may be built before the loop, by the host, in every mode
    eager, full = (
        draft_loop.course(path, callers[0], mode).builds
        for mode in (draft_loop.Graphs.NONE, draft_loop.Graphs.FULL)
    )
    built = min(eager, full) > 0
    said = f"{sum(course.renewed)} of {course.forwards} draft steps renew it in the loop"
    said += ", the first is built before it" if built else ""
    said += f"; the host builds it {eager} times before an eager loop, {full} before a full graph"
    whole = (course.renewed[0] or built) and all(course.renewed[1:])
    return Answer("each step" if whole else "not each step", path, node.lineno, True, said)


PROBE = Probe(
    "v2_fused_update",
    "does the fused path of runner V2 renew metadata in its loop?",
    (runner_v2.ENVIRONMENT, *runner_v2.DRAFTERS),
    {
        "no fused path": "every step is launched by itself",
        "each step": "yes",
        "not each step": "no",
        runner_v2.NONE: "there is no runner V2",
    },
    answer,
)
