"""Wheels of single commits, as vLLM publishes them: one folder a commit, of two shapes.

BASE/COMMIT/[VARIANT/]vllm/metadata.json lists the wheels of a commit, each with a path relative to
that file. Before there was one (vllm#29690) every wheel had the same name, BASE/COMMIT/NAME. Not
every commit has a wheel, nor every variant. Sources: vLLM's docs/contributing/ci/nightly_builds.md
and .buildkite/scripts/generate-nightly-index.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import unquote, urljoin, urlsplit

from ..check.releases import PLATFORM, label
from ..check.web import Web, shown
from ..errors import UnreachableError, UntestableError, UsageError
from ..escape import printable, quoted

# Where vLLM itself publishes them. Asked only for commits of a clone that --repo names, at depths
# that need a wheel.
PUBLIC = "https://wheels.vllm.ai"
OLD_NAME = "vllm-1.0.0.dev-cp38-abi3-manylinux1_x86_64.whl"
DEFAULT = "default"  # what the index calls wheels of the main CUDA version
MOST_ROWS = 1000
THREADS = 4


@dataclass(frozen=True, slots=True)
class CommitWheel:
    """The wheel of a commit at `url`; None with the `reason` where it has none that fits."""

    url: str | None
    reason: str = ""


class CommitIndex:
    """The index at `base`. web: makes a session; each thread has one of its own.

    UsageError for a base that is no address.
    """

    def __init__(
        self,
        base: str,
        web: Callable[[], Web],
        *,
        project: str = "vllm",
        variant: str | None = None,
        platform: str = PLATFORM,
    ) -> None:
        if urlsplit(base).scheme not in {"http", "https"} or not urlsplit(base).hostname:
            raise UsageError(
                f"{quoted(base)} is no address of an index of commits",
                hint="it is the part before the commit: https://HOST",
            )
        if variant is not None and not variant.isalnum():
            raise UsageError(f"{quoted(variant)} is no variant", hint="as in cu130")
        self._base = base.rstrip("/")
        self._web = web
        self._project = project
        self._variant = variant
        self._platform = platform

    def wheels(self, shas: Sequence[str]) -> Mapping[str, CommitWheel]:
        """What the index has of each commit, asked in a few threads. UnreachableError if it
        does not answer: that says nothing about a commit."""
        if not shas:
            return {}
        size = -(-len(shas) // THREADS)
        parts = [shas[at : at + size] for at in range(0, len(shas), size)]
        with ThreadPoolExecutor(THREADS) as pool:
            return {
                sha: wheel for part in pool.map(self._part, parts) for sha, wheel in part.items()
            }

    def _part(self, shas: Sequence[str]) -> dict[str, CommitWheel]:
        web = self._web()
        try:
            return {sha: self._wheel(web, sha) for sha in shas}
        finally:
            web.close()

    def _wheel(self, web: Web, sha: str) -> CommitWheel:
        folder = f"{self._base}/{sha}/" + (f"{self._variant}/" if self._variant else "")
        address = f"{folder}{self._project}/metadata.json"
        try:
            page = web.page(address, "application/json")
            if page is not None:
                return choose(
                    page[0], page[2], self._project, self._variant or DEFAULT, self._platform
                )
            if self._variant or self._project != "vllm" or self._platform != "x86_64":
                return CommitWheel(None, f"no wheel of variant {self._variant or DEFAULT}")
            old = f"{self._base}/{sha}/{OLD_NAME}"
            return CommitWheel(old) if web.there(old) else CommitWheel(None, "no wheel")
        except UnreachableError:
            raise
        except UntestableError as error:
            return CommitWheel(None, str(error))


def choose(url: str, body: bytes, project: str, variant: str, platform: str) -> CommitWheel:
    """The wheel that a metadata.json at `url` has for a variant and a platform. Pure.

    A path that leaves the server of the list, or does not end in the file name it goes with, is not
    followed.
    """
    try:
        rows = json.loads(body)
    except (ValueError, RecursionError):
        return CommitWheel(None, f"{shown(url)} is not JSON")
    if not isinstance(rows, list) or len(rows) > MOST_ROWS:
        return CommitWheel(None, f"{shown(url)} is no list of wheels")
    ours = [
        row for row in rows if isinstance(row, dict) and row.get("package_name") in {project, None}
    ]
    of_variant = [row for row in ours if (row.get("variant") or DEFAULT) == variant]
    if not of_variant:
        have = sorted({printable(str(row.get("variant") or DEFAULT))[:20] for row in ours})
        return CommitWheel(
            None, f"no wheel of variant {variant}" + (f"; it has {', '.join(have)}" if have else "")
        )
    for row in of_variant:
        name, path = row.get("filename"), row.get("path")
        mark = label(name) if isinstance(name, str) else None
        fits = mark and any("linux" in p and p.endswith(f"_{platform}") for p in mark.platforms)
        if not isinstance(path, str) or not fits:
            continue
        found = urljoin(url, path)
        there, here = urlsplit(found), urlsplit(url)
        if (there.scheme, there.netloc) != (here.scheme, here.netloc):
            return CommitWheel(None, f"its wheel is said to lie elsewhere: {shown(found)}")
        if unquote(there.path.rpartition("/")[2]) != name:
            return CommitWheel(None, f"{quoted(path)} is not the path of {quoted(str(name))}")
        return CommitWheel(found)
    return CommitWheel(None, f"no wheel for Linux on {platform}")
