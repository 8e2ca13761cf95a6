"""What an archive may hold before a file of it is read: names, kinds, sizes. Pure.

An archive comes from a stranger. Nothing of it is ever written under the name it gives, but a
name that means different files to different readers would make the answer one about another file.
"""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Iterable

from ..errors import UntestableError
from ..escape import quoted

MOST_MEMBERS = 200_000
LARGEST_FILE = 16 << 20  # bytes of one file that is read; vLLM's largest Python file has 0.4 MB
# Deflate reaches 1,032 on zeros; source code 3 to 10.
LARGEST_RATIO = 200
ALWAYS_FINE = 1 << 20  # bytes to which the ratio does not matter


def check_name(name: str) -> None:
    """UntestableError for a name that is not a plain relative posix path."""
    parts = name.split("/")
    if (
        not name
        or any(part in {"", ".", ".."} for part in parts)
        or any(c in name for c in "\\\0\r\n")
        or (len(parts[0]) == 2 and parts[0][1] == ":")
    ):
        raise UntestableError(f"the archive names a file {quoted(name)}, which is no plain path")


def check_names(names: Iterable[str]) -> None:
    """UntestableError for a bad name, a double one, and a file that is also a folder."""
    seen: set[str] = set()
    folders: set[str] = set()
    for name in names:
        check_name(name)
        if name in seen:
            raise UntestableError(f"the archive has {quoted(name)} twice")
        seen.add(name)
        if len(seen) > MOST_MEMBERS:
            raise UntestableError(f"the archive has more than {MOST_MEMBERS} members")
        folder = name.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    if both := sorted(seen & folders):
        raise UntestableError(f"the archive has {quoted(both[0])} both as a file and as a folder")


def members(infos: list[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    """The files of a zip by name. UntestableError for what no wheel has."""
    files: dict[str, zipfile.ZipInfo] = {}
    names = []
    for info in infos:
        # zipfile cuts names at NUL
        name = info.orig_filename
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
            raise UntestableError(f"the archive has {quoted(name)}, which is no regular file")
        if info.flag_bits & 0x1:
            raise UntestableError(f"the archive has {quoted(name)} encrypted")
        if name.endswith("/"):
            check_name(name[:-1])
            continue
        names.append(name)
        files[name] = info
    check_names(names)
    return files


def check_size(info: zipfile.ZipInfo) -> None:
    """UntestableError for a member too large, or packed in a way that only a bomb is."""
    name = quoted(info.filename)
    if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise UntestableError(f"{name} is packed with method {info.compress_type}")
    if info.file_size > LARGEST_FILE or info.compress_size > LARGEST_FILE:
        raise UntestableError(f"{name} has {info.file_size} bytes, of {LARGEST_FILE} that are read")
    if info.file_size > ALWAYS_FINE and info.file_size > LARGEST_RATIO * info.compress_size:
        raise UntestableError(
            f"{name} unpacks {info.compress_size} bytes to {info.file_size}: a bomb"
        )


def extract(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The bytes of a member, their number and crc checked. UntestableError if they are wrong."""
    check_size(info)
    name = quoted(info.filename)
    try:
        with archive.open(info) as member:
            # asking for a number bounds what is unpacked, whatever the member says of itself
            content = member.read(info.file_size)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise UntestableError(f"{name} of the archive cannot be read: {error}") from error
    if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
        raise UntestableError(f"{name} of the archive is damaged: its crc is another")
    return content
