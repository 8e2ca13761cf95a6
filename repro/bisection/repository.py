"""A local clone of the engine: where releases branched off, the commits between, their files.

The clone may be a stranger's: only commands of git that read objects are run, with names that were
looked at. Nothing is fetched and nothing is checked out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..check.archive import LARGEST_FILE
from ..check.checkout import git
from ..check.tree import Build
from ..check.wheel_tree import suffixed
from ..errors import UntestableError, UsageError
from ..escape import quoted

NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z._/+-]{0,199}")
SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# What the main line may be called, the first that is there.
MAIN = ("origin/main", "main", "origin/master", "master")
MOST_COMMITS = 20_000


@dataclass(frozen=True, slots=True)
class Commit:
    """sha: full, hex. date: of the committer, seconds since 1970. paths: of the files it changed
    against its first parent. subject: first line of its message, as it was written."""

    sha: str
    date: int
    subject: str
    paths: tuple[str, ...]


class Repository:
    """A clone at `root`. UsageError if it is none, or holds part of the history only."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shallow = git(root, "rev-parse", "--is-shallow-repository")
        if shallow is None:
            raise UsageError(
                f"{quoted(str(root))} is no clone that git can read",
                hint="--repo names a clone of the engine's repository",
            )
        if shallow.strip() == b"true":
            raise UsageError(
                f"{quoted(str(root))} is a shallow clone: it does not hold the commits between",
                hint="git fetch --unshallow completes it",
            )
        self.main = next((sha for name in MAIN if (sha := self._find(name))), None)

    def commit(self, *names: str) -> str:
        """The full hash of the first of `names` (a tag, a hash or its beginning) that is there.

        UntestableError if none is.
        """
        for name in names:
            if sha := self._find(name):
                return sha
        raise UntestableError(
            f"{quoted(str(self.root))} does not hold {' or '.join(map(quoted, names))}",
            hint="git fetch --tags brings the clone up to date",
        )

    def forked(self, one: str, other: str) -> str:
        """The last commit that both hold: where their lines parted, or one of the two."""
        base = _line(git(self.root, "merge-base", one, other))
        if base is None:
            raise UntestableError(
                f"commits {one[:12]} and {other[:12]} have no history in common",
                hint="git fetch --tags brings the clone up to date",
            )
        return base

    def on_main(self, sha: str) -> bool | None:
        """Whether a commit lies on the main line, not on a branch only; None: there is no main."""
        if self.main is None:
            return None
        return git(self.root, "merge-base", "--is-ancestor", sha, self.main) is not None

    def between(self, old: str, new: str) -> list[Commit]:
        """The commits after `old` up to `new`, by first parents, oldest first."""
        listed = git(
            self.root, "rev-list", "--first-parent", "--reverse", f"--max-count={MOST_COMMITS + 1}",
            "--no-commit-header", "--format=%H%x00%ct%x00%s%x00", f"{old}..{new}",
        )  # fmt: skip
        if listed is None:
            raise UntestableError(f"the commits from {old[:12]} to {new[:12]} cannot be listed")
        parts = listed.decode("utf-8", errors="replace").split("\0")
        rows = list(zip(*(iter(parts[: len(parts) // 3 * 3]),) * 3, strict=True))
        if len(rows) > MOST_COMMITS:
            raise UntestableError(f"more than {MOST_COMMITS} commits lie between the two")
        shas = [sha.strip() for sha, _, _ in rows]
        changed = self._changed(shas)
        return [
            Commit(sha, int(date), subject, changed.get(sha, ()))
            for sha, (_, date, subject) in zip(shas, rows, strict=True)
        ]

    def tree(self, sha: str, project: str) -> CommitTree:
        """The files of a commit. UntestableError where the clone does not hold them."""
        return CommitTree(self.root, sha, project)

    def _changed(self, shas: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        output = git(
            self.root, "diff-tree", "--stdin", "-r", "-z", "--name-only", "--no-renames", "--root",
            "--diff-merges=first-parent", "--no-ext-diff",
            given="".join(f"{sha}\n" for sha in shas).encode(),
        )  # fmt: skip
        if output is None:
            raise UntestableError("what the commits change cannot be read from the clone")
        known, found, at = set(shas), dict[str, list[str]](), ""
        for part in output.decode("utf-8", errors="surrogateescape").split("\0"):
            if part in known:
                at = part
                found[at] = []
            elif part and at:
                found[at].append(part)
        return {sha: tuple(paths) for sha, paths in found.items()}

    def _find(self, name: str) -> str | None:
        if not NAME.fullmatch(name) or ".." in name:
            return None
        shown = git(self.root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        sha = _line(shown)
        return sha if sha and SHA.fullmatch(sha) else None


class CommitTree:
    """The files of one commit below the package's folder, read from git's objects. A `Tree`."""

    def __init__(self, root: Path, sha: str, project: str) -> None:
        listing = git(root, "ls-tree", "-r", "-z", "-l", "--full-tree", sha, "--", f"{project}/")
        if not listing:
            raise UntestableError(
                f"commit {sha[:12]} has no folder {project} in {quoted(str(root))}",
                hint="a partial clone lacks files: git fetch --refetch --no-filter completes it",
            )
        self._root = root
        self._blobs: dict[str, str] = {}
        for line in listing.decode("utf-8", errors="surrogateescape").split("\0"):
            facts, _, path = line.partition("\t")
            mode, _, blob, size = (*facts.split(), "", "", "", "")[:4]
            # no links, no submodules, and nothing that no probe could want to read
            small = size.isdigit() and int(size) <= LARGEST_FILE
            if mode.startswith("100") and small and path.isprintable():
                self._blobs[path] = blob
        self._read: dict[str, bytes] = {}
        self._build = Build(sha[:12], None, None, sha, "checkout")

    @property
    def build(self) -> Build:
        return self._build

    def names(self) -> Sequence[str]:
        return sorted(self._blobs)

    def find(self, suffix: str) -> list[str]:
        return suffixed(self._blobs, suffix)

    def fetch(self, names: Iterable[str]) -> None:
        wanted = [n for n in dict.fromkeys(names) if n in self._blobs and n not in self._read]
        asked = "".join(f"{self._blobs[name]}\n" for name in wanted).encode()
        output = git(self._root, "cat-file", "--batch", given=asked) if wanted else b""
        if output is None:
            raise UntestableError(f"files of {self._build.version} cannot be read from the clone")
        at = 0
        for name in wanted:
            end = output.find(b"\n", at)
            head = output[at:end].split()
            if end < 0 or len(head) != 3 or head[1] != b"blob":
                raise UntestableError(
                    f"the clone does not hold {quoted(name)} of {self._build.version}",
                    hint="git fetch --refetch --no-filter completes a partial clone",
                )
            size = int(head[2])
            self._read[name] = output[end + 1 : end + 1 + size]
            at = end + 1 + size + 1

    def read(self, name: str) -> bytes:
        if name not in self._blobs:
            raise KeyError(name)
        self.fetch([name])
        return self._read[name]

    def notes(self) -> Sequence[str]:
        return ["read from git, not from a wheel: what building adds is not in it"]

    def close(self) -> None:
        """Nothing is open."""


def _line(output: bytes | None) -> str | None:
    text = output.decode("utf-8", errors="replace").strip() if output else ""
    return text.splitlines()[0] if text else None
