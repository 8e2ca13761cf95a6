"""The door to builds: what one is, how its files are read, and where one comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

# Takes one line, for a person, about what takes long.
Told = Callable[[str], None]


def silent(line: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class Build:
    """What was looked at.

    `version` as the build itself says it; `file` the archive's name or the folder; `sha256` of the
    archive in hex, None for a folder and where the index gives none; `commit` the source commit,
    hex without a leading `g`, where the build tells it; `origin` is one of `index`, `url`,
    `wheel`, `sdist`, `tree`, `checkout`, `installed`.
    """

    version: str
    file: str | None
    sha256: str | None
    commit: str | None
    origin: str


class Tree(Protocol):
    """The files of one build. Names are posix paths such as `vllm/v1/core/sched/scheduler.py`.

    Errors of all methods: UntestableError where a file cannot be had or is not what the build
    says it is; KeyError for a name that is not a member.
    """

    @property
    def build(self) -> Build:
        """What this is; may read the file that tells the commit."""

    def names(self) -> Sequence[str]:
        """All members, sorted."""

    def find(self, suffix: str) -> list[str]:
        """Members that are `suffix` or end in it, by whole path components; sorted."""

    def fetch(self, names: Iterable[str]) -> None:
        """Read ahead, in as few requests as sensible; names that are no members are ignored.

        Call it once with all that is wanted before the first `read`.
        """

    def read(self, name: str) -> bytes:
        """The verified bytes of a member."""

    def notes(self) -> Sequence[str]:
        """What a reader must know of what was read so far, e.g. files edited after installing."""

    def close(self) -> None:
        """Let files and connections go. `read` still gives what was fetched."""


def open_build(
    spec: str,
    *,
    project: str = "vllm",
    cache: Path | None = None,
    offline: bool = False,
    allow_full_download: bool = False,
    yanked: bool = False,
    told: Told = silent,
) -> Tree:
    """The build that `spec` names. For many builds use `Builds`, which keeps connections open.

    `spec`: a version (`0.28.0`; with a build tag, `0.20.1-1`); a file name of the index;
    `installed`, in the environment of this interpreter; a path of a wheel, sdist, unpacked tree
    or checkout; the URL of a wheel; `VERSION@URL` or `URL/`, an index of its own.
    `cache` is a folder, the user's cache by default. Errors: UsageError, UntestableError.
    """
    from .builds import Builds

    builds = Builds(
        project=project,
        cache=cache,
        offline=offline,
        allow_full_download=allow_full_download,
        told=told,
    )
    return builds.open(spec, yanked=yanked)


def versions(
    spec: str,
    *,
    project: str = "vllm",
    cache: Path | None = None,
    offline: bool = False,
    prereleases: bool = False,
    yanked: bool = False,
    told: Told = silent,
) -> list[str]:
    """Each build that `spec` names, fit for `open_build`, in the order of `spec`.

    `spec` is a list with commas of what `open_build` takes and of ranges, `0.11.0..0.33.0`: all
    releases of the index between two versions, ends included, ascending; an end may be left out.
    Errors: UsageError for an unknown version (the nearest are shown) and an empty range.
    """
    from .builds import Builds

    builds = Builds(project=project, cache=cache, offline=offline, told=told)
    with builds:
        return builds.versions(spec, prereleases=prereleases, yanked=yanked)
