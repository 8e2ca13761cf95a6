"""Whether a data-parallel rank whose gate is shut still takes part in the drafter's step."""

from __future__ import annotations

import ast

from ..probing.probe import Answer, NotFoundError, Probe, Sources, called, names

FILES = ("v1/worker/gpu_model_runner.py",)
GATES = {"input_fits_in_drafter", "_input_fits_in_drafter"}
RANKS, STEP = "data_parallel_size", "dummy_run"


def answer(sources: Sources) -> Answer:
    """Read the functions that ask the gate: a branch for several ranks that runs a dummy step."""
    first: tuple[str, int] | None = None
    for path in sources.paths(*FILES):
        for node in sources.functions(path).values():
            if not isinstance(node, ast.FunctionDef) or not GATES & names(node):
                continue
            for branch in ast.walk(node):
                if not isinstance(branch, ast.If):
                    continue
                if GATES & names(branch.test):
                    first = first or (path, branch.lineno)
                if RANKS not in names(branch.test):
                    continue
                for name, call in called(branch):
                    if name == STEP:
                        said = f"if {ast.unparse(branch.test)}: {ast.unparse(call)}"
                        return Answer("dummy step", path, call.lineno, False, said)
    if first is None:
        raise NotFoundError("no branch on the gate")
    said = f"no branch on {RANKS} runs a step where the gate is asked"
    return Answer("no step", *first, False, said)


PROBE = Probe(
    "rank_dummy_step",
    "does a data-parallel rank whose gate is shut take part in the drafter's step?",
    FILES,
    {
        "dummy step": "yes, with a dummy step: the ranks agree on their collectives",
        "no step": "no: ranks that disagree about the gate wait for each other",
    },
    answer,
)
