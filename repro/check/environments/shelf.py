"""The folder of environments: what stands there, who holds it, and how it is taken away.

<root>/<name>/environment.json   the marker, written last; then venv/, pylock.toml, install.log
<root>/.making-<name>-<hex>/     one that is being made; without its lock held, a half-made one
<root>/.removing-<name>-<hex>/   one that is being removed
<root>/locks/<name>.lock         shared by those who use it, exclusive for making and removing
<root>/uv/                       uv's cache: its files are hard links of those in environments
<root>/logs/<name>.log           what uv said when one could not be made
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from ...errors import NoEnvironmentError, UsageError
from ...escape import printable, quoted
from .environment import Environment, Package
from .hold import Hold

SCHEMA = "specrepro/environment@1"
MARKER = "environment.json"
USED = "used"
LOCK_FILE = "pylock.toml"
NAME = re.compile(r"vllm(?:-cpu)?-[0-9A-Za-z.+!]{1,80}-[0-9a-f]{8}")
PASSING = re.compile(r"\.(?:making|removing)-(" + NAME.pattern + r")-[0-9a-f]{6}")
CACHE_MARKER = ".specrepro"
LONGEST_MARKER = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Kept:
    """An environment that stands in the folder. `used`: seconds since the epoch."""

    name: str
    path: Path
    environment: Environment
    asked: str
    python_version: str
    made: str
    used: float


@dataclass(frozen=True, slots=True)
class Standing:
    """An environment as a list shows it. `size`: bytes of its files, each inode once; most of them
    are shared with uv's cache and other environments.
    """

    kept: Kept
    in_use: bool
    size: int


class Shelf:
    """The environments below `root`, which is made when something is put there."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def hold(self, name: str) -> Hold:
        """The lock of an environment, not yet taken. NoEnvironmentError (infra) if it can't be."""
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            return Hold(self.root / "locks" / f"{name}.lock")
        except OSError as error:
            raise unwritable(self.root, error) from error

    @property
    def cache(self) -> Path:
        """uv's cache, on the file system of the environments."""
        return self.root / "uv"

    def own_cache(self) -> bool:
        """Whether uv's cache is there and was made by us."""
        return (self.cache / CACHE_MARKER).is_file() and not self.cache.is_symlink()

    def make_cache(self) -> None:
        """Make uv's cache. NoEnvironmentError (infra) where another folder has its name."""
        try:
            self.cache.mkdir(parents=True, exist_ok=True)
            if not self.own_cache():
                if any(self.cache.iterdir()):
                    raise NoEnvironmentError(
                        "this folder is not ours, and uv's cache is to be there",
                        infra=True,
                        where=printable(str(self.cache)),
                    )
                (self.cache / CACHE_MARKER).touch()
        except OSError as error:
            raise unwritable(self.root, error) from error

    def find(self, name: str) -> Kept | None:
        """The environment of this name; None if it is not there, or not whole."""
        path = self.root / name
        if not NAME.fullmatch(name) or path.is_symlink():
            return None
        try:
            with (path / MARKER).open("rb") as file:
                record = json.loads(file.read(LONGEST_MARKER))
            used = (path / USED).stat().st_mtime
        except (OSError, ValueError, RecursionError):
            return None
        try:
            return _kept(path, record, used) if record["name"] == name else None
        except (KeyError, TypeError, AttributeError):
            return None

    def kept(self) -> list[Kept]:
        """All environments, the one used last first."""
        names = [entry.name for entry in self._entries() if NAME.fullmatch(entry.name)]
        found = [one for name in names if (one := self.find(name))]
        return sorted(found, key=lambda one: one.used, reverse=True)

    def standing(self) -> list[Standing]:
        """All environments with what a person wants to know of them, the one used last first."""
        shown = []
        for kept in self.kept():
            with self._alone(kept.name) as alone:
                shown.append(Standing(kept, not alone, usage([kept.path])))
        return shown

    def usage(self) -> int:
        """Bytes of everything below the root, uv's cache with it, a shared file counted once."""
        return usage([self.root])

    def called(self, word: str) -> Kept:
        """The environment whose name is, or alone begins with, `word`; else UsageError."""
        kept = self.kept()
        matches = [one for one in kept if one.name == word] or [
            one for one in kept if word and one.name.startswith(word)
        ]
        if len(matches) == 1:
            return matches[0]
        what = "several environments begin" if matches else "no environment begins"
        raise UsageError(f"{what} with {quoted(word)}", hint="specrepro environments list")

    def making(self, name: str) -> Path:
        """A new folder to make an environment in; its lock must be held."""
        path = self.root / f".making-{name}-{secrets.token_hex(3)}"
        try:
            path.mkdir(mode=0o700)
        except OSError as error:
            raise unwritable(self.root, error) from error
        return path

    def place(self, making: Path, name: str, record: Mapping[str, Any]) -> Kept:
        """Put a whole environment in its place; what was there under this name goes."""
        try:
            if (self.root / name).exists():
                self._take_away(self.root / name, name)
            (making / USED).touch()
            text = json.dumps({"schema": SCHEMA, "name": name, **record}, indent=1)
            (making / MARKER).write_text(text, encoding="utf-8")
            making.rename(self.root / name)
        except OSError as error:
            raise unwritable(self.root, error) from error
        if kept := self.find(name):
            return kept
        raise NoEnvironmentError(
            "the environment was made and is not there", infra=True, where=str(self.root / name)
        )

    def touch(self, kept: Kept) -> None:
        """Note that it is used now. A folder that cannot be written to does not matter here."""
        with contextlib.suppress(OSError):
            os.utime(kept.path / USED)

    def remove(self, kept: Kept) -> bool:
        """Remove an environment; False if somebody holds it."""
        with self._alone(kept.name) as alone:
            if alone and self.find(kept.name):
                self._take_away(kept.path, kept.name)
            return alone

    def sweep(self) -> int:
        """Remove what a process that was ended left half-made or half-removed; how many."""
        count = 0
        for entry in self._entries():
            match = PASSING.fullmatch(entry.name)
            if not match or entry.is_symlink():
                continue
            with self._alone(match[1]) as alone:
                if alone:
                    shutil.rmtree(entry, ignore_errors=True)
                    count += 1
        return count

    @contextlib.contextmanager
    def _alone(self, name: str) -> Iterator[bool]:
        hold = self.hold(name)
        try:
            yield hold.take(exclusive=True)
        finally:
            hold.close()

    def _take_away(self, path: Path, name: str) -> None:
        """Remove a folder of ours. It is renamed first, so that half of it is never found whole."""
        inside = path.parent == self.root and NAME.fullmatch(path.name) and not path.is_symlink()
        if not inside or path.name != name:
            raise UsageError(f"{quoted(str(path))} is no environment of ours and stays")
        going = self.root / f".removing-{name}-{secrets.token_hex(3)}"
        path.rename(going)
        shutil.rmtree(going)

    def _entries(self) -> list[Path]:
        try:
            return sorted(self.root.iterdir())
        except OSError:
            return []


def default_root() -> Path:
    """Where the user's caches are."""
    import platformdirs

    return platformdirs.user_cache_path("specrepro") / "environments"


def unwritable(root: Path, error: OSError) -> NoEnvironmentError:
    """The error for a folder of environments that cannot be written to."""
    return NoEnvironmentError(
        f"cannot keep environments there: {error.strerror or error}",
        infra=True,
        where=printable(str(root)),
        hint="XDG_CACHE_HOME moves the cache folder",
    )


def usage(paths: Iterable[Path]) -> int:
    """Bytes (lengths) of all files below `paths`, each inode once; links are not followed."""
    seen: set[tuple[int, int]] = set()
    total = 0
    queue = [os.fspath(path) for path in paths]
    while queue:
        try:
            with os.scandir(queue.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        queue.append(entry.path)
                        continue
                    about = entry.stat(follow_symlinks=False)
                    if (about.st_dev, about.st_ino) not in seen:
                        seen.add((about.st_dev, about.st_ino))
                        total += about.st_size
        except OSError:
            continue  # it went away meanwhile
    return total


def _kept(path: Path, record: Mapping[str, Any], used: float) -> Kept | None:
    commit = record["commit"]
    package = record["package"]
    if record["schema"] != SCHEMA or package not in get_args(Package):
        return None
    environment = Environment(
        python=path / "venv" / "bin" / "python",
        version=str(record["version"]),
        commit=None if commit is None else str(commit),
        package=package,
        origin="made",
        folder=path,
        notes=tuple(str(note) for note in record["notes"]),
    )
    return Kept(
        path.name,
        path,
        environment,
        str(record["asked"]),
        str(record["python"]),
        str(record["made"]),
        used,
    )
