"""Logs cut into parts that processes read: each log is in one part, and what a part does not say is
said of each of its logs."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.diagnose.chunks import (
    ANSWER,
    LEAST,
    MOST,
    MOST_LOGS,
    Chunk,
    Spread,
    _logs,
    chunks,
    from_json,
    look_at_all,
    to_json,
)
from specrepro.repro.diagnose.cluster import look
from specrepro.repro.errors import UsageError
from specrepro.repro.execution.choice import Choice
from specrepro.repro.execution.task import Done, Ended, Task

sizes = st.lists(st.integers(0, 3 * MOST), max_size=60)


@given(sizes=sizes, many=st.integers(0, 3000))
def test_each_log_is_in_one_part_and_parts_are_bounded(sizes: list[int], many: int) -> None:
    logs = [(Path(f"{n}.log"), size) for n, size in enumerate([*sizes, *([10] * many)])]
    cut = chunks(logs)
    assert [log for chunk in cut for log in chunk.logs] == logs
    assert [chunk.first for chunk in cut] == [logs.index(chunk.logs[0]) for chunk in cut]
    for chunk in cut:
        assert len(chunk.logs) <= MOST_LOGS
        assert len(chunk.logs) == 1 or chunk.bytes <= max(MOST, LEAST)
    # no part could have been put to the one before it
    for before, after in itertools.pairwise(cut):
        wanted = min(max(sum(s for _, s in logs) // 16, LEAST), MOST)
        full = before.bytes + after.logs[0][1] > wanted or len(before.logs) == MOST_LOGS
        assert full


def made(folder: Path, count: int) -> list[Path]:
    """Logs of which every third has a failure, and two cannot be read."""
    folder.mkdir()
    paths = []
    for number in range(count):
        path = folder / f"log {number} ‡.log"
        lines = [f"line {line}" for line in range(20)]
        if number % 3 == 0:
            lines.append(f"NVRM: Xid (PCI:0000:0{number % 9}:00): 31, pid=1, name=python3")
        path.write_text("\n".join(lines) + "\n")
        paths.append(path)
    (folder / "gone.log").symlink_to(folder / "nowhere")
    return [*paths, folder / "gone.log", folder]


def test_what_processes_read_is_what_one_reads(tmp_path: Path) -> None:
    paths = made(tmp_path / "logs", 70)
    alone = list(look_at_all(paths, Spread(Choice())))
    assert sum(bool(log.briefs) for log in alone) == 24
    assert [bool(log.problem) for log in alone[-2:]] == [True, True]
    assert list(look_at_all(paths, Spread(Choice(jobs=3)))) == alone


def test_what_a_log_says_survives_the_way_home(tmp_path: Path) -> None:
    for path in made(tmp_path / "logs", 4):
        log = look(str(path))
        assert from_json(json.loads(json.dumps(to_json(log)))) == log


@pytest.mark.parametrize(
    "row", [None, {}, {"file": "x"}, {"file": "x", "lines": "many", "briefs": [], "problem": None}]
)
def test_what_is_no_answer_is_refused(row: object) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        from_json(row)


def test_a_log_is_read_elsewhere_under_its_own_name(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("It broke.\n\n```\nNVRM: Xid (PCI:0000:01:00): 31, pid=1, name=python3\n```\n")
    moved = tmp_path / "0.md"
    moved.write_bytes(page.read_bytes())
    assert look(str(moved), str(page)) == look(str(page))


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (None, "No such file"),
        ("[{", "cannot be read"),
        ("{}", "about other logs"),
        ("[]", "about other logs"),
        ('[{"file": "other.log", "lines": 1, "briefs": [], "problem": null}]', "other logs"),
    ],
)
def test_what_a_part_does_not_say_is_said_of_each_of_its_logs(
    left: str | None, words: str, tmp_path: Path
) -> None:
    chunk = Chunk(0, ((Path("a.log"), 1), (Path("b.log"), 1)))
    task = Task("0", "logs", {}, tmp_path, 1.0)
    if left is not None:
        (tmp_path / ANSWER).write_text(left)
    for log, name in zip(_logs(Done(task, None, Ended()), chunk), ("a.log", "b.log"), strict=True):
        assert (log.file, log.briefs) == (name, ())
        assert words in str(log.problem)
    for log in _logs(Done(task, None, Ended(), lost="lost 4 times"), chunk):
        assert log.problem == "lost 4 times"


def test_a_log_too_large_to_be_sent_is_refused_before_a_cluster_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "large.log"
    with path.open("wb") as file:
        os.truncate(file.fileno(), 300 << 20)
    with pytest.raises(UsageError, match="too large to be sent"):
        list(look_at_all([path], Spread(Choice(ray="local"))))
