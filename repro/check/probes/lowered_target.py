"""Whether runner V2 lowers the target's length to that of a shorter draft."""

from __future__ import annotations

from ..probing import runner_v2
from ..probing.lift import lift
from ..probing.probe import Answer, NotFoundError, Probe, Sources
from ..probing.stubs import Logger, Record

FILES = ("config/vllm.py",)


def answer(sources: Sources) -> Answer:
    if (none := runner_v2.missing(sources)) is not None:
        return none
    [path, *_] = sources.paths(*FILES) or [""]
    if not path:
        raise NotFoundError(f"no {FILES[0]}")
    table = sources.functions(path)
    node = table.get("VllmConfig._limit_max_model_len_to_draft")
    if node is None:
        init = table.get("VllmConfig.__post_init__")
        if init is None:
            raise NotFoundError("no VllmConfig.__post_init__")
        return Answer("kept", path, init.lineno, False, "no function limits max_model_len")
    logger = Logger()
    lifted = lift(node, path, {"logger": logger})

    def length(shares: bool, v2: bool) -> int:
        target = Record(max_model_len=128)
        draft = Record(
            draft_model_config=Record(max_model_len=32),
            draft_shares_target_positions=lambda: shares,
        )
        lifted(Record(speculative_config=draft, model_config=target, use_v2_model_runner=v2))
        return int(target.max_model_len)

    alone, shared, v1 = length(False, True), length(True, True), length(False, False)
    said = (
        f"target 128, draft 32: V2 {alone}, V2 where the draft shares the target's positions "
        f"{shared}, V1 {v1}, {'with' if logger.warned else 'without'} a warning"
    )
    if (alone, shared, v1) != (32, 128, 128):
        raise NotFoundError(said)
    return Answer("lowered", path, node.lineno, True, said)


PROBE = Probe(
    "lowered_target",
    "is the target's max_model_len lowered to that of a shorter draft?",
    (runner_v2.ENVIRONMENT, *FILES),
    {
        "kept": "no",
        "lowered": "with runner V2, where the draft has positions of its own",
        runner_v2.NONE: "there is no runner V2",
    },
    answer,
)
