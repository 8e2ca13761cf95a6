"""Several builds tried at once: the same result as one after the other, and a whole end."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.bisection import crew
from specrepro.repro.bisection.candidates import Candidate
from specrepro.repro.bisection.question import Trial
from specrepro.repro.bisection.trials import Bench
from specrepro.repro.check.depth import Asked
from specrepro.repro.errors import UsageError

# which untestable builds of a block were tried, and which presumed, does differ
COMPARED = ("kind", "ending", "build", "previous", "confidence", "candidates")


@pytest.mark.parametrize("states", ["gggggbbbbb", "gg??bb", "bbbggg", "gggg", "?gb?"])
def test_the_result_is_that_of_trials_one_after_the_other(states: str, engine: Any) -> None:
    versions = engine.releases(states)
    ends = ("--good", versions[0], "--bad", versions[-1])
    alone, together = engine.record(*ends), engine.record(*ends, "--jobs", "3")
    assert together["status"] == alone["status"]
    for key in COMPARED:
        assert together["result"][key] == alone["result"][key]
    assert len(set(engine.tried(together))) == len(together["trials"])
    assert "--jobs 3" in together["again"]
    assert "--jobs" not in alone["again"]


def test_a_scan_of_several_builds_at_once_tries_each_once(engine: Any) -> None:
    engine.releases("gbbgg?b")
    record = engine.record("--scan", "--jobs", "4")
    [stage] = record["stages"]
    assert "".join(entry["state"][0] for entry in stage["timeline"]["builds"]) == "gbbggub"
    assert sorted(engine.tried(record)) == [f"0.{n}.0" for n in range(1, 8)]


def test_a_budget_of_trials_holds_for_all_that_run_at_once(engine: Any) -> None:
    versions = engine.releases("gggggbbbbb")
    ends = ("--good", versions[0], "--bad", versions[-1])
    assert len(engine.record(*ends, "--jobs", "4", "--max-trials", "3")["trials"]) == 3


def test_an_interrupt_ends_all_of_them(engine: Any) -> None:
    engine.releases("ggggbb")
    for version in ("0.1.0", "0.6.0"):
        engine.server.paths[f"/files/{engine.names[version]}"].behaviour = "trickle"
    started = engine.start("--good", "0.1.0", "--bad", "0.6.0", "--jobs", "2")
    time.sleep(3)
    assert started.poll() is None
    started.send_signal(signal.SIGTERM)
    out, err = started.communicate(timeout=60)
    assert (started.returncode, out) == (130, "")
    assert "--jobs 2" in err


class Waiting:
    """A depth that answers one build with an error and waits over the others, as an engine's
    start is waited for: with a word now and then."""

    name = "engine"
    looked_at = "nothing"

    def __init__(self) -> None:
        self.began = threading.Barrier(3, timeout=30)
        self.ended: list[str] = []

    def answer(self, spec: str, builds: Any, asked: Asked) -> dict[str, Any]:
        self.began.wait()
        if spec == "0.2.0":
            raise UsageError("no such case")
        try:
            while True:
                asked.told(f"{spec}: still")
                time.sleep(0.02)
        finally:
            self.ended.append(spec)


def test_an_error_of_one_trial_is_raised_and_the_others_are_ended(tmp_path: Path) -> None:
    depth = Waiting()
    asked = Asked(
        None,  # type: ignore[arg-type]  # this depth asks for no case
        (),
        (),
        None,  # type: ignore[arg-type]
        None,
        lambda line: None,
        tmp_path,
    )
    bench = Bench(depth, asked, None, tmp_path)  # type: ignore[arg-type]  # it opens no build
    names = ["0.1.0", "0.2.0", "0.3.0"]
    batch = [Trial(name, 1, "narrowing") for name in names]
    with pytest.raises(UsageError, match="no such case"):
        list(crew.play([bench] * 3, batch, {name: Candidate(name) for name in names}))
    assert sorted(depth.ended) == ["0.1.0", "0.3.0"]
