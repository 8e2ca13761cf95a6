"""Which files of a project the user's indexes and find-links have, remembered for a while."""

from __future__ import annotations

import hashlib
import json
import re
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from ..errors import UntestableError
from ..escape import printable, quoted
from .cache import Cache
from .releases import ReleaseFile, label, labelled
from .settings import Settings
from .tree import Told
from .web import Web, shown

if TYPE_CHECKING:
    from pypi_simple import ProjectPage

FRESH = 600.0  # seconds a listing is believed without asking again
SCHEMA = 1


class Index:
    """The files of `project`, from all locations of `settings`, the first of a name winning."""

    def __init__(
        self,
        project: str,
        settings: Settings,
        web: Callable[[], Web],
        cache: Cache,
        *,
        offline: bool,
        told: Told,
    ) -> None:
        self._project = project
        self._settings = settings
        self._web = web
        self._cache = cache
        self._offline = offline
        self._told = told
        self._files: list[ReleaseFile] | None = None
        self.failed: UntestableError | None = None  # the first location that could not be read

    def files(self) -> list[ReleaseFile]:
        """Wheels and sdists of all locations. UntestableError if there are none to be had.

        A location that fails is told of, and forgiven if another one has the project.
        """
        if self._files is not None:
            return self._files
        found: dict[str, ReleaseFile] = {}
        for location in self._locations():
            try:
                files = self._listing(location)
            except UntestableError as error:
                self._told(f"left out: {error}")
                self.failed = self.failed or error
                continue
            # a folder of find-links holds all kinds of projects
            for _, file in labelled(files, self._project):
                found.setdefault(file.name, file)
        if not found and self.failed:
            raise self.failed
        if not found:
            raise UntestableError(
                f"no index has {printable(self._project)}",
                hint="indexes are those of pip's and uv's settings",
            )
        self._files = list(found.values())
        return self._files

    def _locations(self) -> list[str]:
        name = re.sub(r"[-_.]+", "-", self._project).lower()
        pages = [f"{url.rstrip('/')}/{name}/" for url in self._settings.indexes]
        return [*pages, *self._settings.find_links]

    def _listing(self, location: str) -> list[ReleaseFile]:
        folder = local_path(location)
        if folder is not None:
            return _local(folder, location, self._project)
        age = self._cache.age("listings", location, time.time())
        if age is not None and (self._offline or 0 <= age < FRESH):
            held = self._cache.get("listings", location)
            if held is not None and (files := _load(held)) is not None:
                return files
        if self._offline:
            raise UntestableError(
                f"offline, and {shown(location)} was not read before",
                hint="the same command without --offline fills the cache",
            )
        from pypi_simple import ACCEPT_ANY

        answer = self._web().page(location, ACCEPT_ANY)
        files = [] if answer is None else parse(self._project, *answer)
        # a page of the web may not name files of this machine
        files = [file for file in files if local_path(file.url) is None]
        self._cache.put("listings", location, _dump(files))
        return files


def parse(project: str, url: str, content_type: str, body: bytes) -> list[ReleaseFile]:
    """The files on a page of an index or of find-links, JSON or HTML, as `url` has it."""
    import pypi_simple

    kind, _, parameters = content_type.partition(";")
    charset = re.search(r"charset=\"?([\w.-]+)", parameters)
    as_json = kind.strip().lower().endswith("+json")
    if not as_json and "html" not in kind.lower():
        raise UntestableError(f"{shown(url)} is no index: it sends {quoted(kind)}")
    try:
        with warnings.catch_warnings():
            # a newer minor version of the format still means the same by what it shares
            warnings.simplefilter("ignore", pypi_simple.UnexpectedRepoVersionWarning)
            page: ProjectPage
            if as_json:
                page = pypi_simple.ProjectPage.from_json_data(json.loads(body), url)
            else:
                page = pypi_simple.ProjectPage.from_html(
                    project, body, url, charset[1] if charset else None
                )
    except (ValueError, KeyError, TypeError, LookupError, RecursionError) as error:
        raise UntestableError(f"{shown(url)} is not a page of an index") from error
    except pypi_simple.UnsupportedRepoVersionError as error:
        raise UntestableError(f"{shown(url)} speaks a newer language: {error}") from error
    return [
        ReleaseFile(
            name=package.filename,
            url=package.url,
            size=package.size if package.size and package.size > 0 else None,
            sha256=_sha256(package.digests.get("sha256")),
            yanked=(package.yanked_reason or "") if package.is_yanked else None,
        )
        for package in page.packages
        if label(package.filename)
    ]


def local_path(location: str) -> Path | None:
    """The path that a location stands for, None for one in the web. UntestableError for others."""
    parts = urlsplit(location)
    if parts.scheme in {"http", "https"}:
        return None
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    if "://" in location:
        raise UntestableError(f"{shown(location)} is an address of a kind that is not read")
    return Path(location)


def _local(path: Path, location: str, project: str) -> list[ReleaseFile]:
    """Files of an index on disk (a folder with a page), of a folder, or one file."""
    page = path / "index.html"
    try:
        if page.is_file():
            base = page.absolute().as_uri()
            return parse(project, base, "text/html", page.read_bytes())
        entries = sorted(path.iterdir()) if path.is_dir() else [path] if path.is_file() else []
    except OSError as error:
        raise UntestableError(f"{shown(location)}: {error.strerror}") from error
    return [
        ReleaseFile(entry.name, str(entry), entry.stat().st_size, None, None)
        for entry in entries
        if label(entry.name) and entry.is_file()
    ]


def _sha256(digest: str | None) -> str | None:
    valid = digest and re.fullmatch(r"[0-9a-fA-F]{64}", digest)
    return digest.lower() if digest and valid else None


def _dump(files: list[ReleaseFile]) -> bytes:
    rows = [[f.name, f.url, f.size, f.sha256, f.yanked] for f in files]
    return json.dumps({"schema": SCHEMA, "files": rows}).encode()


def _load(held: bytes) -> list[ReleaseFile] | None:
    content = json.loads(held)
    if content.get("schema") != SCHEMA:
        return None
    return [ReleaseFile(*row) for row in content["files"]]


def local_hash(path: Path, file: ReleaseFile) -> str:
    """The sha256 of a file on disk. UntestableError if its index has another."""
    try:
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise UntestableError(f"{quoted(str(path))}: {error.strerror}") from error
    if file.sha256 and file.sha256 != digest:
        raise UntestableError(
            f"{quoted(file.name)} has sha256 {digest}, its index says {file.sha256}"
        )
    return digest
