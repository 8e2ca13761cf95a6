"""Whether the limit of drafting follows when auto-fit lowers max_model_len."""

from __future__ import annotations

from ..probing.lift import lift
from ..probing.probe import Answer, NotFoundError, Probe, Sources
from ..probing.stubs import Ghost, Record

FILES = ("v1/worker/gpu_model_runner.py",)
NAME = "GPUModelRunner.update_max_model_len"


def answer(sources: Sources) -> Answer:
    [path, *_] = sources.paths(*FILES) or [""]
    if not path:
        raise NotFoundError(f"no {FILES[0]}")
    table = sources.functions(path)
    node = table.get(NAME)
    if node is None:
        init = table.get("GPUModelRunner.__init__")
        if init is None:
            raise NotFoundError("no GPUModelRunner.__init__")
        return Answer("no auto-fit", path, init.lineno, False, f"no {NAME}")
    runner = Record(
        max_model_len=1000,
        effective_drafter_max_model_len=1000,
        speculative_config=Record(draft_model_config=Record(max_model_len=1000)),
        drafter=Ghost([]),
    )
    lift(node, path, {})(runner, 500)
    if runner.max_model_len != 500:
        raise NotFoundError(f"max_model_len is {runner.max_model_len} after an update to 500")
    limit = runner.effective_drafter_max_model_len
    said = f"max_model_len 1000 → 500: the gate's limit is {limit}"
    return Answer("follows" if limit <= 500 else "stale", path, node.lineno, True, said)


PROBE = Probe(
    "auto_fit",
    "does the gate's limit follow when auto-fit lowers max_model_len?",
    FILES,
    {
        "no auto-fit": "there is nothing to follow",
        "follows": "yes",
        "stale": "no: the gate keeps the old limit",
    },
    answer,
)
