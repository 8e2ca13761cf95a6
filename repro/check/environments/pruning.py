"""Taking environments away: one, or those used longest ago until what is left fits a limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...errors import NoEnvironmentError
from .locked import read_lock
from .shelf import LOCK_FILE, Kept, Shelf

GIB = 1 << 30
DEFAULT_LIMIT = 20.0  # GiB

# Lets uv's cache go of these packages, of all for None.
Forget = Callable[[Sequence[str] | None], None]


@dataclass(frozen=True, slots=True)
class Pruned:
    """`gone` were removed; `held` would have been, and are in use. `before`, `after`: bytes of the
    whole folder, a shared file counted once.
    """

    gone: tuple[Kept, ...]
    held: tuple[Kept, ...]
    before: int
    after: int


def prune(shelf: Shelf, limit: int, forget: Forget) -> Pruned:
    """Remove what was left half-made, then environments, the one used longest ago first, until
    the folder has at most `limit` bytes. What is in use stays, even above the limit.
    """
    shelf.sweep()
    before = after = shelf.usage()
    gone: list[Kept] = []
    held: list[Kept] = []
    for kept in reversed(shelf.kept()):
        if after <= limit:
            break
        if remove(shelf, kept, forget):
            gone.append(kept)
            after = shelf.usage()
        else:
            held.append(kept)
    if after > limit and not shelf.kept():
        forget(None)  # all that is left is uv's cache
        after = shelf.usage()
    return Pruned(tuple(gone), tuple(held), before, after)


def remove(shelf: Shelf, kept: Kept, forget: Forget) -> bool:
    """Remove an environment, and of uv's cache the packages that no other one has; False if it is
    in use.
    """
    own = packages(kept)
    if not shelf.remove(kept):
        return False
    others = {package for other in shelf.kept() for package in packages(other)}
    forget(sorted({name for name, _ in own - others}))
    return True


def packages(kept: Kept) -> set[tuple[str, str]]:
    """(name, version) of what is installed there, as far as its list tells."""
    try:
        text = (kept.path / LOCK_FILE).read_text(encoding="utf-8")
        return {(package.name, package.version) for package in read_lock(text)}
    except (OSError, UnicodeDecodeError, NoEnvironmentError):
        return set()
