"""Run directories: whole or not there, found by name, pruned from the old end."""

import json
from pathlib import Path

import pytest

from specrepro.repro import store
from specrepro.repro.errors import RunNotFoundError, UsageError


def finished(folder: Path, value: int) -> Path:
    path = store.create(folder, "run", {})
    store.finish(path, record(value))
    return path


def record(value: int) -> dict[str, object]:
    """The least that a result of `run` holds."""
    return {"schema": "specrepro/run@1", "run": {}, "cases": [], "value": value}


def test_latest_is_the_run_finished_last(tmp_path: Path) -> None:
    first, second = finished(tmp_path, 1), finished(tmp_path, 2)
    assert store.find(tmp_path, "latest") == second
    store.finish(first, record(3))
    assert store.load(store.find(tmp_path, "latest")) == record(3)


def test_a_cut_run_is_listed_and_has_no_result(tmp_path: Path) -> None:
    path = store.create(tmp_path, "run", {"cases": []})
    [run] = store.stored(tmp_path)
    assert (run.id, run.command, run.finished) == (path.name, "run", False)
    with pytest.raises(RunNotFoundError, match="cut off"):
        store.load(path)


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"schema": "specrepro/run@1"}', '{"schema": "run"}', '{"schema": []}'],
)
def test_a_run_whose_result_cannot_be_read_is_listed_as_damaged(
    tmp_path: Path, content: str
) -> None:
    whole = finished(tmp_path, 1)
    path = store.create(tmp_path, "run", {})
    (path / store.RESULT).write_text(content)
    (tmp_path / store.LATEST).unlink()
    states = {run.id: run.state for run in store.stored(tmp_path)}
    assert states == {path.name: "damaged", whole.name: "finished"}
    assert store.find(tmp_path, "latest") == whole


def test_only_a_run_of_cases_is_said_to_resume(tmp_path: Path) -> None:
    run, check = store.create(tmp_path, "run", {}), store.create(tmp_path, "check", {})
    with pytest.raises(RunNotFoundError) as cut:
        store.load(run)
    assert cut.value.hint == f"specrepro run --resume {run.name}"
    with pytest.raises(RunNotFoundError) as other:
        store.load(check)
    assert other.value.hint == "run its command again"


def test_latest_without_any_run_is_an_error_with_the_folder(tmp_path: Path) -> None:
    with pytest.raises(RunNotFoundError, match="no finished run"):
        store.find(tmp_path, "latest")


def test_a_unique_beginning_names_a_run_and_a_shared_one_none(tmp_path: Path) -> None:
    one, _ = finished(tmp_path, 1), finished(tmp_path, 2)
    assert store.find(tmp_path, one.name) == one
    with pytest.raises(RunNotFoundError, match="several"):
        store.find(tmp_path, one.name[:4])
    with pytest.raises(RunNotFoundError, match="no run begins"):
        store.find(tmp_path, "nothing")
    with pytest.raises(RunNotFoundError):
        store.find(tmp_path, "")


def test_a_path_names_a_run_anywhere(tmp_path: Path) -> None:
    path = finished(tmp_path / "elsewhere", 1)
    assert store.find(tmp_path, str(path)) == path


def test_pruning_removes_the_oldest_and_a_latest_that_went_with_them(tmp_path: Path) -> None:
    paths = [finished(tmp_path, n) for n in range(3)]
    newest = max(path.name for path in paths)
    kept = {newest, paths[-1].name}  # and what latest names: ids of one second are in no order
    gone = store.prune(tmp_path, keep=1)
    assert {run.id for run in gone} == {path.name for path in paths} - kept
    assert {run.id for run in store.stored(tmp_path)} == kept
    store.prune(tmp_path, keep=0)
    assert list(tmp_path.iterdir()) == []


def test_foreign_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "holiday").mkdir()
    store.prune(tmp_path, keep=0)
    assert (tmp_path / "holiday").is_dir()


def test_a_write_leaves_no_half_file(tmp_path: Path) -> None:
    target = tmp_path / "run.json"
    store.write_json(target, {"a": 1})
    with pytest.raises(ValueError, match="JSON"):
        store.write_json(target, {"a": float("nan")})
    assert json.loads(target.read_text()) == {"a": 1}


def test_a_folder_that_cannot_be_made_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot keep runs"):
        store.create(tmp_path / "file", "run", {})


def test_what_latest_names_is_kept_however_old(tmp_path: Path) -> None:
    first, _, third = (finished(tmp_path, n) for n in range(3))
    oldest = min(first, third, key=lambda path: path.name)
    store.finish(oldest, record(9))
    store.prune(tmp_path, keep=1)
    assert store.find(tmp_path, "latest") == oldest


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", "\x00", '{"schema": "specrepro/run@9"}', '{"schema": "specrepro/run@1"}'],
)
def test_a_damaged_result_is_an_error_not_a_crash(tmp_path: Path, content: str) -> None:
    path = finished(tmp_path, 1)
    (path / "run.json").write_text(content)
    with pytest.raises(RunNotFoundError):
        store.load(path)
