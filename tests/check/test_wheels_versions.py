"""What a person writes to name a build, and the file that stands for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from specrepro.repro.check.releases import ReleaseFile, pick, releases
from specrepro.repro.check.versions import expand, wanted
from specrepro.repro.errors import Exit, UntestableError, UsageError

X86 = "manylinux_2_28_x86_64"
ARM = "manylinux_2_28_aarch64"


def file(name: str, yanked: str | None = None) -> ReleaseFile:
    return ReleaseFile(name, f"https://files.example/{name}", 1, None, yanked)


def wheel(version: str, platform: str = X86, build: str = "", yanked: str | None = None) -> Any:
    tag = f"-{build}" if build else ""
    return file(f"vllm-{version}{tag}-cp38-abi3-{platform}.whl", yanked)


def chosen(files: list[ReleaseFile], version: str, **options: Any) -> str:
    return pick(files, "vllm", version, **options).name


def test_the_highest_build_tag_is_taken_and_a_tag_can_be_asked_for() -> None:
    files = [wheel("0.20.1", build=b) for b in ("2", "10", "", "1a")]
    assert chosen(files, "0.20.1") == files[1].name
    assert chosen(files, "0.20.1-2") == files[0].name
    assert chosen(files, "0.20.1-1a") == files[3].name
    assert chosen(files, files[2].name) == files[2].name
    with pytest.raises(UsageError):
        chosen(files, "0.20.1-3")


def test_a_post_release_is_not_taken_for_a_build_tag() -> None:
    files = [wheel("0.8.5", build="1"), wheel("0.8.5.post1")]
    assert chosen(files, "0.8.5-1") == files[1].name
    assert chosen(files, "0.8.5.post1") == files[1].name
    assert chosen(files, "0.8.5") == files[0].name


def test_the_platform_comes_before_the_build_tag_and_any_wheel_before_an_sdist() -> None:
    sdist = file("vllm-0.28.0.tar.gz")
    arm = wheel("0.28.0", ARM, build="1")
    mac = wheel("0.28.0", "macosx_11_0_arm64", build="3")
    files = [sdist, mac, arm, wheel("0.28.0")]
    assert chosen(files, "0.28.0") == files[3].name
    assert chosen(files, "0.28.0", platform="aarch64") == arm.name
    assert chosen(files[:3], "0.28.0") == arm.name
    assert chosen(files[:2], "0.28.0") == mac.name
    assert chosen(files[:1], "0.28.0") == sdist.name


def test_a_version_is_the_same_however_it_is_written() -> None:
    files = [wheel("0.28.0"), wheel("0.29.0rc1")]
    assert chosen(files, "v0.28") == files[0].name
    assert chosen(files, "0.29.0-rc.1") == files[1].name


def test_an_unknown_version_is_refused_with_its_neighbours() -> None:
    files = [wheel(v) for v in ("0.26.0", "0.27.0", "0.28.0", "0.29.0", "0.30.0")]
    with pytest.raises(UsageError, match=r"0\.28\.5 is not in the index") as refused:
        chosen(files, "0.28.5")
    assert refused.value.hint == "the nearest are 0.27.0, 0.28.0, 0.29.0, 0.30.0"
    assert refused.value.exit_status == Exit.USAGE


def test_a_yanked_release_is_refused_with_the_reason_unless_asked_for() -> None:
    files = [wheel("0.2.1", yanked="broken\x1b[31m metadata")]
    with pytest.raises(UntestableError, match="yanked: `broken") as refused:
        chosen(files, "0.2.1")
    assert "\x1b" not in str(refused.value)
    assert chosen(files, "0.2.1", yanked=True) == files[0].name


def test_files_of_other_projects_and_odd_names_are_passed_over() -> None:
    odd = ["vllm_extra-1.0-py3-none-any.whl", "vllm-0.28.0.zip", "vllm-1-2.whl", "vllm-x.tar.gz"]
    files = [*map(file, odd), wheel("0.28.0")]
    assert releases(files, "vllm", prereleases=True, yanked=True) == [Version("0.28.0")]


def test_releases_are_ascending_without_pre_releases_and_yanked_ones() -> None:
    files = [wheel(v) for v in ("0.10.0", "0.9.0", "0.9.0rc1")] + [wheel("0.9.1", yanked="")]
    found = releases(files, "vllm", prereleases=False, yanked=False)
    assert [str(v) for v in found] == ["0.9.0", "0.10.0"]
    everything = releases(files, "vllm", prereleases=True, yanked=True)
    assert [str(v) for v in everything] == ["0.9.0rc1", "0.9.0", "0.9.1", "0.10.0"]


HAVE = [Version(v) for v in ("0.9.0", "0.10.0", "0.10.1", "0.11.0")]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("0.9.0..0.10.1", ["0.9.0", "0.10.0", "0.10.1"]),
        ("0.9.5..0.10.5", ["0.10.0", "0.10.1"]),
        ("0.10.1..", ["0.10.1", "0.11.0"]),
        ("..0.9.0", ["0.9.0"]),
        ("0.11.0, 0.9.0", ["0.11.0", "0.9.0"]),
        ("0.11.0,0.10.0..0.11.0", ["0.11.0", "0.10.0", "0.10.1"]),
        ("installed,../vllm,0.9.0", ["installed", "../vllm", "0.9.0"]),
    ],
)
def test_lists_and_ranges_are_expanded_in_their_order(spec: str, expected: list[str]) -> None:
    assert expand(spec, lambda: HAVE, lambda version: None) == expected


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "empty entry"),
        ("0.9.0,", "empty entry"),
        ("0.10.0..0.9.0", "runs backwards"),
        ("0.12.0..0.13.0", "no release lies in"),
        ("a..b", "not a range of versions"),
        ("not a build", "names no build"),
        ("0.9.0\x1b[2J", "names no build"),
    ],
)
def test_what_names_no_build_is_refused(spec: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        expand(spec, lambda: HAVE, lambda version: None)
    assert refused.value.hint
    assert str(refused.value).isprintable()


def test_each_version_of_a_list_is_checked_and_nothing_else_asks_the_index() -> None:
    checked: list[str] = []

    def have() -> list[Version]:
        pytest.fail("no range was asked for")

    expand("0.9.0,installed,./tree,0.20.1-1", have, checked.append)
    assert checked == ["0.9.0", "0.20.1-1"]


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ("0.28.0", "version"),
        ("0.28.1.dev5+gabc", "version"),
        ("vllm-0.28.0-cp38-abi3-manylinux_2_28_x86_64.whl", "version"),
        ("installed", "installed"),
        (".", "path"),
        ("./vllm-0.28.0.tar.gz", "path"),
        ("https://files.example/vllm-0.28.0-py3-none-any.whl", "url"),
        ("https://wheels.example/abc123/", "index"),
        ("0.28.1.dev5@https://wheels.example/abc123/", "index"),
    ],
)
def test_each_form_of_naming_a_build_is_told_apart(spec: str, kind: str) -> None:
    assert wanted(spec).kind == kind


def test_versions_and_builds_of_an_index_in_html(
    wheels: Any, server: Any, opened: Callable[..., Any]
) -> None:
    names = [wheels.name("0.28.0"), wheels.name("0.29.0")]
    for name, version in zip(names, ("0.28.0", "0.29.0"), strict=True):
        server.add_release(wheels.make(version=version), name)
    links = "".join(f'<a href="../../files/{name}">{name}</a>' for name in names)
    server.add_page("/simple/vllm/", f"<!DOCTYPE html><html><body>{links}</body></html>")
    builds = opened()
    assert builds.versions("0.1..") == ["0.28.0", "0.29.0"]
    assert builds.open("0.29.0").build.file == names[1]
    assert len(server.of("/simple/vllm/")) == 1


def test_an_index_of_one_commit_is_named_by_its_url(
    wheels: Any, server: Any, opened: Callable[..., Any]
) -> None:
    name = "vllm-0.28.1.dev5+gabc-cp38-abi3-manylinux_2_28_x86_64.whl"
    server.add_release(wheels.make(version="0.28.1.dev5+gabc"), name)
    server.add_index(name, path="/abc/vllm/")
    address = f"{server.url}/abc/"
    assert opened().open(address).build.version == "0.28.1.dev5+gabc"
    assert opened().open(f"0.28.1.dev5+gabc@{address}").build.file == name
    server.add_release(wheels.make(), wheels.name("0.28.0"))
    server.add_index(name, wheels.name("0.28.0"), path="/two/vllm/")
    with pytest.raises(UsageError, match="has 2 versions"):
        opened().open(f"{server.url}/two")


def test_an_index_that_is_down_or_no_index_is_said_so(
    server: Any, opened: Callable[..., Any], environ: dict[str, str]
) -> None:
    server.add_page("/simple/vllm/", "hello", "text/plain")
    with pytest.raises(UntestableError, match="is no index: it sends `text/plain`"):
        opened().open("0.28.0")
    server.add_page("/simple/vllm/", "[]", "application/vnd.pypi.simple.v1+json")
    with pytest.raises(UntestableError, match="not a page of an index"):
        opened().open("0.28.0")
    del server.paths["/simple/vllm/"]
    with pytest.raises(UntestableError, match="no index has vllm"):
        opened().open("0.28.0")
    closed = f"http://user:secret@localhost:{1}/simple"  # nobody listens there
    environ["PIP_INDEX_URL"] = closed
    with pytest.raises(UntestableError, match="tried 3 times") as refused:
        opened().open("0.28.0")
    assert "secret" not in str(refused.value)


def test_a_second_index_stands_in_for_one_that_fails(
    wheels: Any, server: Any, opened: Callable[..., Any], environ: dict[str, str]
) -> None:
    name = wheels.name("0.28.0")
    server.add_release(wheels.make(), name)
    server.add_index(name, path="/more/vllm/")
    server.add_page("/simple/vllm/", "hello", "text/plain")
    environ["PIP_EXTRA_INDEX_URL"] = f"{server.url}/more"
    told: list[str] = []
    assert opened(told=told.append).open("0.28.0").build.file == name
    assert [line for line in told if line.startswith("left out:")]


def test_files_of_an_index_and_of_a_folder_on_disk_are_read(
    wheels: Any, opened: Callable[..., Any], environ: dict[str, str], tmp_path: Path
) -> None:
    old, new = wheels.name("0.28.0"), wheels.name("0.29.0")
    links, page = tmp_path / "links", tmp_path / "index" / "vllm"
    links.mkdir()
    page.mkdir(parents=True)
    (links / old).write_bytes(wheels.make())
    (page / new).write_bytes(wheels.make(version="0.29.0"))
    (page / "index.html").write_text(f'<a href="{new}#sha256={"0" * 64}">{new}</a>')
    environ["PIP_INDEX_URL"] = (tmp_path / "index").as_uri()
    environ["PIP_FIND_LINKS"] = str(links)
    assert opened().open("0.28.0").read("vllm/__init__.py") == b""
    with pytest.raises(UntestableError, match="its index says 0000"):
        opened().open("0.29.0")
