"""Which builds a search may try, and what is known of them before it."""

from __future__ import annotations

from typing import Any

import pytest

from specrepro.repro.bisection.candidates import Wish, direction, release_line
from specrepro.repro.bisection.question import Find
from specrepro.repro.check.releases import ReleaseFile
from specrepro.repro.errors import UsageError


def wheel(version: str, *, size: int = 1, yanked: str | None = None) -> ReleaseFile:
    name = f"vllm-{version}-cp38-abi3-manylinux_2_28_x86_64.whl"
    return ReleaseFile(name, f"https://files.example/{name}", size, None, yanked)


def sdist(version: str) -> ReleaseFile:
    name = f"vllm-{version}.tar.gz"
    return ReleaseFile(name, f"https://files.example/{name}", 5, None, None)


FILES = [
    wheel("0.10.0"),
    wheel("0.9.2"),
    wheel("0.11.0"),
    sdist("0.11.0"),
    sdist("0.11.1"),
    wheel("0.12.0rc1"),
    wheel("0.12.0", size=7),
    wheel("0.11.2", yanked="broken"),
]


def builds(**wish: Any) -> list[str]:
    return list(release_line(FILES, "vllm", Wish(**wish)).builds)


def test_the_line_is_in_the_order_of_versions_not_of_names() -> None:
    assert builds() == ["0.9.2", "0.10.0", "0.11.0", "0.11.1", "0.12.0"]


def test_ends_bound_the_line() -> None:
    assert builds(oldest="0.10.0", newest="0.11.1") == ["0.10.0", "0.11.0", "0.11.1"]
    assert builds(newest="0.10") == ["0.9.2", "0.10.0"]
    assert builds(oldest="0.11.1") == ["0.11.1", "0.12.0"]


def test_a_range_or_a_list_chooses_and_ends_are_in_it_always() -> None:
    assert builds(within="0.10.0..0.11.1") == ["0.10.0", "0.11.0", "0.11.1"]
    assert builds(within="..0.10.0") == ["0.9.2", "0.10.0"]
    assert builds(within="0.9.2, 0.12") == ["0.9.2", "0.12.0"]
    assert builds(within="0.9.2,0.11.0", newest="0.12.0") == ["0.9.2", "0.11.0", "0.12.0"]


@pytest.mark.parametrize(
    ("good", "bad", "asked", "found"),
    [
        ("0.10.0", "0.11.0", None, Find.FIRST_BAD),
        ("0.9.2", "0.10.0", Find.FIRST_BAD, Find.FIRST_BAD),
        ("0.12.0", "0.12.0rc1", None, Find.FIRST_GOOD),
        (None, "0.11.0", None, Find.FIRST_BAD),
        (None, "0.11.0", Find.FIRST_GOOD, Find.FIRST_GOOD),
        (None, None, None, Find.FIRST_BAD),
        ("0.11.0", None, Find.FIRST_BAD, Find.FIRST_BAD),
    ],
)
def test_the_order_of_the_ends_says_what_is_sought(
    good: str | None, bad: str | None, asked: Find | None, found: Find
) -> None:
    assert direction(good, bad, asked) is found


@pytest.mark.parametrize(
    ("good", "bad", "asked", "words"),
    [
        ("0.10.0", "0.11.0", Find.FIRST_GOOD, "the older one: between these ends lies a regress"),
        ("0.11.0", "0.10.0", Find.FIRST_BAD, "the newer one: between these ends lies a fix"),
        ("0.11.0", "0.11", None, "both good and bad"),
        ("0.11.0", None, Find.FIRST_GOOD, "begins at a build that is bad"),
        ("latest", "0.11.0", None, "`latest` is no version"),
    ],
)
def test_ends_that_contradict_what_is_asked_are_refused(
    good: str | None, bad: str | None, asked: Find | None, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        direction(good, bad, asked)


def test_pre_releases_and_yanked_ones_come_in_on_request_and_are_counted_otherwise() -> None:
    line = release_line(FILES, "vllm", Wish())
    assert line.left_out == (
        "1 pre-releases (--pre takes them in)",
        "1 yanked releases (--yanked takes them in)",
    )
    every = builds(prereleases=True, yanked=True)
    assert every == ["0.9.2", "0.10.0", "0.11.0", "0.11.1", "0.11.2", "0.12.0rc1", "0.12.0"]


def test_a_release_without_a_wheel_is_known_not_to_be_had_unless_sdists_are_read() -> None:
    assert list(release_line(FILES, "vllm", Wish()).unavailable) == ["0.11.1"]
    assert not release_line(FILES, "vllm", Wish(full_download=True)).unavailable


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"oldest": "0.10.5", "newest": "0.12.0"}, "`0.10.5` is no release"),
        ({"oldest": "newest"}, "`newest` is no version"),
        ({"within": "0.10.0"}, "needs two releases"),
        ({"within": "0.10.0..x y"}, "not an end of a range"),
        ({"oldest": "0.10.0", "newest": "0.10.0"}, "needs two releases"),
    ],
)
def test_what_names_no_line_is_refused(wish: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        builds(**wish)
