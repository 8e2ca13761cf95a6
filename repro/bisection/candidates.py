"""The line of builds that is searched, oldest first, and what is known of it beforehand. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..check.releases import PLATFORM, ReleaseFile, neighbours, pick, releases
from ..errors import UntestableError, UsageError
from ..escape import quoted
from .commit_index import CommitWheel
from .question import Find
from .repository import Commit

if TYPE_CHECKING:
    from packaging.version import Version


@dataclass(frozen=True, slots=True)
class Candidate:
    """A build that can be tried. build: its name, and the word that opens it where `opens` is "".

    note: what a person reads beside it; of a commit its subject.
    """

    build: str
    opens: str = ""
    note: str = ""

    @property
    def word(self) -> str:
        """What opens it."""
        return self.opens or self.build


@dataclass(frozen=True, slots=True)
class Line:
    """Candidates, oldest first, each build once. unavailable: build → why it cannot be had, known
    without trying it. left_out: what was no candidate, in words, for the report."""

    candidates: tuple[Candidate, ...]
    unavailable: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @property
    def builds(self) -> tuple[str, ...]:
        return tuple(candidate.build for candidate in self.candidates)


@dataclass(frozen=True, slots=True)
class Wish:
    """Which releases a person wants searched. within: a range such as `0.11.0..0.33.0`, or a list
    with commas; "" for all. oldest, newest: the ends by name, None where they are not given."""

    within: str = ""
    oldest: str | None = None
    newest: str | None = None
    prereleases: bool = False
    yanked: bool = False
    full_download: bool = False
    platform: str = PLATFORM


def direction(good: str | None, bad: str | None, asked: Find | None, *, scan: bool = False) -> Find:
    """What is sought, by the order of the ends. UsageError where it is not what was asked for, and
    for a fix without a build that is known to be bad, which a scan of every build does not need."""
    if good is not None and bad is not None:
        older, newer = version(good), version(bad)
        if older == newer:
            raise UsageError(f"{quoted(good)} cannot be both good and bad")
        found = Find.FIRST_BAD if older < newer else Find.FIRST_GOOD
        if asked not in {None, found}:
            what = "older" if found is Find.FIRST_BAD else "newer"
            raise UsageError(
                f"the good end {quoted(good)} is the {what} one: between these ends lies "
                + ("a regression" if found is Find.FIRST_BAD else "a fix"),
                hint="leave --find out, or change the ends",
            )
        return found
    if asked is Find.FIRST_GOOD and bad is None and not scan:
        raise UsageError(
            "a search for a fix begins at a build that is bad", hint="--bad VERSION names it"
        )
    return asked or Find.FIRST_BAD


def release_line(files: Sequence[ReleaseFile], project: str, wish: Wish) -> Line:
    """The releases of `wish.within` from the oldest to the newest that is wished, both included.

    UsageError for an end or a range that is no release, and for a line without two builds.
    """
    every = releases(files, project, prereleases=True, yanked=True)
    low = _known(wish.oldest, every) if wish.oldest is not None else None
    high = _known(wish.newest, every) if wish.newest is not None else None
    open_ = set(releases(files, project, prereleases=wish.prereleases, yanked=wish.yanked))
    inside = [v for v in every if v in open_ and _within(v, wish.within, every)]
    inside += [end for end in (low, high) if end is not None]
    inside = [v for v in inside if (low is None or v >= low) and (high is None or v <= high)]
    line = sorted(set(inside))
    if len(line) < 2:
        raise UsageError(
            f"a search needs two releases of {project}; here is "
            + (f"only {line[0]}" if line else "none")
        )
    unavailable = {}
    for release in map(str, line):
        if why := _missing(files, project, release, wish):
            unavailable[release] = why
    between = [v for v in every if line[0] < v < line[-1] and v not in set(line)]
    pre = [v for v in between if v.is_prerelease]
    left_out = []
    if pre and not wish.prereleases:
        left_out.append(f"{len(pre)} pre-releases (--pre takes them in)")
    gone = set(between) - set(releases(files, project, prereleases=True, yanked=False))
    if gone and not wish.yanked:
        left_out.append(f"{len(gone)} yanked releases (--yanked takes them in)")
    return Line(tuple(Candidate(str(v)) for v in line), unavailable, tuple(left_out))


def version(text: str) -> Version:
    """A version as a person wrote it; UsageError for what is none."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(text)
    except InvalidVersion as error:
        raise UsageError(
            f"{quoted(text)} is no version; the ends of a search are releases",
            hint="as in --good 0.19.1 --bad 0.28.0",
        ) from error


def _known(text: str, have: Sequence[Version]) -> Version:
    wanted = version(text)
    found = next((one for one in have if one == wanted), None)
    if found is None:
        raise UsageError(f"{quoted(text)} is no release in the index", hint=neighbours(text, have))
    return found


def _within(one: Version, text: str, have: Sequence[Version]) -> bool:
    if not text:
        return True
    for entry in text.split(","):
        low, dots, high = (part.strip() for part in entry.partition(".."))
        if not dots:
            if one == _known(low, have):
                return True
        elif (not low or one >= _bound(low)) and (not high or one <= _bound(high)):
            return True
    return False


def _bound(text: str) -> Version:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(text)
    except InvalidVersion as error:
        raise UsageError(
            f"{quoted(text)} is not an end of a range of versions", hint="as in 0.11.0..0.33.0"
        ) from error


def _missing(files: Sequence[ReleaseFile], project: str, release: str, wish: Wish) -> str:
    """Why a release cannot be had, as the index alone tells; "" if it can."""
    try:
        file = pick(files, project, release, platform=wish.platform, yanked=True)
    except UntestableError as error:
        return str(error)
    if wish.full_download or file.name.endswith(".whl"):
        return ""
    return "no wheel, only an sdist, which is read whole: --allow-full-download takes it"


def commit_line(commits: Sequence[Commit], wheels: Mapping[str, CommitWheel] | None) -> Line:
    """A line of commits. wheels: what the index of commits has, by hash; None where commits are
    read from the clone."""
    candidates, unavailable = [], {}
    for commit in commits:
        wheel = wheels[commit.sha] if wheels is not None else CommitWheel("")
        if wheel.url is None:
            unavailable[commit.sha] = wheel.reason
        candidates.append(Candidate(commit.sha, wheel.url or "", commit.subject))
    return Line(tuple(candidates), unavailable)
