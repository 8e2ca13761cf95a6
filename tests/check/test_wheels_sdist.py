"""Sdists: read whole, and only when that was allowed."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.errors import UntestableError

NAME = "vllm-0.28.0.tar.gz"
SCHEDULER = "vllm/v1/core/sched/scheduler.py"


def make_sdist(
    files: Mapping[str, bytes],
    *,
    top: str = "vllm-0.28.0/",
    extra: Callable[[tarfile.TarFile], None] = lambda archive: None,
) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in {"PKG-INFO": b"Name: vllm\nVersion: 0.28.0\n\n", **files}.items():
            info = tarfile.TarInfo(top + name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        extra(archive)
    return out.getvalue()


@pytest.fixture
def sdist(wheels: Any) -> bytes:
    return make_sdist({**wheels.FILES, "csrc/big.cu": b"not kept"})


def test_an_sdist_stands_in_for_a_wheel_when_a_full_download_is_allowed(
    wheels: Any, sdist: bytes, server: Any, opened: Callable[..., Any]
) -> None:
    server.add_release(sdist, NAME, behaviour="whole")
    server.add_index(NAME)
    with pytest.raises(UntestableError, match="no wheel, only an sdist") as refused:
        opened().open("0.28.0")
    assert "--allow-full-download" in (refused.value.hint or "")
    assert server.of(f"/files/{NAME}") == []
    tree = opened(allow_full_download=True).open("0.28.0")
    assert tree.read(SCHEDULER) == wheels.FILES[SCHEDULER]
    assert tree.names() == sorted([*wheels.FILES, "PKG-INFO"])
    assert (tree.build.origin, tree.build.commit) == ("sdist", "abc123def")
    assert opened(offline=True).open("0.28.0").read(SCHEDULER) == wheels.FILES[SCHEDULER]
    assert len(server.of(f"/files/{NAME}")) == 1


@pytest.fixture
def load(opened: Callable[..., Any], tmp_path: Path) -> Callable[[bytes], Any]:
    def open_bytes(content: bytes) -> Any:
        (tmp_path / NAME).write_bytes(content)
        return opened().open(str(tmp_path / NAME))

    return open_bytes


def member(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE) -> Any:
    def extra(archive: tarfile.TarFile) -> None:
        info = tarfile.TarInfo(name)
        info.type, info.size, info.linkname = kind, len(content), "PKG-INFO"
        archive.addfile(info, io.BytesIO(content))

    return extra


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("vllm-0.28.0/../../up.py", "no plain path"),
        ("/abs.py", "no plain path"),
        (f"vllm-0.28.0/{SCHEDULER}", "twice"),
        ("other/x.py", "one top folder"),
    ],
)
def test_an_sdist_with_bad_names_is_refused(
    name: str, message: str, wheels: Any, load: Callable[[bytes], Any]
) -> None:
    with pytest.raises(UntestableError, match=message):
        load(make_sdist(wheels.FILES, extra=member(name)))


def test_links_of_an_sdist_are_left_out(wheels: Any, load: Callable[[bytes], Any]) -> None:
    tree = load(make_sdist(wheels.FILES, extra=member("vllm-0.28.0/link.py", kind=tarfile.SYMTYPE)))
    assert "link.py" not in tree.names()


def test_a_bomb_is_given_up_early(load: Callable[[bytes], Any]) -> None:
    with pytest.raises(UntestableError, match="a bomb"):
        load(gzip.compress(make_zeros(200 << 20), compresslevel=1))


def make_zeros(size: int) -> bytes:
    """A tar whose only member, not Python, holds zeros."""
    info = tarfile.TarInfo("vllm-0.28.0/zeros.bin")
    info.size = size
    return info.tobuf() + bytes(size + 1024)


def test_a_cut_or_damaged_sdist_is_refused(sdist: bytes, load: Callable[[bytes], Any]) -> None:
    for length in range(0, len(sdist), 61):
        with pytest.raises(UntestableError):
            load(sdist[:length])
    with pytest.raises(UntestableError, match="cannot be read"):
        load(sdist[:-6] + b"\0\0" + sdist[-4:])
