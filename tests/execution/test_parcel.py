"""What comes back from a node: whole, or not at all; and nothing of it leads out of its folder."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.errors import LaneError
from specrepro.repro.execution.laying_out import lay_out, plain
from specrepro.repro.execution.parcel import Packed, pack, packed_from, unpack


@pytest.fixture
def left(tmp_path: Path) -> Path:
    folder = tmp_path / "left"
    (folder / "scratch" / "deep").mkdir(parents=True)
    (folder / "result.ndjson").write_text("{}\n")
    (folder / "scratch" / "deep" / "core").write_bytes(b"\0" * 5000)
    (folder / "link").symlink_to("/etc/passwd")
    return folder


def test_a_directory_comes_back_as_it_was_but_for_links(left: Path, tmp_path: Path) -> None:
    target = tmp_path / "home"
    unpack(packed_from(asdict(pack(left))), target)
    found = {p.relative_to(target).as_posix() for p in target.rglob("*")}
    assert found == {"result.ndjson", "scratch", "scratch/deep", "scratch/deep/core"}
    assert (target / "scratch/deep/core").read_bytes() == b"\0" * 5000


def test_what_is_too_large_stays_and_is_named_and_the_small_files_come(left: Path) -> None:
    packed = pack(left, limit=1000)
    assert set(packed.files) == {"result.ndjson"}
    assert packed.left == {"scratch/deep/core": 5000}


def test_a_result_that_was_cut_changes_nothing_at_home(left: Path, tmp_path: Path) -> None:
    packed = pack(left)
    content, digest = packed.files["result.ndjson"]
    cut = replace(packed, files=packed.files | {"result.ndjson": (content[:-1], digest)})
    target = tmp_path / "home"
    lay_out(target, "{}", {})
    with pytest.raises(LaneError, match=r"result\.ndjson is not as it was sent"):
        unpack(cut, target)
    assert [path.name for path in target.iterdir()] == ["job.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "left"]


@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out", "", "a\0b", "..\\out"])
def test_a_name_that_leads_out_is_refused(name: str, tmp_path: Path) -> None:
    content = b"x"
    packed = Packed({name: (content, hashlib.sha256(content).hexdigest())}, (), {})
    with pytest.raises(LaneError):
        unpack(packed, tmp_path / "home")
    with pytest.raises(ValueError, match="not a plain relative name"):
        lay_out(tmp_path / "there", "{}", {name: content})
    assert not (tmp_path / "out").exists()


@given(st.text(max_size=20))
def test_a_plain_name_stays_below_its_folder(name: str) -> None:
    try:
        said = plain(name)
    except ValueError:
        return
    folder = Path("/somewhere")
    assert (folder / said).resolve().is_relative_to(folder)


no_results = st.recursive(
    st.none() | st.integers() | st.binary(), lambda values: st.dictionaries(st.text(), values)
)


@given(no_results)
def test_what_is_no_result_is_refused_without_a_traceback(value: Any) -> None:
    with pytest.raises(LaneError, match="cannot be read"):
        packed_from(value)
