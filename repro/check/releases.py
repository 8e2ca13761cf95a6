"""The files an index has of a project, and which of them stands for a version. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import UntestableError, UsageError
from ..escape import printable, quoted

if TYPE_CHECKING:
    from packaging.version import Version

PLATFORM = "x86_64"


@dataclass(frozen=True, slots=True)
class ReleaseFile:
    """A wheel or sdist. `url` may be a local path; `size` in bytes; `yanked` is the reason."""

    name: str
    url: str
    size: int | None
    sha256: str | None
    yanked: str | None


@dataclass(frozen=True, slots=True)
class Label:
    """What a file name says. `build` is a wheel's build tag, `platforms` is empty for an sdist."""

    project: str
    version: Version
    build: tuple[int, str] | tuple[()]
    platforms: tuple[str, ...]

    @property
    def sdist(self) -> bool:
        return not self.platforms


@functools.lru_cache(maxsize=4096)
def label(name: str) -> Label | None:
    """What the name of a wheel or sdist says, None if it is the name of neither."""
    from packaging.utils import (
        InvalidSdistFilename,
        InvalidWheelFilename,
        parse_sdist_filename,
        parse_wheel_filename,
    )
    from packaging.version import InvalidVersion

    try:
        if name.endswith(".whl"):
            project, version, build, tags = parse_wheel_filename(name)
            platforms = tuple(sorted({tag.platform for tag in tags}))
            return Label(project, version, build, platforms)
        if name.endswith(".tar.gz"):
            project, version = parse_sdist_filename(name)
            return Label(project, version, (), ())
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None
    return None


def labelled(files: Iterable[ReleaseFile], project: str) -> list[tuple[Label, ReleaseFile]]:
    """The files that are wheels or sdists of `project`."""
    from packaging.utils import canonicalize_name

    wanted = canonicalize_name(project)
    pairs = [(label(file.name), file) for file in files]
    return [(mark, file) for mark, file in pairs if mark and mark.project == wanted]


def releases(
    files: Iterable[ReleaseFile], project: str, *, prereleases: bool, yanked: bool
) -> list[Version]:
    """The versions that have a file, ascending."""
    return sorted(
        {
            mark.version
            for mark, file in labelled(files, project)
            if (yanked or file.yanked is None) and (prereleases or not mark.version.is_prerelease)
        }
    )


def pick(
    files: Sequence[ReleaseFile],
    project: str,
    wanted: str,
    *,
    platform: str = PLATFORM,
    yanked: bool = False,
) -> ReleaseFile:
    """The file that stands for `wanted`, a version, a version with a build tag, or a file name.

    Of wheels one for Linux on `platform`, else any (their Python files are the same), and of these
    the highest build tag, which is what pip takes; an sdist if there is no wheel.
    Errors: UsageError for a version that is not there, UntestableError for one that is yanked.
    """
    known = labelled(files, project)
    named = [(mark, file) for mark, file in known if file.name == wanted]
    found = named or _of_version(known, wanted)
    if not found:
        have = releases(files, project, prereleases=True, yanked=True)
        raise UsageError(
            f"{project} {printable(wanted)} is not in the index",
            hint=neighbours(wanted, have) or f"the index has no file of {project}",
        )
    allowed = [(mark, file) for mark, file in found if yanked or file.yanked is None]
    if not allowed:
        reason = found[0][1].yanked
        raise UntestableError(
            f"{project} {printable(wanted)} was yanked"
            + (f": {quoted(reason)}" if reason else " without a reason"),
            hint="--yanked looks at it all the same",
        )
    return max(allowed, key=lambda pair: _preference(pair[0], pair[1], platform))[1]


def _of_version(
    known: Sequence[tuple[Label, ReleaseFile]], wanted: str
) -> list[tuple[Label, ReleaseFile]]:
    from packaging.version import InvalidVersion, Version

    def version(text: str) -> Version | None:
        try:
            return Version(text)
        except InvalidVersion:
            return None

    if found := [(mark, file) for mark, file in known if mark.version == version(wanted)]:
        return found
    # `0.20.1-1` is also how PEP 440 lets one write 0.20.1.post1, so a build tag comes second
    tagged = re.fullmatch(r"(.+)-(\d{1,9})([A-Za-z0-9_.]*)", wanted)
    if not tagged:
        return []
    base, build = version(tagged[1]), (int(tagged[2]), tagged[3])
    return [(mark, file) for mark, file in known if mark.version == base and mark.build == build]


def _preference(mark: Label, file: ReleaseFile, platform: str) -> tuple[object, ...]:
    linux = any("linux" in tag for tag in mark.platforms)
    fits = "any" in mark.platforms or any(
        "linux" in tag and tag.endswith(f"_{platform}") for tag in mark.platforms
    )
    return (not mark.sdist, fits, linux, mark.build or (0, ""), file.name)


def neighbours(wanted: str, have: Sequence[Version]) -> str | None:
    """The hint for a version that is not there: the nearest below and above, None without any."""
    from packaging.version import InvalidVersion, Version

    if not have:
        return None
    try:
        version = Version(wanted)
    except InvalidVersion:
        return f"the newest is {have[-1]}"
    below = [v for v in have if v < version][-2:]
    above = [v for v in have if v > version][:2]
    return "the nearest are " + ", ".join(str(v) for v in (*below, *above))
