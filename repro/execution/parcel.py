"""What comes back from a node: a directory as plain bytes with their sums."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import LaneError
from .laying_out import plain

LIMIT = 64 << 20  # bytes of the files of one task that come home
MOST_FILES = 10_000


@dataclass(frozen=True, slots=True)
class Packed:
    """A directory. files: name -> (bytes, sha256). folders: those in it. left: name -> bytes of
    what is too large to come."""

    files: Mapping[str, tuple[bytes, str]]
    folders: tuple[str, ...]
    left: Mapping[str, int]


def pack(directory: Path, limit: int = LIMIT) -> Packed:
    """Read a directory, the small files first, as far as `limit` bytes. Links and what is no plain
    file are not followed and not taken."""
    sizes: dict[str, int] = {}
    folders: list[str] = []
    for path, below, names in os.walk(directory):
        folders += [Path(path, name).relative_to(directory).as_posix() for name in below]
        for name in names:
            file = Path(path, name)
            if file.is_file() and not file.is_symlink():
                sizes[file.relative_to(directory).as_posix()] = file.stat().st_size
    files: dict[str, tuple[bytes, str]] = {}
    left: dict[str, int] = {}
    room = limit
    for name, size in sorted(sizes.items(), key=lambda pair: (pair[1], pair[0])):
        if size > room or len(files) >= MOST_FILES:
            left[name] = size
            continue
        content = (directory / name).read_bytes()
        files[name] = content, hashlib.sha256(content).hexdigest()
        room -= len(content)
    return Packed(files, tuple(sorted(folders)), left)


def unpack(packed: Packed, directory: Path) -> None:
    """Write what `pack` read, in one step: the directory is there whole, or as it was before.

    LaneError where a file is not as it was sent, or a name leads out of the directory.
    """
    beside = directory.with_name(f".{directory.name}.{os.urandom(3).hex()}")
    try:
        beside.mkdir(parents=True)
        for folder in packed.folders:
            (beside / plain(folder)).mkdir(parents=True, exist_ok=True)
        for name, (content, digest) in packed.files.items():
            if hashlib.sha256(content).hexdigest() != digest:
                raise LaneError(f"{name} is not as it was sent")
            target = beside / plain(name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        if directory.exists():
            shutil.rmtree(directory)
        beside.rename(directory)
    except ValueError as error:
        raise LaneError(f"a result holds what is no file of it: {error}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def packed_from(said: Mapping[str, Any]) -> Packed:
    """What a node sent; LaneError where it is no such thing."""
    try:
        files = {str(k): (bytes(content), str(sha)) for k, (content, sha) in said["files"].items()}
        folders = tuple(str(name) for name in said["folders"])
        return Packed(files, folders, {str(k): int(v) for k, v in said["left"].items()})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise LaneError(f"a result cannot be read: {error!r}") from error
