"""The index of wheels by commit, in the shapes it had, as a local server has them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from specrepro.repro.bisection.commit_index import OLD_NAME, CommitIndex
from specrepro.repro.check.settings import read_settings
from specrepro.repro.check.tree import silent
from specrepro.repro.check.web import Web
from specrepro.repro.errors import UnreachableError, UsageError

OLD, NEW, BARE = "a" * 40, "b" * 40, "c" * 40
NAME = "vllm-0.12.1.dev3+gbbbbbbbbb-cp38-abi3-manylinux_2_31_x86_64.whl"
QUOTED = NAME.replace("+", "%2B")


def entry(**changed: Any) -> dict[str, Any]:
    return {
        "package_name": "vllm",
        "version": "0.12.1.dev3+gbbbbbbbbb",
        "python_tag": "cp38",
        "abi_tag": "abi3",
        "platform_tag": "manylinux_2_31_x86_64",
        "variant": None,
        "filename": NAME,
        "path": f"../{QUOTED}",
    } | changed


@pytest.fixture
def index(server: Any, environ: dict[str, str]) -> Any:
    def make(**options: Any) -> CommitIndex:
        settings = read_settings(environ)
        return CommitIndex(
            f"{server.url}/wheels", lambda: Web(settings, silent, (0.0, 0.0)), **options
        )

    return make


def listed(server: Any, rows: Any, sha: str = NEW, variant: str = "") -> None:
    text = rows if isinstance(rows, str) else json.dumps(rows)
    server.add_page(f"/wheels/{sha}/{variant}vllm/metadata.json", text, "application/json")


def test_a_wheel_of_the_listed_era_is_found_by_its_relative_path(server: Any, index: Any) -> None:
    listed(server, [entry(filename=NAME.replace("x86_64", "aarch64")), entry()])
    [found] = index().wheels([NEW]).values()
    assert (found.url, found.reason) == (f"{server.url}/wheels/{NEW}/{QUOTED}", "")


def test_a_wheel_of_the_era_of_one_name_is_found_by_it(server: Any, index: Any) -> None:
    server.add_page(f"/wheels/{OLD}/{OLD_NAME}", "wheel")
    assert index().wheels([OLD])[OLD].url == f"{server.url}/wheels/{OLD}/{OLD_NAME}"
    assert [asked.path for asked in server.asked] == [
        f"/wheels/{OLD}/vllm/metadata.json",
        f"/wheels/{OLD}/{OLD_NAME}",
    ]


def test_a_commit_without_a_wheel_is_told_with_the_reason(server: Any, index: Any) -> None:
    listed(server, [entry(variant="cpu"), entry(variant="cu129")])
    found = index().wheels([BARE, NEW])
    assert (found[BARE].url, found[BARE].reason) == (None, "no wheel")
    assert found[NEW].reason == "no wheel of variant default; it has cpu, cu129"


def test_a_variant_has_a_folder_of_its_own_and_no_old_name(server: Any, index: Any) -> None:
    path = f"../../{QUOTED}"
    listed(server, [entry(variant="cu130", path=path)], variant="cu130/")
    found = index(variant="cu130").wheels([NEW, OLD])
    assert found[NEW].url == f"{server.url}/wheels/{NEW}/{QUOTED}"
    assert (found[OLD].url, found[OLD].reason) == (None, "no wheel of variant cu130")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([entry(path=f"https://evil.example/{QUOTED}")], "lie elsewhere"),
        ([entry(path=f"//evil.example/{QUOTED}")], "lie elsewhere"),
        ([entry(path="../other.whl")], "is not the path of"),
        ([entry(filename="../../x.whl")], "no wheel for Linux"),
        ([entry(filename=5)], "no wheel for Linux"),
        ([entry(filename=NAME.replace("x86_64", "aarch64"))], "no wheel for Linux"),
        ([entry(package_name="torch")], "no wheel of variant"),
        ("{", "not JSON"),
        ({"a": 1}, "no list of wheels"),
        ([1, None, "x"], "no wheel of variant"),
        ([entry(variant="\x1b[31m")], r"it has \\x1b"),
    ],
)
def test_a_list_that_is_not_one_gives_no_wheel(
    rows: Any, words: str, server: Any, index: Any
) -> None:
    listed(server, rows)
    found = index().wheels([NEW])[NEW]
    assert found.url is None
    assert re.search(words, found.reason), found.reason


def test_an_index_that_does_not_answer_says_nothing_about_a_commit(server: Any, index: Any) -> None:
    listed(server, [entry()])
    server.paths[f"/wheels/{NEW}/vllm/metadata.json"].failures = [503] * 9
    with pytest.raises(UnreachableError):
        index().wheels([NEW])
    server.paths[f"/wheels/{NEW}/vllm/metadata.json"].failures = [429, 500]
    assert index().wheels([NEW])[NEW].url


def test_many_commits_are_asked_once_each_and_keep_their_order(server: Any, index: Any) -> None:
    shas = [f"{number:040x}" for number in range(23)]
    for sha in shas[::2]:
        listed(server, [entry()], sha)
    found = index().wheels(shas)
    assert list(found) == shas
    assert [sha for sha, wheel in found.items() if wheel.url] == shas[::2]
    assert len(server.asked) == len(shas) + len(shas[1::2])


@pytest.mark.parametrize("base", ["wheels", "file:///etc", "https://"])
def test_what_is_no_address_is_refused(base: str) -> None:
    with pytest.raises(UsageError, match="no address"):
        CommitIndex(base, lambda: pytest.fail("asked"))
