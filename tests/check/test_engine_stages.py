"""A hybrid in stages against one stage: the oracle, on answers written by hand."""

from __future__ import annotations

import pytest

from specrepro.repro.case import load_cases
from specrepro.repro.check.engine.answer import Answer, Played, Sign
from specrepro.repro.check.engine.declare import EngineSpec
from specrepro.repro.check.engine.observe import Batch, Failure, Observed, Raised
from specrepro.repro.check.engine.oracles import gdn_pipeline
from specrepro.repro.check.engine.process import Ending

WELL = Ending("", False, 0, 1.0)


def spec() -> EngineSpec:
    [case] = load_cases(["gdn-pipeline-state"])
    assert case.case.check is not None
    assert case.case.check.engine is not None
    return case.case.check.engine.record()


def answered(stages: int, **tokens: tuple[int, ...]) -> Played:
    batches = {
        name: Batch(name, n, {"r": 40}, ({"r": len(said)},), {"r": said}, {}, False)
        for n, (name, said) in enumerate(tokens.items(), 2)
    }
    engine = {"runner": "vllm.v1.worker.cpu_model_runner", "pipeline_stages": stages}
    return Played(Observed(engine, batches), WELL, {"runner": "v1", "pp": stages})


def judged(one: Played, several: Played) -> Answer:
    starts = {gdn_pipeline.ONE: one, gdn_pipeline.SEVERAL: several}
    return gdn_pipeline.judge(spec(), {"pp": 3}, starts, True)


def test_the_same_answers_are_no_sign() -> None:
    same = {"cold": (504, 3, 9), "short": (7, 7, 8)}
    assert judged(answered(1, **same), answered(3, **same)).sign is Sign.NOT_SEEN


def test_one_token_that_differs_is_the_sign_and_is_named() -> None:
    # the fourth token of vLLM 0.28.0's cold prefill, with chunks cut elsewhere
    answer = judged(answered(1, cold=(1, 2, 3, 483)), answered(3, cold=(1, 2, 3, 504)))
    assert answer.sign is Sign.SEEN
    assert answer.reason == "1 answers differ, first cold/r from token 4 on"


@pytest.mark.parametrize("less", [{}, {"cold": ()}, {"cold": (1, 2)}, {"other": (1, 2, 3)}])
def test_an_answer_that_is_missing_or_shorter_leaves_it_open(
    less: dict[str, tuple[int, ...]],
) -> None:
    assert judged(answered(1, cold=(1, 2, 3)), answered(3, **less)).sign is Sign.UNKNOWN


def test_an_engine_that_does_not_start_in_stages_is_another_failure() -> None:
    failure = Failure("start", "RuntimeError", "Engine core initialization failed.", "…")
    dead = Played(Observed(failure=failure), WELL, {}, raised=Raised("AssertionError"))
    answer = judged(answered(1, cold=(1,)), dead)
    assert answer.sign is Sign.OTHER
    assert answer.reason == (
        "stages: another failure, at start-up: RuntimeError: Engine core initialization failed.; "
        "the log's last error is AssertionError"
    )


def test_an_engine_that_waits_for_a_dead_worker_is_named_by_what_the_worker_said() -> None:
    # vLLM 0.28.0, prefix caching on, a stage without attention: the engine is ready, and hangs
    ready = answered(3).observed
    hung = Ending("nothing more for 40 s after an error", True, 4, 60.0)
    at = "vllm/v1/worker/mamba_utils.py:556 in get_mamba_groups: assert all(…)"
    raised = Raised("AssertionError", at)
    dead = Played(ready, hung, {"runner": "v1", "pp": 3}, raised=raised)
    answer = judged(answered(1, cold=(1,)), dead)
    assert answer.sign is Sign.OTHER
    assert f"another failure, in the engine: AssertionError at {at}; nothing" in answer.reason


def test_the_long_prompt_is_one_chunk_in_both_starts() -> None:
    """Chunks that are cut elsewhere are rounded elsewhere."""
    asked = spec()
    played: dict[str, Played] = {}
    chunks = []
    while following := gdn_pipeline.following(asked, {"pp": 3}, "vllm-cpu", played, True):
        name, start = following
        longest = max(len(r.prompt) for requests in start.batches.values() for r in requests)
        chunks.append((start.arguments["max_num_batched_tokens"], longest))
        played[name] = answered(1, cold=(1,))
    assert len(chunks) == 2
    assert all(longest <= budget for budget, longest in chunks)
