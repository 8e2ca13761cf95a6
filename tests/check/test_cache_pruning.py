"""The cache of builds within a limit: what goes first, and that nothing goes while others read."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.check import cache_pruning
from specrepro.repro.check.cache import Cache
from specrepro.repro.check.cache_pruning import prune, shelved

DAY = 86400
HEAD = 65  # bytes before the content of an entry
READER = """
import sys
from pathlib import Path
from specrepro.repro.check.cache import Cache
cache = Cache(Path(sys.argv[1]), print)
cache.get("tails", "a")
print("reads", flush=True)
sys.stdin.read()
"""


def filled(folder: Path, ages: dict[str, int], size: int = 1000) -> Cache:
    """A cache with an entry a key, which was used so many days ago."""
    cache = Cache(folder, pytest.fail)
    for key, days in ages.items():
        cache.put("tails", key, bytes(size))
        path = cache._path("tails", key)
        os.utime(path, (time.time() - days * DAY,) * 2)
    return cache


def there(cache: Cache, keys: Any) -> set[str]:
    return {key for key in keys if cache._path("tails", key).exists()}


@given(st.lists(st.integers(0, 400), min_size=1, max_size=8, unique=True), st.integers(0, 9))
def test_what_was_used_longest_ago_goes_first_until_the_rest_fits(
    tmp_path_factory: pytest.TempPathFactory, ages: list[int], fit: int
) -> None:
    keys = {str(days): days for days in ages}
    folder = tmp_path_factory.mktemp("cache")
    cache = filled(folder, keys)
    each = 1000 + HEAD
    pruned = prune(folder, fit * each + each // 2)
    stays = sorted(keys, key=lambda key: keys[key])[:fit]
    assert there(cache, keys) == set(stays)
    assert (pruned.gone, pruned.in_use) == (len(keys) - len(stays), False)
    assert (pruned.before, pruned.after) == (len(keys) * each, len(stays) * each)


def test_reading_an_entry_is_using_it(tmp_path: Path) -> None:
    cache = filled(tmp_path, {"a": 30, "b": 20})
    assert cache.get("tails", "a") == bytes(1000)
    prune(tmp_path, 1500)
    assert there(cache, "ab") == {"a"}


def test_a_listing_stays_as_old_as_it_is(tmp_path: Path) -> None:
    cache = Cache(tmp_path, pytest.fail)
    cache.put("listings", "page", b"[]")
    os.utime(cache._path("listings", "page"), (time.time() - 3 * DAY,) * 2)
    cache.get("listings", "page")
    age = cache.age("listings", "page", time.time())
    assert age is not None
    assert age > 2 * DAY


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the cache open, until its stdin is closed."""
    command = [sys.executable, "-c", READER, str(tmp_path / "cache")]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "reads\n"
        yield process


def test_nothing_goes_while_another_process_reads(
    reader: subprocess.Popen[str], tmp_path: Path
) -> None:
    cache = filled(tmp_path / "cache", {"a": 3, "b": 2})
    pruned = prune(tmp_path / "cache", 0)
    assert (pruned.gone, pruned.in_use, pruned.after) == (0, True, pruned.before)
    assert there(cache, "ab") == {"a", "b"}
    reader.communicate()
    assert prune(tmp_path / "cache", 0).gone == 2


def test_two_caches_of_one_process_do_not_keep_each_other_out(tmp_path: Path) -> None:
    first, second = filled(tmp_path, {"a": 3}), filled(tmp_path, {"b": 2})
    assert prune(tmp_path, 0).gone == 2
    assert there(first, "ab") == there(second, "ab") == set()


def test_the_lock_ends_with_the_cache(tmp_path: Path) -> None:
    cache = filled(tmp_path, {"a": 3})
    assert tmp_path in cache_pruning._held
    del cache
    gc.collect()
    assert tmp_path not in cache_pruning._held


def test_only_entries_are_taken_away(tmp_path: Path) -> None:
    filled(tmp_path, {"a": 3})
    half = tmp_path / "tails" / "ab" / ".tmp_file"
    mine = [
        tmp_path / "notes.txt",
        tmp_path / "tails" / "aa" / "notes.txt",
        tmp_path / "other" / "ab" / ("0" * 64),
    ]
    for path in mine:
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text("mine")
    half.parent.mkdir(exist_ok=True)
    half.write_bytes(b"cut off")
    (tmp_path / "files").symlink_to(tmp_path / "other")
    assert prune(tmp_path, 0).gone == 2
    assert not half.exists()
    assert all(path.exists() for path in mine)


def test_a_session_that_added_something_trims_above_the_limit(
    wheels: Any, server: Any, opened: Callable[..., Any], tmp_path: Path, monkeypatch: Any
) -> None:
    old = filled(tmp_path / "cache", {"a": 30})
    monkeypatch.setattr("specrepro.repro.check.cache.DEFAULT_LIMIT", 1000 / (1 << 30))
    name = wheels.name("0.28.0")
    server.add_release(wheels.make(), name)
    server.add_index(name)
    told: list[str] = []
    builds = opened(told=told.append)
    builds.open("0.28.0").close()
    builds.close()
    assert there(old, "a") == set()
    assert any("used longest ago" in line for line in told)


def command(*words: str) -> subprocess.CompletedProcess[str]:
    code = "from specrepro.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, "cache", *words],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"NO_COLOR": "1", "COLUMNS": "100"},
    )


def test_the_command_lists_and_prunes(tmp_path: Path) -> None:
    where = ("--cache", str(tmp_path))
    assert command("list", *where).stdout == f"nothing in {tmp_path}\n"
    filled(tmp_path, {"a": 3, "b": 2})
    gc.collect()
    listed = json.loads(command("list", *where, "--json").stdout)
    assert listed["kinds"] == [{"kind": "tails", "entries": 2, "bytes": 2130}]
    assert "tails" in command("list", *where).stdout
    assert command("prune", *where).stdout == "removed 0 entries, 0 B; 2.1 KiB are left\n"
    ran = command("prune", "--limit", "0", *where, "--json")
    assert (ran.returncode, json.loads(ran.stdout)["removed"]) == (0, 2)
    assert shelved(tmp_path) == []
    refused = command("prune", "--limit", "-1", *where)
    assert (refused.returncode, refused.stdout) == (2, "")
