"""Archives of a stranger: whatever could mislead or exhaust the reader is refused."""

from __future__ import annotations

import io
import stat
import struct
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.errors import UntestableError

NAME = "vllm-0.28.0-cp38-abi3-manylinux_2_28_x86_64.whl"
SCHEDULER = "vllm/v1/core/sched/scheduler.py"
Load = Callable[[bytes], Any]


@pytest.fixture
def load(opened: Callable[..., Any], tmp_path: Path) -> Load:
    """Opens these bytes as a wheel on disk."""

    def open_bytes(content: bytes) -> Any:
        path = tmp_path / NAME
        path.write_bytes(content)
        return opened().open(str(path))

    return open_bytes


def add(name: str, content: bytes = b"x", mode: int = 0) -> Callable[[zipfile.ZipFile], None]:
    def extra(archive: zipfile.ZipFile) -> None:
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        with warnings.catch_warnings():
            # zipfile warns of a double name, which is the point
            warnings.simplefilter("ignore", UserWarning)
            archive.writestr(info, content)

    return extra


def test_a_sound_wheel_on_disk_is_read(wheels: Any, load: Load) -> None:
    tree = load(wheels.make())
    assert {name: tree.read(name) for name in wheels.FILES} == wheels.FILES
    assert (tree.build.origin, tree.build.commit) == ("wheel", "abc123def")


@pytest.mark.parametrize(
    "name", ["../up.py", "vllm/../../up.py", "/abs.py", "vllm//x.py", "C:/x.py", "a\\b.py", "./x"]
)
def test_a_name_that_is_no_plain_path_is_refused(name: str, wheels: Any, load: Load) -> None:
    with pytest.raises(UntestableError, match="no plain path"):
        load(wheels.make(extra=add(name)))


def test_a_name_cut_by_a_nul_is_refused(wheels: Any, load: Load) -> None:
    content = wheels.make(extra=add("vllm/evil.py_x"))
    with pytest.raises(UntestableError, match="no plain path"):
        load(content.replace(b"vllm/evil.py_x", b"vllm/evil.py\0x"))


def test_a_file_that_is_there_twice_is_refused(wheels: Any, load: Load) -> None:
    with pytest.raises(UntestableError, match="twice"):
        load(wheels.make(extra=add(SCHEDULER)))


def test_a_file_that_is_also_a_folder_is_refused(wheels: Any, load: Load) -> None:
    with pytest.raises(UntestableError, match="both as a file and as a folder"):
        load(wheels.make(extra=add("vllm/v1")))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices_are_refused(kind: int, wheels: Any, load: Load) -> None:
    with pytest.raises(UntestableError, match="no regular file"):
        load(wheels.make(extra=add("vllm/link.py", b"/etc/passwd", kind | 0o644)))


def directory_entry(content: bytes, name: str) -> int:
    """Where the entry of a member begins in the list of contents."""
    at = content.rindex(b"PK\x01\x02" + b"", 0, content.rindex(name.encode()))
    assert content[at + 46 : at + 46 + len(name)] == name.encode()
    return at


def patched(content: bytes, name: str, offset: int, form: str, value: int) -> bytes:
    """With a field of a member's entry, `offset` bytes into it, set."""
    at = directory_entry(content, name) + offset
    return content[:at] + struct.pack(form, value) + content[at + struct.calcsize(form) :]


def test_an_encrypted_member_is_refused(wheels: Any, load: Load) -> None:
    with pytest.raises(UntestableError, match="encrypted"):
        load(patched(wheels.make(), SCHEDULER, 8, "<H", 1))


def test_a_member_packed_in_an_unusual_way_is_refused(wheels: Any, load: Load) -> None:
    tree = load(patched(wheels.make(), SCHEDULER, 10, "<H", zipfile.ZIP_LZMA))
    with pytest.raises(UntestableError, match="method 14"):
        tree.read(SCHEDULER)


def test_a_member_with_another_crc_is_refused(wheels: Any, load: Load) -> None:
    tree = load(patched(wheels.make(), SCHEDULER, 16, "<I", 12345))
    with pytest.raises(UntestableError, match=r"(?i)crc"):
        tree.read(SCHEDULER)


def test_a_member_that_says_it_is_shorter_than_it_is_is_refused(wheels: Any, load: Load) -> None:
    tree = load(patched(wheels.make(), SCHEDULER, 24, "<I", 3))
    with pytest.raises(UntestableError, match=r"(?i)crc"):
        tree.read(SCHEDULER)


def test_a_member_that_says_it_is_longer_than_it_is_is_refused(wheels: Any, load: Load) -> None:
    tree = load(patched(wheels.make(), SCHEDULER, 24, "<I", 500))
    with pytest.raises(UntestableError, match=r"crc|damaged"):
        tree.read(SCHEDULER)


def test_a_bomb_is_not_unpacked(wheels: Any, load: Load) -> None:
    files = {**wheels.FILES, "vllm/zeros.py": bytes(8 << 20)}
    tree = load(wheels.make(files))
    tree.fetch(files)  # reading ahead passes it over; it is reading that refuses
    assert tree.read(SCHEDULER) == files[SCHEDULER]
    with pytest.raises(UntestableError, match="a bomb"):
        tree.read("vllm/zeros.py")


def test_a_member_that_lies_about_its_size_is_not_unpacked_further(wheels: Any, load: Load) -> None:
    files = {**wheels.FILES, SCHEDULER: bytes(100 << 20)}
    content = patched(wheels.make(files), SCHEDULER, 24, "<I", 3)
    tree = load(content)
    tracemalloc.start()
    try:
        with pytest.raises(UntestableError):
            tree.read(SCHEDULER)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


def test_a_member_larger_than_any_source_is_not_read(wheels: Any, load: Load) -> None:
    tree = load(patched(wheels.make(), SCHEDULER, 24, "<I", 1 << 30))
    with pytest.raises(UntestableError, match="1073741824 bytes"):
        tree.read(SCHEDULER)


def test_a_list_of_contents_that_claims_gigabytes_is_not_read(wheels: Any, load: Load) -> None:
    content = wheels.make()
    end = content.rindex(b"PK\x05\x06")
    lying = content[: end + 12] + struct.pack("<I", 0xFFFFFFF0) + content[end + 16 :]
    with pytest.raises(UntestableError, match="not a wheel"):
        load(lying)


@pytest.mark.parametrize(
    "content", [b"", b"x" * 100, b"PK\x05\x06" + bytes(18), b"PK\x05\x06" + b"\xff" * 18]
)
def test_what_is_no_archive_is_refused(content: bytes, load: Load) -> None:
    with pytest.raises(UntestableError, match=r"not a wheel|wants"):
        load(content)


def test_a_cut_archive_is_refused_at_every_length(wheels: Any, load: Load) -> None:
    content = wheels.make()
    for length in range(0, len(content), 97):
        with pytest.raises(UntestableError):
            load(content[:length])


def test_flipped_bytes_never_give_other_files(wheels: Any, load: Load) -> None:
    """Whatever byte is changed: refused, or the true bytes."""
    content = wheels.make()
    given = 0
    for at in range(0, len(content), 7):
        changed = content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :]
        try:
            tree = load(changed)
            name = tree.find("sched/scheduler.py")
            got = tree.read(name[0]) if name else None
        except UntestableError:
            continue
        assert got in {None, wheels.FILES[SCHEDULER]}, at
        given += got is not None
    assert given


def test_a_file_that_is_not_what_record_says_is_refused(wheels: Any, load: Load) -> None:
    def forged(rows: list[list[str]]) -> list[list[str]]:
        other = next(row for row in rows if row[0] != SCHEDULER)
        return [[row[0], other[1], row[2]] if row[0] == SCHEDULER else row for row in rows]

    tree = load(wheels.make(record=forged))
    with pytest.raises(UntestableError, match="not what RECORD says"):
        tree.read(SCHEDULER)
    with pytest.raises(UntestableError, match="not what RECORD says"):
        tree.fetch([SCHEDULER])


def test_a_file_that_record_leaves_out_is_refused(wheels: Any, load: Load) -> None:
    tree = load(wheels.make(record=lambda rows: [r for r in rows if r[0] != SCHEDULER]))
    with pytest.raises(UntestableError, match="not in its RECORD"):
        tree.read(SCHEDULER)


@pytest.mark.parametrize(
    "row",
    [
        [SCHEDULER, "md5=1B2M2Y8AsgTpgAmY7PhCfg", "0"],
        [SCHEDULER, "sha256=short", "0"],
        [SCHEDULER, "sha256=é", "0"],
        [SCHEDULER, "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", "many"],
        ["one column"],
        ["", "", ""],
        ["vllm/__init__.py", "", ""],
    ],
)
def test_a_record_that_cannot_be_checked_is_refused(
    row: list[str], wheels: Any, load: Load
) -> None:
    with pytest.raises(UntestableError, match="RECORD"):
        load(wheels.make(record=lambda rows: [r for r in rows if r[0] != SCHEDULER] + [row]))


def test_a_record_that_is_a_bomb_is_not_unpacked(wheels: Any, load: Load) -> None:
    long = ["x" * (8 << 20), "", ""]
    with pytest.raises(UntestableError, match="a bomb"):
        load(wheels.make(record=lambda rows: [*rows, long]))


def test_a_wheel_of_another_project_and_one_without_record_are_refused(
    wheels: Any, load: Load
) -> None:
    with pytest.raises(UntestableError, match="not a wheel of vllm: it has 2 lists"):
        load(wheels.make(extra=add("vllm-0.1.dist-info/RECORD")))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(SCHEDULER, b"")
        archive.writestr("other-1.dist-info/RECORD", b"")
    with pytest.raises(UntestableError, match="it has 0 lists"):
        load(out.getvalue())


def test_a_poisoned_cache_entry_of_another_wheel_is_not_taken_over(wheels: Any, load: Load) -> None:
    """Files are held by what RECORD says, so no wheel can plant one for another."""
    evil = {**wheels.FILES, SCHEDULER: b"def schedule(): return 6\n"}
    assert load(wheels.make(evil)).read(SCHEDULER) == evil[SCHEDULER]
    assert load(wheels.make()).read(SCHEDULER) == wheels.FILES[SCHEDULER]
