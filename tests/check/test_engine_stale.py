"""Acceptance by position: the oracle for stale draft metadata, on the counts that were measured."""

from __future__ import annotations

from typing import Any

import pytest

from specrepro.repro.case import load_cases
from specrepro.repro.check.engine.answer import Answer, Played, Sign
from specrepro.repro.check.engine.observe import Batch, Observed
from specrepro.repro.check.engine.oracles import stale_metadata
from specrepro.repro.check.engine.process import Ending
from specrepro.repro.check.engine.start import Start
from specrepro.repro.check.engine.tokens import continuation, prompt

WELL = Ending("", False, 0, 1.0)
SETTINGS = {"runner": "v2", "k": 4}
ENGINE = {
    "runner": "vllm.v1.worker.cpu.model_runner",
    "num_speculative_tokens": 4,
    "block_size": 32,
}


def spec() -> Any:
    [case] = load_cases(["stale-draft-metadata"])
    assert case.case.check is not None
    assert case.case.check.engine is not None
    return case.case.check.engine.record()


def played(drafts: int, accepted: tuple[int, ...], tokens: int = 0) -> Played:
    metrics = {"drafts": drafts, "accepted_tokens_per_pos": accepted}
    said = {"r": continuation(prompt(20), 24) if not tokens else (tokens,)}
    batch = Batch("prompt-20", 3, {"r": 20}, ({"r": 24},), said, metrics, False)
    return Played(Observed(ENGINE, {"prompt-20": batch}), WELL, SETTINGS)


def judged(length: Played, slot: Played) -> Answer:
    starts = {"length_canary": length, "slot_canary": slot}
    return stale_metadata.judge(spec(), SETTINGS, starts, True)


SOUND = played(15, (15, 15, 15, 15))


@pytest.mark.parametrize(
    ("length", "slot", "sign"),
    [
        # vLLM 0.28.0, runner V2: as it is; metadata kept; slots kept too, which one canary misses
        ((15, (15, 15, 15, 15)), (15, (15, 15, 15, 15)), Sign.NOT_SEEN),
        ((24, (24, 24, 0, 0)), (18, (18, 18, 18, 0)), Sign.SEEN),
        ((15, (15, 15, 15, 15)), (24, (24, 24, 0, 0)), Sign.SEEN),
        # what the loop builds first is wrong: another fault
        ((15, (15, 0, 0, 0)), (15, (15, 15, 15, 15)), Sign.OTHER),
        ((15, (15, 15)), (15, (15, 15, 15, 15)), Sign.UNKNOWN),
        ((0, (0, 0, 0, 0)), (15, (15, 15, 15, 15)), Sign.UNKNOWN),
    ],
)
def test_the_sign_is_a_loss_that_begins_at_the_third_draft_or_later(
    length: tuple[int, tuple[int, ...]], slot: tuple[int, tuple[int, ...]], sign: Sign
) -> None:
    assert judged(played(*length), played(*slot)).sign is sign


def test_wrong_tokens_are_another_failure() -> None:
    assert judged(played(15, (15, 15, 15, 15), tokens=9), SOUND).sign is Sign.OTHER


def test_both_canaries_are_asked_unless_one_says_nothing() -> None:
    starts: dict[str, Played] = {}
    kinds = []
    while following := stale_metadata.following(spec(), SETTINGS, "vllm-cpu", starts, True):
        name, start = following
        assert isinstance(start, Start)
        assert start.checkpoint is not None
        kinds.append(start.checkpoint.kind)
        starts[name] = SOUND
    assert kinds == ["length_canary", "slot_canary"]
    failed = {"length_canary": Played(Observed(), WELL, SETTINGS)}
    assert stale_metadata.following(spec(), SETTINGS, "vllm-cpu", failed, True) is None
