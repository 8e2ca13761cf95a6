"""Packed, cut, binary and endless input: what is there is read, and what is not is said."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.diagnose.facts import Reading
from specrepro.repro.diagnose.read import read, read_streams
from specrepro.repro.diagnose.reading.literals import literals_of, search_for
from specrepro.repro.diagnose.reading.windows import AHEAD, LONGEST, Counts, hit_lines
from specrepro.repro.errors import UsageError

ERROR = "RuntimeError: CUDA error: an illegal memory access was encountered"
TEXT = "".join(f"line {n}\n" for n in range(1, 1000)) + ERROR + "\nend\n"


def reading(content: bytes, name: str = "a.log") -> Reading:
    return read_streams([(name, io.BytesIO(content))])


def lines_of_errors(found: Reading) -> list[int]:
    return [fact.line for fact in found.of("cuda_error")]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_packing_is_told_by_content_and_lines_keep_their_numbers(pack: object) -> None:
    assert callable(pack)
    found = reading(pack(TEXT.encode()), "no-suffix")
    assert lines_of_errors(found) == [1000]
    assert found.sources[0].lines == 1001
    assert found.sources[0].complete
    assert found.unread == ()


def test_zst_is_read_over_several_frames() -> None:
    zstandard = pytest.importorskip("zstandard")
    half = TEXT.encode()[:4000], TEXT.encode()[4000:]
    packed = b"".join(zstandard.ZstdCompressor().compress(part) for part in half)
    assert lines_of_errors(reading(packed)) == [1000]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_cut_packed_log_is_read_up_to_its_cut_and_called_incomplete(pack: object) -> None:
    assert callable(pack)
    # what cannot be compressed, so that half of the packing is about half of the text
    noise = "".join(f"{os.urandom(20).hex()}\n" for _ in range(2000))
    packed = pack(f"{ERROR}\n{noise}".encode())
    found = reading(packed[: len(packed) * 3 // 4])
    if lines_of_errors(found):
        assert lines_of_errors(found) == [1]
    assert not found.sources[0].complete
    assert found.sources[0].cut
    assert [entry.what for entry in found.unread] == [found.sources[0].cut]


def test_a_damaged_packing_is_said_not_raised() -> None:
    packed = bytearray(gzip.compress(TEXT.encode()))
    packed[30] ^= 0xFF
    assert not reading(bytes(packed)).sources[0].complete
    assert not reading(b"\x28\xb5\x2f\xfd garbage").sources[0].complete


def test_utf_16_of_a_windows_shell_is_read() -> None:
    assert lines_of_errors(reading(TEXT.encode("utf-16"))) == [1000]


def test_windows_line_ends_and_a_missing_last_one() -> None:
    found = reading(f"a\r\nb\r\n{ERROR}".encode())
    assert lines_of_errors(found) == [3]
    assert found.sources[0].lines == 3
    assert found.of("cuda_error")[0].text == ERROR


def test_an_empty_log_is_a_source_without_facts() -> None:
    found = reading(b"")
    assert (found.sources[0].lines, found.facts, found.incidents) == (0, (), ())


def test_a_line_without_end_is_read_at_its_beginning_and_counted() -> None:
    size = 3 * (AHEAD + LONGEST)
    content = f"{ERROR} {'x' * size}\nshort\n{ERROR}\n".encode()
    found = reading(content)
    assert lines_of_errors(found)[0] == 1
    assert found.sources[0].lines == 3
    # equal errors of one process are one fact; the second is its last line
    assert found.of("cuda_error")[0].last_line == 3 or lines_of_errors(found) == [1, 3]
    assert [(entry.count, entry.first_line) for entry in found.unread] == [(1, 1)]


def test_lines_with_binary_content_are_read_and_counted() -> None:
    found = reading(f"a\n{ERROR}\0\xff\n".encode("latin-1"))
    assert lines_of_errors(found) == [2]
    assert [(entry.what, entry.count) for entry in found.unread] == [
        ("lines with binary content", 1)
    ]


def test_what_is_no_file_is_refused_with_a_hint(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.log", Path("/dev/zero"), Path("a\0b")):
        with pytest.raises(UsageError) as refused:
            read([path])
        assert refused.value.hint


def test_a_pipe_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    if os.fork() == 0:
        pipe.write_bytes(TEXT.encode())
        os._exit(0)
    assert lines_of_errors(read([pipe])) == [1000]
    os.wait()


WORDS = st.sampled_from(
    [b"needle", b"need", b"edle", b"x", b"\n", b"\n\n", b"\r\n", b"\xff", b"nee"]
)


@given(st.lists(WORDS, max_size=60), st.integers(1, 9))
def test_both_searches_give_the_lines_that_have_a_literal(words: list[bytes], size: int) -> None:
    content = b"".join(words)
    literals = literals_of(["needle", "dle", "ne\xff"])
    wanted = [
        (number, line.decode("utf-8", "replace").rstrip("\r"))
        for number, line in enumerate(content.split(b"\n"), start=1)
        if b"needle" in line or b"dle" in line
    ]
    for pure in (True, False):

        def pieces() -> Iterator[bytes]:
            return (content[at : at + size] for at in range(0, len(content), size))

        counts = Counts()
        found = [
            (line.number, line.text)
            for line, _ in hit_lines(pieces(), search_for(literals, pure=pure), counts)
        ]
        assert found == wanted
        assert counts.lines == len(content.splitlines()) or b"\r" in content
        assert counts.lines == content.count(b"\n") + (content[-1:] not in (b"", b"\n"))


def test_the_lines_behind_a_hit_are_given_whatever_the_pieces() -> None:
    text = b"hit\nA\nB\n" + b"fill\n" * 100_000 + b"hit\nC\n"
    expected = [(1, ["A", "B", "fill"]), (100_004, ["C"])]
    for size in (7, 4096, AHEAD, 1 << 22):
        pieces = (text[at : at + size] for at in range(0, len(text), size))
        found = []
        for line, following in hit_lines(pieces, search_for((b"hit",)), Counts()):
            behind = following()
            found.append(
                (line.number, [other.text for other, _ in zip(behind, range(3), strict=False)])
            )
        assert found == expected
