"""How often runner V2 builds attention metadata for draft steps that replay full graphs."""

from __future__ import annotations

import ast

from ..probing import draft_loop, runner_v2
from ..probing.probe import Answer, NotFoundError, Probe, Sources, called
from .v2_eager_metadata import VALUES, loop

REPLAYS = ("run", "run_fullgraph")


def answer(sources: Sources) -> Answer:
    if (none := runner_v2.missing(sources)) is not None:
        return none
    return loop(sources, draft_loop.Graphs.FULL) or _before_the_replay(sources)


def _before_the_replay(sources: Sources) -> Answer:
    """Older code captures the whole loop: is metadata built between preparing the draft steps and
    replaying them?"""
    for path, name, node in runner_v2.drafter_functions(sources):
        if name.rsplit(".", 1)[-1] != "propose":
            continue
        calls = sorted((call.lineno, called_name, call) for called_name, call in called(node))
        replays = [line for line, what, call in calls if what in REPLAYS and _graphs(call)]
        prepared = [line for line, what, _ in calls if what.startswith("prepare_")]
        if not replays or not prepared:
            raise NotFoundError(f"{name} neither prepares draft steps nor replays them")
        built = any(
            draft_loop.is_build(what) and max(prepared) < line < max(replays)
            for line, what, _ in calls
        )
        value = "once" if built else "never"
        said = f"propose() prepares at line {max(prepared)}, replays at line {max(replays)}"
        return Answer(value, path, max(replays), False, said)
    raise NotFoundError("no propose() in a drafter of runner V2")


def _graphs(call: ast.Call) -> bool:
    return "cudagraph_manager" in ast.unparse(call.func)


PROBE = Probe(
    "v2_graph_metadata",
    "when does runner V2 build metadata for draft steps that replay a full graph?",
    (runner_v2.ENVIRONMENT, *runner_v2.DRAFTERS),
    VALUES,
    answer,
)
