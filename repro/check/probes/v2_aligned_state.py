"""Whether runner V2 can cache prefixes of recurrent state, which the engine calls align mode."""

from __future__ import annotations

import ast

from ..probing import runner_v2
from ..probing.probe import Answer, NotFoundError, Probe, Sources, names

FILES = ("v1/worker/gpu/model_states/mamba_hybrid.py",)
INIT = "MambaHybridModelState.__init__"
ALIGN = "_align_mode"


def answer(sources: Sources) -> Answer:
    """Read what the hybrid state sets up."""
    if (none := runner_v2.missing(sources)) is not None:
        return none
    for path in sources.paths(*FILES):
        init = sources.functions(path).get(INIT)
        if init is None:
            raise NotFoundError(f"no {INIT} in {path}")
        if ALIGN in names(init):
            return Answer("aligned", path, init.lineno, False, f"{INIT} sets {ALIGN}")
        if "align" in ast.unparse(init):
            raise NotFoundError(f"{INIT} aligns in a way that is not known")
        return Answer("not aligned", path, init.lineno, False, f"{INIT} knows no align mode")
    for path in sources.paths("v1/worker/gpu/model_runner.py"):
        node = sources.functions(path).get("GPUModelRunner")
        if node is not None:
            said = "runner V2 has no state of hybrid models"
            return Answer("no hybrid state", path, node.lineno, False, said)
    raise NotFoundError("neither a hybrid state nor runner V2 itself")


PROBE = Probe(
    "v2_aligned_state",
    "can runner V2 cache prefixes of recurrent state?",
    (runner_v2.ENVIRONMENT, *FILES, "v1/worker/gpu/model_runner.py"),
    {
        "aligned": "yes",
        "not aligned": "no",
        "no hybrid state": "it runs no hybrid model",
        runner_v2.NONE: "there is no runner V2",
    },
    answer,
)
