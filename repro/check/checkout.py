"""What git knows of a folder: the commit, and whether a file is the one committed.

A checkout may be a stranger's, and its configuration can name programs: only commands that read
objects are used, none that looks at the working tree.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

PATIENCE = 30.0  # seconds


class Checkout:
    """The commit at which `root` stands, with the hashes of the files below `folder`."""

    def __init__(self, root: Path, commit: str, version: str) -> None:
        self.commit = commit
        self.version = version
        self._root = root
        self._blobs: dict[str, str] | None = None

    def differs(self, name: str, content: bytes) -> bool:
        """Whether the committed file of this name, relative to the root, is another or absent."""
        if self._blobs is None:
            self._blobs = {}
            listing = git(self._root, "ls-tree", "-r", "-z", "HEAD", "--", ".")
            for line in _text(listing or b"").split("\0"):
                facts, _, path = line.partition("\t")
                if path:
                    self._blobs[path] = facts.split(" ")[2]
        wanted = self._blobs.get(name)
        algorithm = "sha256" if wanted and len(wanted) == 64 else "sha1"
        header = b"blob %d\0" % len(content)
        return hashlib.new(algorithm, header + content, usedforsecurity=False).hexdigest() != wanted


def checkout(root: Path) -> Checkout | None:
    """The checkout that `root` is or lies in, None if it is none or git is not there."""
    commit = git(root, "rev-parse", "--verify", "HEAD")
    if not commit:
        return None
    described = git(root, "describe", "--tags", "--always", "HEAD")
    return Checkout(root, _text(commit).strip(), _text(described or commit).strip())


def git(root: Path, *arguments: str, given: bytes | None = None) -> bytes | None:
    """What a command of git that reads objects prints, `given` on its input; None if it fails."""
    environment = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1"}
    try:
        ended = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", "-C", str(root), *arguments],  # noqa: S607
            env=environment | quiet,
            capture_output=True,
            timeout=PATIENCE,
            input=given or b"",
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.stdout if ended.returncode == 0 else None


def _text(output: bytes) -> str:
    return output.decode("utf-8", errors="surrogateescape")
