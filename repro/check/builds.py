"""Builds by what a person calls them: where each comes from, and one session for many."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urldefrag

from ..errors import UntestableError, UsageError
from ..escape import printable, quoted
from .cache import Cache, default_folder
from .index import Index, local_hash, local_path
from .local import Place, folder, installed
from .ranges import AbsentSpan, FileSpan, Span, WebSpan
from .releases import PLATFORM, ReleaseFile, label, labelled, pick, releases
from .sdist import SdistTree, recall, remember, unpack, version_of
from .settings import Settings, read_settings
from .tree import Build, Told, Tree, silent
from .versions import Wanted, expand, wanted
from .web import RangesRefusedError, Web, file_name, shown
from .wheel_tree import COMMIT, WheelTree

if TYPE_CHECKING:
    from packaging.version import Version

LARGEST_DOWNLOAD = 4 << 30  # bytes
# what the extra `check` brings
NEEDED = ("packaging", "pypi_simple", "requests")


class Builds:
    """Opens builds and lists versions, as `open_build` and `versions` do, over one session.

    Trees of wheels read through the session: close them, then this. Not for several threads.
    `place` is where `installed` is looked for. `prereleases`, `yanked`: what else is allowed, here
    or for one call.
    """

    def __init__(
        self,
        *,
        project: str = "vllm",
        cache: Path | None = None,
        offline: bool = False,
        allow_full_download: bool = False,
        platform: str = PLATFORM,
        environ: Mapping[str, str] | None = None,
        told: Told = silent,
        place: Place | None = None,
        prereleases: bool = False,
        yanked: bool = False,
    ) -> None:
        missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
        if missing:
            raise UntestableError(
                f"to read builds, specrepro needs {' and '.join(missing)}",
                hint="pip install 'specrepro[check]'",
            )
        self._project = project
        self._offline = offline
        self._full = allow_full_download
        self._platform = platform
        self._told = told
        self._store = Cache(cache or default_folder(), told)
        self._environ = environ
        self._place = place
        self._prereleases = prereleases
        self._yanked = yanked
        self._web: Web | None = None
        self._index: Index | None = None

    def __enter__(self) -> Builds:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the session, and keep the cache within its limit."""
        self._store.trim()
        if self._web:
            self._web.close()
            self._web = None

    @property
    def traffic(self) -> tuple[int, int]:
        """Requests sent and bytes of bodies received in this session."""
        return (self._web.requests, self._web.received) if self._web else (0, 0)

    def versions(self, spec: str, *, prereleases: bool = False, yanked: bool = False) -> list[str]:
        """What `tree.versions` says."""
        pre, gone = prereleases or self._prereleases, yanked or self._yanked

        def check(version: str) -> None:
            self._picked(version, yanked=True)

        def have() -> list[Version]:
            return releases(self.files(), self._project, prereleases=pre, yanked=gone)

        return expand(spec, have, check)

    def open(self, spec: str, *, yanked: bool = False) -> Tree:
        """What `tree.open_build` says."""
        build = wanted(spec)
        yanked = yanked or self._yanked
        match build.kind:
            case "installed":
                return installed(self._project, self._place)
            case "path":
                return self._path(Path(build.text))
            case "url":
                return self._url(build)
            case "index":
                return self._own_index(build, yanked)
            case "version":
                return self._file(self._picked(build.text, yanked=yanked), "index")

    def files(self) -> list[ReleaseFile]:
        """Wheels and sdists of the project in the user's indexes. UntestableError if none."""
        if self._index is None:
            self._index = self._index_of(self._settings())
        return self._index.files()

    def _picked(self, version: str, *, yanked: bool) -> ReleaseFile:
        """What `releases.pick` says; UntestableError where the version may be in a location that
        could not be read."""
        files = self.files()
        try:
            return pick(files, self._project, version, platform=self._platform, yanked=yanked)
        except UsageError as error:
            failed = self._index.failed if self._index else None
            if failed is None:
                raise
            message = f"{error.message}, as far as that can be read: {failed}"
            raise type(failed)(message, hint=failed.hint) from error

    def _settings(self) -> Settings:
        return read_settings() if self._environ is None else read_settings(self._environ)

    def _index_of(self, settings: Settings) -> Index:
        return Index(
            self._project,
            settings,
            self._session,
            self._store,
            offline=self._offline,
            told=self._told,
        )

    def _session(self) -> Web:
        if self._web is None:
            self._web = Web(self._settings(), self._told)
        return self._web

    def _own_index(self, build: Wanted, yanked: bool) -> Tree:
        """A build of an index that was named, such as one a commit has."""
        only = replace(self._settings(), indexes=(build.text,), find_links=())
        files = self._index_of(only).files()
        version = build.version
        if version is None:
            have = sorted({mark.version for mark, _ in labelled(files, self._project)})
            if len(have) != 1:
                some = ", ".join(str(v) for v in have[-4:])
                raise UsageError(
                    f"{shown(build.text)} has {len(have)} versions of {self._project}: … {some}",
                    hint="VERSION@URL names one",
                )
            version = str(have[0])
        file = pick(files, self._project, version, platform=self._platform, yanked=yanked)
        return self._file(file, "index")

    def _url(self, build: Wanted) -> Tree:
        address = urldefrag(build.text).url
        name = local_name(address)
        return self._file(ReleaseFile(name, address, None, build.sha256, None), "url")

    def _path(self, path: Path) -> Tree:
        if path.is_dir():
            return folder(path, self._project)
        if not path.is_file():
            raise UsageError(f"{quoted(str(path))} does not exist")
        if label(path.name) is None:
            raise UsageError(
                f"{quoted(str(path))} is neither a folder nor named as a wheel or sdist",
                hint="a wheel keeps its full name: NAME-VERSION-PYTHON-ABI-PLATFORM.whl",
            )
        return self._file(ReleaseFile(path.name, str(path), None, None, None), "wheel")

    def _file(self, file: ReleaseFile, origin: str) -> Tree:
        mark = label(file.name)
        if mark is None:
            raise UsageError(f"{quoted(file.name)} is not the name of a wheel or sdist")
        build = Build(str(mark.version), file.name, file.sha256, None, origin)
        path = local_path(file.url)
        if path is not None:
            build = replace(build, sha256=local_hash(path, file))
        if mark.sdist:
            return self._sdist(file, replace(build, origin="sdist"), path)
        if path is not None:
            return self._wheel(FileSpan(path), build)
        if self._offline:
            return self._wheel(AbsentSpan(file.name), build)
        try:
            return self._wheel(WebSpan(self._session(), file.url, file.size), build)
        except RangesRefusedError as refused:
            if not self._full:
                raise
            self._told(f"{printable(file.name)}: {refused.message}")
        whole, digest = self._download(file)
        return self._wheel(FileSpan(None, whole), replace(build, sha256=digest))

    def _wheel(self, span: Span, build: Build) -> Tree:
        return WheelTree(span, build, self._project, self._store, self._told)

    def _sdist(self, file: ReleaseFile, build: Build, path: Path | None) -> Tree:
        files = recall(self._store, build.sha256) if build.sha256 else None
        if files is None:
            if path is None and self._offline:
                raise UntestableError(
                    f"offline, and {quoted(file.name)} was not read before",
                    hint="the same command without --offline fills the cache",
                )
            if path is None and not self._full:
                size = f"{file.size / 1e6:.1f} MB" if file.size else "of unknown size"
                raise UntestableError(
                    f"{self._project} {build.version} has no wheel, only an sdist ({size}), "
                    "which is read whole",
                    hint="--allow-full-download takes it",
                )
            stream: BinaryIO
            if path is not None:
                stream = path.open("rb")
            else:
                stream, digest = self._download(file)
                build = replace(build, sha256=digest)
            with stream:
                files = unpack(stream, self._told)
            if build.sha256:
                remember(self._store, build.sha256, files)
        commit = COMMIT.search(
            files.get(f"{self._project}/_version.py", b"").decode("utf-8", errors="replace")
        )
        version = version_of(files) or build.version
        return SdistTree(
            files, replace(build, version=version, commit=commit[1] if commit else None)
        )

    def _download(self, file: ReleaseFile) -> tuple[BinaryIO, str]:
        """The whole file without a name on disk, and its sha256, which is the index's if any."""
        whole: BinaryIO | None = None
        try:
            whole = tempfile.TemporaryFile()  # noqa: SIM115
            digest = self._session().pour(file.url, whole, file.size or LARGEST_DOWNLOAD)
        except OSError as error:
            if whole:
                whole.close()
            raise UntestableError(
                f"{quoted(file.name)} cannot be stored: {error.strerror or error}",
                hint="TMPDIR names a folder with room",
            ) from error
        except BaseException:
            if whole:
                whole.close()
            raise
        if file.sha256 and digest != file.sha256:
            whole.close()
            raise UntestableError(
                f"{quoted(file.name)} came with sha256 {digest}, the index has {file.sha256}"
            )
        whole.seek(0)
        return whole, digest


def local_name(url: str) -> str:
    """The file name at the end of a URL."""
    from urllib.parse import unquote, urlsplit

    name = unquote(urlsplit(url).path.rpartition("/")[2])
    if label(name) is None:
        raise UsageError(f"{file_name(url)} is not the name of a wheel or sdist")
    return name
