import os
from pathlib import Path

import pytest

from specrepro.repro.case import find_cases, load_case, load_cases, shipped_cases
from specrepro.repro.case.source import MAX_BYTES
from specrepro.repro.errors import CaseError


def refusal(call, *arguments) -> CaseError:
    with pytest.raises(CaseError) as caught:
        call(*arguments)
    return caught.value


def test_a_missing_file_is_named(tmp_path) -> None:
    path = tmp_path / "none.yaml"
    assert str(refusal(load_case, path)) == f"{path}: no such file"


def test_a_huge_file_is_refused_by_its_size(tmp_path) -> None:
    path = tmp_path / "huge.yaml"
    with path.open("wb") as file:
        file.truncate(100 << 30)  # sparse: reading it would take minutes
    assert "too large" in refusal(load_case, path).message
    assert "107,374,182,400 bytes" in refusal(load_case, path).message


def test_the_size_limit_is_inclusive(good, write, scenarios) -> None:
    padded = good.encode() + b"#" * (MAX_BYTES - len(good))
    assert load_case(write(padded), scenarios).case.id == "small-case"
    assert "too large" in refusal(load_case, write(padded + b"#"), scenarios).message


def test_a_file_that_grows_past_its_stated_size_is_read_with_a_bound() -> None:
    # a file of the kernel: its stated size is 0, whatever it holds
    error = refusal(load_case, Path("/proc/self/status"))
    assert error.where.startswith("/proc/self/status:")


def test_what_is_not_a_regular_file_is_not_opened(tmp_path) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)  # opening it for reading would wait for a writer
    assert "not a regular file" in refusal(load_case, pipe).message
    assert "not a regular file" in refusal(load_case, Path("/dev/zero")).message
    assert "not a regular file" in refusal(load_case, tmp_path).message


def test_a_byte_that_is_not_utf8_is_located(good, write) -> None:
    line = good.index("A small")
    path = write(good[:line].encode() + "é".encode() + b"\xff" + good[line:].encode())
    error = refusal(load_case, path)
    assert str(error) == f"{path}:3:9: byte 0xff is not UTF-8; case files are UTF-8 text"


def test_utf16_is_not_utf8(good, write) -> None:
    error = refusal(load_case, write(good.encode("utf-16")))
    assert error.where.endswith(":1:1")
    assert "not UTF-8" in error.message


def test_a_byte_order_mark_moves_no_column(good, write, scenarios) -> None:
    assert load_case(write(b"\xef\xbb\xbf" + good.encode()), scenarios).case.id == "small-case"
    text = "\ufeff" + good.replace("schema: 1", "schemas: 1")
    assert refusal(load_case, write(text), scenarios).where.endswith(":1:1")


def test_a_name_with_control_characters_is_shown_escaped(tmp_path) -> None:
    error = refusal(load_case, tmp_path / "a\x1b[2J\nb.yaml")
    assert str(error).endswith("a\\x1b[2J\\nb.yaml: no such file")


def test_a_name_too_long_for_the_system_is_an_error_of_ours() -> None:
    assert "cannot be read" in refusal(load_case, Path("x" * 5000 + ".yaml")).message


def test_a_folder_gives_its_yaml_files_by_name(tmp_path) -> None:
    for name in ("b.yaml", "a.yaml", ".hidden.yaml", "notes.md", "c.yml"):
        (tmp_path / name).touch()
    assert [path.name for path in find_cases([str(tmp_path)])] == ["a.yaml", "b.yaml"]


def test_a_folder_without_cases_is_refused(tmp_path) -> None:
    error = refusal(find_cases, [str(tmp_path)])
    assert str(error) == f"{tmp_path}: a folder without cases; a case is a *.yaml file"


def test_a_file_named_twice_is_taken_once_in_the_order_given(tmp_path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).touch()
    second = str(tmp_path / "b.yaml")
    found = find_cases([second, str(tmp_path), f"{tmp_path}/./b.yaml"])
    assert [path.name for path in found] == ["b.yaml", "a.yaml"]


def test_the_id_of_a_shipped_case_finds_it(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (path,) = find_cases(["mtp-tail-overflow"])
    assert path in shipped_cases()
    assert path.name == "mtp-tail-overflow.yaml"


def test_an_unknown_id_is_refused_with_the_nearest(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    error = refusal(find_cases, ["mtp-tail-overflw"])
    assert "`mtp-tail-overflw`" in error.message
    assert error.hint == "did you mean `mtp-tail-overflow`?"


def test_two_cases_with_one_id_are_refused(good, write, scenarios) -> None:
    first, second = write(good, "a.yaml"), write(good, "b.yaml")
    error = refusal(load_cases, [str(first), str(second)], scenarios)
    assert str(error) == f"{second}: has the id of {first}; ids must differ"
    assert error.key == "id"
