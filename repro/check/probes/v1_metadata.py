"""Whether runner V1 builds attention metadata for each draft step."""

from __future__ import annotations

import ast

from ..probing.probe import Answer, NotFoundError, Probe, Sources, called, names

FILES = ("v1/spec_decode/llm_base_proposer.py", "v1/spec_decode/eagle.py")


def answer(sources: Sources) -> Answer:
    for path in sources.paths(*FILES):
        for name, node in sources.functions(path).items():
            if not name.endswith(".propose"):
                continue
            loops = [
                inner
                for inner in ast.walk(node)
                if isinstance(inner, ast.For) and "num_speculative_tokens" in names(inner.iter)
            ]
            for loop in loops:
                for what, call in called(loop):
                    if what.startswith("build") and ("draft" in what or "attn_metadata" in what):
                        return Answer(
                            "each step", path, call.lineno, False, f"{what}() in the loop"
                        )
            others = [w for loop in loops for w, _ in called(loop) if "metadata" in w]
            if others:
                raise NotFoundError(f"what {others[0]}() in the loop does is not known")
            if loops:
                said = "no build in the loop over draft steps"
                return Answer("once", path, loops[0].lineno, False, said)
    raise NotFoundError("no loop over draft tokens in propose()")


PROBE = Probe(
    "v1_metadata",
    "does runner V1 build metadata for each draft step?",
    FILES,
    {"each step": "yes", "once": "no"},
    answer,
)
