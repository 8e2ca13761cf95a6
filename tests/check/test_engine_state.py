"""Oracles of the recurrent state, on what was measured of vLLM 0.28.0 and on answers beside it."""

from __future__ import annotations

from typing import Any

import pytest

from specrepro.repro.case import load_cases
from specrepro.repro.check.defects import BuildVerdict, Question
from specrepro.repro.check.engine.answer import Answer, Played, Sign
from specrepro.repro.check.engine.declare import EngineSpec
from specrepro.repro.check.engine.experiments import Done, experiments, judge
from specrepro.repro.check.engine.observe import Batch, Observed
from specrepro.repro.check.engine.oracles import oracle
from specrepro.repro.check.engine.process import Ending
from specrepro.repro.check.engine.start import Start
from specrepro.repro.check.engine.tokens import continuation
from specrepro.repro.errors import UntestableError

WELL = Ending("", False, 0, 1.0)
[CASE] = load_cases(["gdn-pipeline-state"])


def part() -> EngineSpec:
    assert CASE.case.check is not None
    assert CASE.case.check.engine is not None
    return CASE.case.check.engine.record()


def spec(name: str) -> EngineSpec:
    return next(one for one in part().all if one.oracle == name)


def asked(name: str, **settings: Any) -> Start:
    following = oracle(name).following(spec(name), settings, "vllm-cpu", {}, True)
    assert following is not None
    return following[1]


def answered(start: Start, k: int, wrong: dict[str, dict[int, int]], **engine: Any) -> Played:
    """The text, but for tokens at given places of given requests (`batch/request`)."""
    batches = {}
    for line, (name, requests) in enumerate(start.batches.items(), 2):
        tokens = {}
        for r in requests:
            said = list(continuation(r.prompt, r.new))
            for place, token in wrong.get(f"{name}/{r.id}", {}).items():
                said[place] = token
            tokens[r.id] = tuple(said)
        new = requests[0].new
        made = [1, *[k + 1] * ((new - 2) // (k + 1)), 1] if k else [1] * new
        steps = tuple({r.id: count for r in requests} for count in made)
        prompts = {r.id: len(r.prompt) for r in requests}
        batches[name] = Batch(name, line, prompts, steps, tokens, {}, False)
    about = {"runner": "vllm.v1.worker.cpu_model_runner", "num_speculative_tokens": k, **engine}
    return Played(Observed(about, batches), WELL)


def at_the_end(wrong: dict[str, dict[int, int]], **settings: Any) -> Answer:
    name = "zero_draft_rows"
    start = asked(name, **settings)
    starts = {"speculating": answered(start, int(settings.get("k", 3)), wrong)}
    return oracle(name).judge(spec(name), settings, starts, True)


def one_token(wrong: dict[str, dict[int, int]], blocks: int | None = 12) -> Answer:
    name = "one_token_chunk"
    starts = {"recycling": answered(asked(name), 0, wrong, num_gpu_blocks=blocks)}
    return oracle(name).judge(spec(name), {}, starts, True)


def test_the_last_step_is_one_without_drafts_whatever_k_is() -> None:
    for k in range(1, 8):
        start = asked("zero_draft_rows", k=k)
        for request in start.batches["end"]:
            assert len(request.prompt) + request.new == 256
            assert (request.new - 2) % (k + 1) == 0


def test_a_wrong_token_in_the_step_without_drafts_is_the_sign() -> None:
    answer = at_the_end({"end/a": {29: 167}, "end/b": {29: 60}})  # as 0.28.0 says it
    assert answer.sign is Sign.SEEN
    assert "wrong in 2 of 2 requests: a ends with 167, and 16 is right" in answer.reason
    assert answer.rows[0].value == "1 4 4 4 4 4 4 4 1"


def test_right_tokens_up_to_the_end_are_no_sign() -> None:
    assert at_the_end({}).sign is Sign.NOT_SEEN


@pytest.mark.parametrize(
    ("wrong", "sign"),
    [
        ({"end/a": {12: 9}}, Sign.OTHER),
        ({"end/a": {12: 9, 29: 167}}, Sign.OTHER),
        ({"middle/b": {3: 9}, "end/a": {29: 167}}, Sign.OTHER),
        ({"end/b": {29: 60}}, Sign.SEEN),
    ],
)
def test_wrong_tokens_elsewhere_are_another_failure(
    wrong: dict[str, dict[int, int]], sign: Sign
) -> None:
    assert at_the_end(wrong).sign is sign


def test_an_engine_whose_last_step_had_drafts_says_nothing() -> None:
    name = "zero_draft_rows"
    played = answered(asked(name), 1, {})  # half the tokens a step that were asked for
    assert oracle(name).judge(spec(name), {}, {"speculating": played}, True).sign is Sign.UNKNOWN


def test_a_prompt_of_one_token_that_is_answered_from_an_old_state_is_the_sign() -> None:
    answer = one_token({"recycled-0/r": {0: 247}, "recycled-5/r": {0: 3}})
    assert answer.sign is Sign.SEEN
    assert answer.reason.startswith("2 of 8 prompts of one token")
    assert "after token 142 comes 247, and 204 is right" in answer.reason


def test_later_tokens_of_such_a_prompt_do_not_decide() -> None:
    assert one_token({"recycled-2/r": {3: 9}}).sign is Sign.NOT_SEEN


@pytest.mark.parametrize("wrong", ["fresh/r", "used-4/r"])
def test_an_engine_that_is_wrong_elsewhere_has_another_failure(wrong: str) -> None:
    assert one_token({wrong: {0: 9}, "recycled-0/r": {0: 9}}).sign is Sign.OTHER


@pytest.mark.parametrize("blocks", [None, 13])
def test_right_answers_from_blocks_that_may_be_new_say_nothing(blocks: int | None) -> None:
    assert one_token({}, blocks).sign is Sign.UNKNOWN
    assert one_token({}, 12).sign is Sign.NOT_SEEN


def test_a_model_of_the_users_has_no_text_that_is_known() -> None:
    for name in ("zero_draft_rows", "one_token_chunk"):
        with pytest.raises(UntestableError, match="whose every token is known"):
            oracle(name).following(spec(name), {}, "vllm-cpu", {}, False)


def test_each_defect_has_its_experiment_and_what_has_none_is_said_with_the_reason() -> None:
    assert CASE.case.check is not None
    defects = CASE.case.check.records()
    wanted = experiments(part(), defects, Question(defects=("zero-draft-rows",)), False)
    assert [(e.decides, e.spec.oracle) for e in wanted] == [
        (("zero-draft-rows",), "zero_draft_rows")
    ]
    wanted = experiments(part(), defects, Question(), False)
    done = [Done(e, Answer(Sign.NOT_SEEN, "sound"), e.settings) for e in wanted]
    judgement = judge(part(), defects, Question(), done)
    assert judgement.verdict is BuildVerdict.NOT_AFFECTED
    open_ = {s.defect: s for s in judgement.standings if s.state == "unknown"}
    assert set(open_) == {"batch-row-copy", "unbounded-count"}
    assert not any(s.counted for s in open_.values())
    assert "needs runner V2 in stages" in open_["batch-row-copy"].reason


def test_a_defect_without_an_experiment_that_is_asked_for_leaves_the_build_untestable() -> None:
    assert CASE.case.check is not None
    defects = CASE.case.check.records()
    question = Question(defects=("batch-row-copy", "zero-draft-rows"))
    wanted = experiments(part(), defects, question, False)
    done = [Done(e, Answer(Sign.NOT_SEEN, "sound"), e.settings) for e in wanted]
    judgement = judge(part(), defects, question, done)
    assert judgement.verdict is BuildVerdict.UNTESTABLE
    assert "needs runner V2 in stages" in judgement.reasons[0]
