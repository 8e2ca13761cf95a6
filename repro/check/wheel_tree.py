"""A wheel whose files are read one by one, from a server or from disk, each checked."""

from __future__ import annotations

import re
import struct
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..errors import UntestableError
from ..escape import quoted
from .archive import check_size, extract, members
from .cache import Cache
from .ranges import SHORTEST_TAIL, Span, Window, coalesce
from .record import UNHASHED, parse, record_name
from .tree import Build, Told

# Stretches one `fetch` asks for, at most, unless that would read much that is not wanted. The
# index and the end of the archive are two requests before.
MOST_REQUESTS = 6
# What is taken of the end of the first wheel of a project: RECORD and list of contents have 0.22 MB
# in vLLM 0.11.0 and 0.91 MB in 0.33.0. Later ones are expected to have what the last one had.
FIRST_TAIL = 960 << 10  # bytes
GROWTH = 1.06
# Where the end is longer than expected: RECORD, which lies before the list of contents, has 0.38
# to 0.40 of its size in vLLM's wheels.
RECORD_SHARE = 0.45
WORTH_TELLING = 1 << 20  # bytes
COMMIT = re.compile(r"^__commit_id__\b.*?['\"]g?([0-9a-f]{7,64})['\"]", re.MULTILINE)


def suffixed(names: Iterable[str], suffix: str) -> list[str]:
    """The names that are `suffix` or end in it after a slash, sorted."""
    return sorted(name for name in names if name == suffix or name.endswith(f"/{suffix}"))


class WheelTree:
    """The files of a wheel. A `Tree`; `span` is closed with it.

    The end of the archive (its list of contents, RECORD) is cached by the wheel's sha256, so
    that only a wheel whose index gives one is remembered; files are cached by the sha256 that
    RECORD gives, so a file that many releases share is read once. What is read is checked
    against the crc and RECORD, or not given out.
    """

    def __init__(self, span: Span, build: Build, project: str, store: Cache, told: Told) -> None:
        self._build = build
        self._project = project
        self._store = store
        self._told = told
        self._read: dict[str, bytes] = {}
        self._commit_known = build.commit is not None
        name = quoted(build.file or "")
        held = _tail(store, build.sha256)
        try:
            self._window = Window(span, held=held, tail=_expected(store, project))
            self._window.lead = RECORD_SHARE
            self._archive = zipfile.ZipFile(self._window)
            self._window.lead = 0.0
            self._infos = members(self._archive.infolist())
            self._ends = _ends(self._archive)
            record = record_name(self._infos, project)
            self._window.hold(*self._extent(record))
            content = extract(self._archive, self._infos[record])
            self._record = parse(content)
            self._read[record] = content
        except UntestableError as error:
            span.close()
            error.where = error.where or build.file
            raise
        except (zipfile.BadZipFile, NotImplementedError, struct.error, ValueError) as error:
            span.close()
            raise UntestableError(f"{name} is not a wheel: {error}") from error
        except BaseException:
            span.close()
            raise
        if held is None and build.sha256:
            start = min(self._infos[record].header_offset, self._archive.start_dir)
            end = self._window.held(start, self._window.size)
            store.put("tails", build.sha256, start.to_bytes(8, "little") + end)
            store.put("lengths", project, len(end).to_bytes(8, "little"))

    @property
    def build(self) -> Build:
        if not self._commit_known:
            self._commit_known = True
            name = f"{self._project}/_version.py"
            if name in self._infos:
                text = self.read(name).decode("utf-8", errors="replace")
                if match := COMMIT.search(text):
                    self._build = replace(self._build, commit=match[1])
        return self._build

    def names(self) -> Sequence[str]:
        return sorted(self._infos)

    def find(self, suffix: str) -> list[str]:
        return suffixed(self._infos, suffix)

    def fetch(self, names: Iterable[str]) -> None:
        wanted = []
        # the commit is wanted sooner or later, and here it costs no request of its own
        for name in {*names, f"{self._project}/_version.py"}:
            if name not in self._infos or name in self._read or not self._fits(name):
                continue
            entry = self._record.get(name)
            content = entry.held(self._store) if entry else None
            if content is not None:
                self._read[name] = content
            else:
                wanted.append(name)
        stretches = coalesce(map(self._extent, wanted), at_most=MOST_REQUESTS)
        size = sum(end - start for start, end in stretches)
        if size > WORTH_TELLING:
            self._told(f"{self._build.file}: reading {size / 1e6:.1f} MB, {len(wanted)} files")
        for start, end in stretches:
            self._window.hold(start, end)
        for name in wanted:
            self._take(name)

    def read(self, name: str) -> bytes:
        if name not in self._read:
            entry = self._record.get(name)
            content = entry.held(self._store) if entry and name in self._infos else None
            if content is not None:
                self._read[name] = content
            else:
                check_size(self._infos[name])
                self._window.hold(*self._extent(name))
                self._take(name)
        return self._read[name]

    def notes(self) -> Sequence[str]:
        if self._build.sha256 is None:
            return ["the index gives no hash of this wheel; its files match its own RECORD"]
        return []

    def close(self) -> None:
        self._archive.close()
        self._window.close()

    def _take(self, name: str) -> None:
        """Extract a member and check it against RECORD."""
        entry = self._record.get(name)
        content = extract(self._archive, self._infos[name])
        if entry is None:
            if not name.endswith(tuple(f".dist-info/{own}" for own in UNHASHED)):
                raise UntestableError(
                    f"{quoted(name)} is in the wheel and not in its RECORD", where=self._build.file
                )
        elif not entry.matches(content):
            raise UntestableError(
                f"{quoted(name)} is not what RECORD says it is", where=self._build.file
            )
        else:
            entry.keep(self._store, content)
        self._read[name] = content

    def _fits(self, name: str) -> bool:
        """Whether `read` will take a member of this size; it is `read` that says why not."""
        try:
            check_size(self._infos[name])
        except UntestableError:
            return False
        return True

    def _extent(self, name: str) -> tuple[int, int]:
        start = self._infos[name].header_offset
        return start, self._ends[start]


def _ends(archive: zipfile.ZipFile) -> dict[int, int]:
    """Where each member's bytes end at the latest, by where they begin."""
    starts = sorted({info.header_offset for info in archive.infolist()})
    if starts and (starts[0] < 0 or starts[-1] >= archive.start_dir):
        raise UntestableError("the archive lists a member outside of itself")
    return dict(zip(starts, (*starts[1:], archive.start_dir), strict=True))


def _expected(store: Cache, project: str) -> int:
    """How much of the end of a wheel to ask for first."""
    last = store.get("lengths", project)
    if last is None:
        return FIRST_TAIL
    return max(SHORTEST_TAIL, int(int.from_bytes(last, "little") * GROWTH))


def _tail(store: Cache, sha256: str | None) -> tuple[int, bytes] | None:
    """Position and bytes of the end of a wheel, as they were read before."""
    entry = store.get("tails", sha256) if sha256 else None
    return (int.from_bytes(entry[:8], "little"), entry[8:]) if entry else None
