"""What a person writes to name builds, taken apart. Pure, but for asking whether a path exists."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from ..errors import UsageError
from ..escape import quoted

if TYPE_CHECKING:
    from packaging.version import Version

Kind = Literal["version", "installed", "path", "url", "index"]
FORMS = "a version (0.28.0), `installed`, a path, the URL of a wheel, or VERSION@URL of an index"
WEB = re.compile(r"https?://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One build as it was asked for: `text` is the version or file name, the path or the URL.

    For kind `index`, `text` is the URL of an index and `version` what to take there, None if the
    index has one only. For kind `url`, `sha256` is what the fragment says.
    """

    kind: Kind
    text: str
    version: str | None = None
    sha256: str | None = None


def wanted(spec: str) -> Wanted:
    """What `spec` names. UsageError if it can be none of FORMS."""
    from packaging.version import InvalidVersion, Version

    spec = spec.strip()
    if spec == "installed":
        return Wanted("installed", spec)
    version, at, address = spec.partition("@")
    if at and WEB.match(address):
        return Wanted("index", address, version=version.strip() or None)
    if WEB.match(spec):
        parts = urlsplit(spec)
        if parts.path.endswith((".whl", ".tar.gz")):
            digest = re.search(r"(?:^|&)sha256=([0-9a-fA-F]{64})(?:&|$)", parts.fragment)
            return Wanted("url", spec, sha256=digest[1].lower() if digest else None)
        return Wanted("index", spec)
    try:
        Version(re.sub(r"-\d+[A-Za-z0-9_.]*$", "", spec))
        return Wanted("version", spec)
    except InvalidVersion:
        if os.sep in spec or spec in {".", ".."} or os.path.exists(spec):
            return Wanted("path", spec)
    if spec.endswith((".whl", ".tar.gz")):
        return Wanted("version", spec)
    raise UsageError(f"{quoted(spec)} names no build", hint=f"one of: {FORMS}")


def expand(
    spec: str, have: Callable[[], Sequence[Version]], check: Callable[[str], None]
) -> list[str]:
    """The builds a list with commas and ranges names, each once, in its order.

    `have` gives the releases ranges choose from, ascending, and is called if there is a range;
    `check` raises for a version that is not there. Errors: UsageError.
    """
    found: list[str] = []
    for entry in spec.split(","):
        text = entry.strip()
        if not text:
            raise UsageError(f"{quoted(spec)} has an empty entry", hint=f"one of: {FORMS}")
        low, dots, high = text.partition("..")
        if dots and os.sep not in text and text != "..":
            found += _range(text, low.strip(), high.strip(), have())
        else:
            build = wanted(text)
            if build.kind == "version":
                check(build.text)
            found.append(text)
    return list(dict.fromkeys(found))


def _range(text: str, low: str, high: str, have: Sequence[Version]) -> list[str]:
    from packaging.version import InvalidVersion, Version

    try:
        first = Version(low) if low else None
        last = Version(high) if high else None
    except InvalidVersion as error:
        raise UsageError(
            f"{quoted(text)} is not a range of versions: {error}", hint="as in 0.11.0..0.33.0"
        ) from error
    if first and last and first > last:
        raise UsageError(
            f"{quoted(text)} runs backwards", hint=f"{last}..{first} has the older end first"
        )
    inside = [v for v in have if (not first or v >= first) and (not last or v <= last)]
    if not inside:
        newest = f"the newest is {have[-1]}" if have else "the index has no release"
        raise UsageError(f"no release lies in {quoted(text)}", hint=newest)
    return [str(version) for version in inside]
