"""Which block tables runner V2's copy of recurrent state is bound to."""

from __future__ import annotations

import ast

from ..probing import runner_v2
from ..probing.probe import Answer, NotFoundError, Probe, Sources, called

FILES = ("v1/worker/gpu/model_states/mamba_hybrid.py",)
BINDING = "initialize_from_forward_context"
NO_COPY = "no state copy"
VALUES = {
    "gathered": "the gathered ones, in the order of the batch",
    "per request": "those of the requests, which do not move",
    NO_COPY: "runner V2 does not copy recurrent state here",
    runner_v2.NONE: "there is no runner V2",
}


def answer(sources: Sources) -> Answer:
    if (none := runner_v2.missing(sources)) is not None:
        return none
    paths = sources.paths(*FILES)
    for path in paths:
        for name, call in called(sources.tree(path)):
            if name == BINDING:
                text = " ".join(
                    ast.unparse(a) for a in (*call.args, *(k.value for k in call.keywords))
                )
                own = ".block_tables" in text and ".gpu" in text
                if not own and "block_tables[" not in text:
                    raise NotFoundError(f"{BINDING}({text[:80]}) is not known")
                value = "per request" if own else "gathered"
                return Answer(value, path, call.lineno, False, text[:160])
    return no_copy(sources, paths, BINDING)


def no_copy(sources: Sources, paths: list[str], subject: str) -> Answer:
    """The answer of a build whose runner V2 has no align mode: its hybrid state, or the folder of
    model states it would be in, is there and says so."""
    for path in paths:
        init = sources.functions(path).get("MambaHybridModelState.__init__")
        if init is not None and "_align_mode" not in ast.unparse(init):
            said = "MambaHybridModelState has no align mode"
            return Answer(NO_COPY, path, init.lineno, False, said)
    if paths:
        raise NotFoundError(f"no {subject} in {paths[0]}")
    runners = sources.paths("v1/worker/gpu/model_runner.py")
    for path in runners:
        node = sources.functions(path).get("GPUModelRunner")
        if node is not None:
            said = "runner V2 has no state of hybrid models"
            return Answer(NO_COPY, path, node.lineno, False, said)
    raise NotFoundError(f"no {subject}")


PROBE = Probe(
    "state_copy_tables",
    "which block tables does runner V2's copy of recurrent state use?",
    (runner_v2.ENVIRONMENT, *FILES, "v1/worker/gpu/model_runner.py"),
    VALUES,
    answer,
)
