"""From two releases to the commits between them: which are searched, and what is said of the rest.

Releases of vLLM are cut on branches, with commits picked from the main line. The line to a release
begins where the older one's branch parted from it and goes along the main line, then along its own
branch. What the older release's branch has of its own is on no line between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .candidates import Candidate, Line, commit_line
from .commit_index import CommitIndex
from .repository import Commit, Repository

# Of a list of paths those that a verdict rests on.
Relevant = Callable[[Sequence[str]], Sequence[str]]


@dataclass(frozen=True, slots=True)
class End:
    """A release at an end: its version, and the commit its wheel says, maybe cut short."""

    version: str
    commit: str | None

    @property
    def names(self) -> tuple[str, ...]:
        """What it may be called in a clone, the surest first."""
        return (*([self.commit] if self.commit else []), f"v{self.version}")


def between(
    repository: Repository,
    old: End,
    new: End,
    *,
    index: CommitIndex | None = None,
    relevant: Relevant | None = None,
) -> Line:
    """The commits that may be the boundary between two releases, oldest first, the ends included.

    The first candidate is where the lines of the two parted, the last is the newer release.
    index: where wheels of commits are; None: commits are read from the clone. relevant: tells on
    which paths a verdict rests; a commit that changes none of them has its parent's verdict and is
    no candidate. None: every commit is one.
    Errors: UntestableError where the clone lacks something or the index does not answer.
    """
    first, last = repository.commit(*old.names), repository.commit(*new.names)
    root = repository.forked(first, last)
    every = repository.between(root, last)
    kept = every
    if relevant is not None:
        kept = [commit for commit in every if relevant(commit.paths) or commit.sha == last]
    start = Commit(root, 0, "" if root == first else f"where {old.version} branched off", ())
    wheels = None
    if index is not None:
        wheels = index.wheels([start.sha, *(commit.sha for commit in kept)])
    line = commit_line([start, *kept], wheels)
    said = [f"of {len(every)} commits {len(every) - len(kept)} change no file that is looked at"]
    if root != first:
        own = repository.between(root, first)
        said.append(f"{len(own)} commits of the branch of {old.version} are on another line")
    return replace(line, left_out=tuple(said))


def named(line: Line, build: str) -> Candidate | None:
    """The candidate of a build, None if it is none."""
    return next((candidate for candidate in line.candidates if candidate.build == build), None)
