"""Whether runner V2's fused path renews metadata inside its loop over draft steps."""

from __future__ import annotations

from ..probing import draft_loop, runner_v2
from ..probing.probe import Answer, NotFoundError, Probe, Sources


def answer(sources: Sources) -> Answer:
    if (none := runner_v2.missing(sources)) is not None:
        return none
    found = draft_loop.by_name(sources, draft_loop.FUSED)
    if found is None:
        other = draft_loop.by_name(sources, *draft_loop.LOOPS, draft_loop.ONE_STEP)
        if other is None:
            raise NotFoundError("no loop over draft steps in a drafter of runner V2")
        path, node = other
        return Answer("no fused path", path, node.lineno, False, f"no {draft_loop.FUSED}")
    caller = draft_loop.by_name(sources, draft_loop.FUSED_CALLER)
    if caller is None:
        raise NotFoundError(f"no {draft_loop.FUSED_CALLER} around {draft_loop.FUSED}")
    course = draft_loop.course(*found, draft_loop.Graphs.NONE)
    if course.forwards != draft_loop.DRAFTS - 1:
        raise NotFoundError(f"{course.forwards} draft steps, not {draft_loop.DRAFTS - 1}")
    # what the first step works on may be built before the loop, by the host, in every mode
    built = all(
        draft_loop.course(*caller, mode).builds > 0
        for mode in (draft_loop.Graphs.NONE, draft_loop.Graphs.FULL)
    )
    said = f"{sum(course.renewed)} of {course.forwards} draft steps renew it in the loop"
    said += ", the first is built before it" if built else ""
    whole = (course.renewed[0] or built) and all(course.renewed[1:])
    value = "each step" if whole else "not each step"
    return Answer(value, course.path, course.line, True, said)


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
