"""What uv complains of: is it this machine, or can the build not be installed? Pure.

The order of the table matters: an index that does not answer makes uv say that nothing fits, too.
What is not known is taken for a matter of this machine: it says nothing of the build.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 300  # characters of uv's own words in a message


@dataclass(frozen=True, slots=True)
class Complaint:
    """`what` in a few words; `infra` as in NoEnvironmentError; `hint` may be empty."""

    what: str
    infra: bool
    hint: str = ""


ROOM = Complaint("the disk is full", True, "specrepro environments prune --limit GIB makes room")
FORBIDDEN = Complaint("a folder may not be written to", True, "")
NETWORK = Complaint(
    "an index does not answer", True, "indexes are those of pip's and uv's settings"
)
CHANGED = Complaint("what came is not what the index announced", True)
NO_WHEEL = Complaint(
    "there is no wheel for this Python and platform",
    False,
    "`uv python install VERSION` adds a Python; --python PATH uses an environment of yours",
)
NO_TORCH = Complaint(
    "its CPU build of torch is not in your indexes",
    False,
    "UV_TORCH_BACKEND=cpu lets uv ask PyTorch's own index",
)
OTHER_PYTHON = Complaint("it wants another Python", False, "`uv python install VERSION` adds one")
CONFLICT = Complaint(
    "its requirements cannot be met",
    False,
    "constraints and indexes are those of pip's and uv's settings",
)
NOT_BUILT = Complaint("a package that has no wheel could not be built", False)
UNKNOWN = Complaint("uv failed", True)

TABLE = (
    (r"no space left on device|os error 28\b|disk quota exceeded|os error 122\b", ROOM),
    (r"permission denied|read-only file system|os error 13\b|os error 30\b", FORBIDDEN),
    (
        r"failed to fetch|error sending request|dns error|connection (?:refused|reset)"
        r"|timed? ?out|certificate|network connectivity is disabled|request failed after"
        r"|\b(?:401|403|407) \w+|status (?:client|server) error|could not connect",
        NETWORK,
    ),
    (r"hash mismatch|failed to validate|failed to extract|invalid zip|corrupt", CHANGED),
    (r"there is no version of torch(?:\{[^}]*\})?==\S+\+cpu\b", NO_TORCH),
    (r"no wheels? with a matching|has no (?:usable )?wheels|no compatible wheels", NO_WHEEL),
    (r"python version .*does not satisfy|depends on python|requires-python", OTHER_PYTHON),
    (r"no solution found|unsatisfiable|conflict|there is no version of", CONFLICT),
    (r"failed to build|build backend|failed to prepare distributions", NOT_BUILT),
)


def complaint(text: str) -> Complaint:
    """The first row of TABLE that `text` matches."""
    one_line = " ".join(text.split()).lower()
    return next((what for pattern, what in TABLE if re.search(pattern, one_line)), UNKNOWN)


def excerpt(text: str) -> str:
    """uv's own words on one line, its error and causes, without notes and hints; cut to LONGEST.

    Of a resolution without result the first reason is kept, without the markers of platforms: the
    rest repeats it for every package up to the one that was asked for.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    starts = [n for n, line in enumerate(lines) if re.match(r"error\b|×|x ", line)]
    kept: list[str] = []
    for line in lines[starts[0] if starts else 0 :]:
        if line.startswith(("hint:", "warning:", "note:")):
            break
        kept.append(re.sub(r"^(?:error:|cause:|[×╰├│▶─]+)\s*", "", line))
    words = re.sub(r"\{[^{}]*\}", "", " ".join(kept))
    if reason := re.search(r"\bBecause (.*?),? we can conclude\b", words):
        words = reason[1]
    return words if len(words) <= LONGEST else words[: LONGEST - 1] + "…"
