"""Journals: what is written is read back, whatever ended the process, and nothing else is."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specrepro.repro.bisection.journal import SCHEMA, Journal, read
from specrepro.repro.bisection.lines import from_line, to_line
from specrepro.repro.bisection.variation import Variation, Varied
from specrepro.repro.bisection.verdicts import (
    Bad,
    Event,
    Exposure,
    Good,
    Infra,
    Mark,
    Marked,
    Observation,
    Opened,
    Other,
    Place,
    Undo,
    Untestable,
    effective,
)
from specrepro.repro.errors import UsageError

SEARCH = {"case": "a" * 64, "candidates": [f"0.{i}.0" for i in range(99)], "exact": True}
SEEN = Observation("0.21.0", 1, Bad("Xid 31\x1b[0m", Exposure(tokens=11_000)), 61.5, "trials/1")
RUNNER = Variation("0.21.0", True, Varied.SWITCH, (("runner", "v2"),))
VARIED = replace(SEEN, build=RUNNER.name, varied=RUNNER)

counts = st.none() | st.integers(0, 1 << 70)
seconds = st.floats(0, allow_infinity=False, allow_nan=False)
exposures = st.builds(Exposure, counts, counts, st.none() | seconds)
verdicts = st.one_of(
    st.builds(Bad, st.text(), exposures),
    st.builds(Good, exposures),
    st.builds(Other, st.text()),
    st.builds(Untestable, st.text(), st.text()),
    st.builds(Infra, st.text()),
)
places = st.builds(Place, st.text(), st.text(), st.text(), st.text())
observations = st.builds(
    Observation,
    st.text(),
    st.integers(1, 99),
    verdicts,
    seconds,
    st.text(),
    seconds,
    st.none() | places,
)
changes = st.lists(st.tuples(st.text(), st.text())).map(tuple)
variations = st.builds(Variation, st.text(), st.booleans(), st.sampled_from(Varied), changes)
varied = st.builds(
    lambda seen, variation: replace(seen, build=variation.name, varied=variation),
    observations,
    variations,
)
marks = st.builds(Mark, st.text(), st.sampled_from(Marked))
events = st.one_of(observations, varied, marks, st.just(Undo()), st.just(Opened()))


@given(event=events)
def test_an_event_is_one_line_of_ascii_and_comes_back_from_it(event: Event) -> None:
    line = to_line(event)
    assert line.isascii()
    assert line.isprintable()
    assert from_line(line) == event


def test_a_trial_of_before_there_were_places_is_read_and_its_place_is_unknown() -> None:
    record = json.loads(to_line(SEEN))
    del record["place"]
    assert from_line(json.dumps(record)) == SEEN


@pytest.mark.parametrize(
    "line",
    [
        "",
        "null",
        "[]",
        "{}",
        "[" * 100_000,
        '{"event": "end"}',
        '{"event": ["undo"]}',
        '{"event": "undo", "build": "x"}',
        '{"event": "mark", "build": "x", "verdict": "worse"}',
        '{"event": "mark", "build": 3, "verdict": "bad"}',
        to_line(SEEN).replace('"number": 1', '"number": 0'),
        to_line(SEEN).replace('"number": 1', '"number": true'),
        to_line(SEEN).replace("61.5", "-1"),
        to_line(SEEN).replace("61.5", "NaN"),
        to_line(SEEN).replace("61.5", "1" + "0" * 400),
        to_line(SEEN).replace("11000", "-11000"),
        to_line(SEEN).replace("11000", "false"),
        to_line(SEEN).replace("11000", '""'),
        to_line(SEEN).replace('"bad"', '"worse"'),
        to_line(SEEN).replace('"requests"', '"requested"'),
        to_line(SEEN).replace('"log"', '"path"'),
        to_line(VARIED).replace('"v2"', '"v3"'),
        to_line(VARIED).replace('["runner", "v2"]', '["runner"]'),
        to_line(VARIED).replace('[["runner", "v2"]]', '{"runner": "v2"}'),
        to_line(VARIED).replace("true", "1"),
        to_line(VARIED).replace('"switch"', '"magic"'),
        to_line(SEEN)[:-1],
        to_line(SEEN) + "x",
        json.dumps({"event": "mark", "build": "x" * (1 << 20), "verdict": "bad"}),
    ],
)
def test_what_is_no_event_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        from_line(line)


@given(text=st.text() | st.recursive(st.none() | st.text(), st.lists).map(json.dumps))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        event = from_line(text)
    except ValueError:
        return
    assert from_line(to_line(event)) == event


@given(given=st.lists(events, max_size=12))
def test_taking_back_removes_the_latest_that_is_left(given: list[Event]) -> None:
    # the same by walking backwards, with a count of what is still to be removed
    kept: list[Event] = []
    owed = 0
    for event in reversed(given):
        if isinstance(event, Undo):
            owed += 1
        elif isinstance(event, Observation | Mark) and owed:
            owed -= 1
        else:
            kept.insert(0, event)
    assert effective(given) == kept


@given(given=st.lists(events, max_size=6), data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_journal_cut_at_any_byte_holds_its_whole_lines_and_takes_new_ones(
    given: list[Event], data: st.DataObject, tmp_path: Path
) -> None:
    path = tmp_path / "journal"
    path.unlink(missing_ok=True)
    journal = Journal.open(path, SEARCH)
    for event in given:
        journal.append(event)
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    left = given[: max(whole[:cut].count(b"\n") - 1, 0)]
    assert list(read(path).events) == left
    again = Journal.open(path, SEARCH)
    assert again.events == left
    again.append(SEEN)
    assert again.events == [*left, SEEN]
    assert list(read(path).events) == [*left, SEEN]
    assert path.read_bytes().startswith(whole[: whole[:cut].rfind(b"\n") + 1])


def test_lines_are_only_ever_added(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path / "journal", SEARCH)
    before = b""
    for event in (Opened(), SEEN, Undo(), Mark("0.21.0", Marked.BAD), Opened()):
        journal.append(event)
        content = journal.path.read_bytes()
        assert content.startswith(before)
        before = content
    first = json.loads(before.split(b"\n")[0])
    assert first["schema"] == SCHEMA
    assert first["search"]["case"] == SEARCH["case"]


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"case": "b" * 64}, "case"),
        ({"candidates": [*SEARCH["candidates"], "0.99.0"]}, "candidates"),
        ({"exact": False, "case": "b" * 64}, "case, exact"),
        ({"pin": "async=off"}, "pin"),
    ],
)
def test_a_journal_of_another_search_is_refused_and_says_what_differs(
    tmp_path: Path, other: dict[str, object], named: str
) -> None:
    path = tmp_path / "journal"
    Journal.open(path, SEARCH).append(SEEN)
    assert Journal.open(path, dict(reversed(SEARCH.items()))).events == [SEEN]
    with pytest.raises(UsageError, match=f"of another search: {named} differ"):
        Journal.open(path, {**SEARCH, **other})
    assert list(read(path).events) == [SEEN]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"once upon a time\n", "no journal"),
        (b'{"schema": "specrepro/run@1", "search": {}}\n', "no journal"),
        (b'{"schema": "specrepro/bisect-journal@1"}\n', "no journal"),
        (b"\xff\xfe\n", "no journal"),
        (b"[" * 5000 + b"\n", "no journal"),
    ],
)
def test_a_file_that_is_no_journal_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "journal"
    path.write_bytes(content)
    for attempt in (lambda: read(path), lambda: Journal.open(path, SEARCH)):
        with pytest.raises(UsageError, match=said):
            attempt()
    assert path.read_bytes() == content


def test_a_damaged_line_in_the_middle_is_refused_with_its_number(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path / "journal", SEARCH)
    journal.append(SEEN)
    journal.append(Undo())
    lines = journal.path.read_bytes().split(b"\n")
    journal.path.write_bytes(b"\n".join((lines[0], lines[1][:30] + b"\x1b[2J", *lines[2:])))
    with pytest.raises(UsageError) as caught:
        read(journal.path)
    assert caught.value.where is not None
    assert caught.value.where.endswith("journal:2")
    assert str(caught.value).isprintable()


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing", Path("/dev/null")):
        with pytest.raises(UsageError, match=r"cannot read|no journal"):
            read(path)
    with pytest.raises(UsageError, match="cannot write"):
        Journal.open(tmp_path / "no" / "folder", SEARCH)


def test_a_full_disk_costs_no_line_that_was_written(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path / "journal", SEARCH)
    journal.append(SEEN)
    before = journal.path.read_bytes()
    full = """
import resource, signal, sys
from pathlib import Path
from specrepro.repro.bisection.journal import Journal
from specrepro.repro.bisection.verdicts import Mark, Marked
from specrepro.repro.errors import UsageError
import json
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path, search = Path(sys.argv[1]), json.loads(sys.argv[2])
journal = Journal.open(path, search)
resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20,) * 2)
try:
    journal.append(Mark("0.22.0", Marked.GOOD))
except UsageError as error:
    print(error, "|", error.hint)
print(len(journal.events))
"""
    arguments = [sys.executable, "-c", full, str(journal.path), json.dumps(SEARCH)]
    said = subprocess.check_output(arguments, text=True, timeout=60).splitlines()
    assert said[0].startswith("cannot write `")
    assert os.strerror(errno.EFBIG) in said[0]
    assert "the same command goes on" in said[0]
    assert said[1] == "1"
    assert journal.path.read_bytes() == before
    again = Journal.open(journal.path, SEARCH)
    again.append(Undo())
    assert list(read(journal.path).events) == [SEEN, Undo()]


def test_a_killed_process_leaves_every_line_it_had_finished(tmp_path: Path) -> None:
    endless = """
import json, sys
from pathlib import Path
from specrepro.repro.bisection.journal import Journal
from specrepro.repro.bisection.verdicts import Good, Observation
journal = Journal.open(Path(sys.argv[1]), json.loads(sys.argv[2]))
for number in range(1, 100000):
    journal.append(Observation("0.22.0", number, Good(), 1.0))
    print(number, flush=True)
"""
    path = tmp_path / "journal"
    arguments = [sys.executable, "-c", endless, str(path), json.dumps(SEARCH)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = [int(process.stdout.readline()) for _ in range(20)]
        process.send_signal(signal.SIGKILL)
        told += [int(line) for line in process.stdout if line.endswith("\n")]
    numbers = [e.number for e in read(path).events if isinstance(e, Observation)]
    assert numbers[: len(told)] == told
    assert len(numbers) <= len(told) + 1
    assert Journal.open(path, SEARCH).events == list(read(path).events)
