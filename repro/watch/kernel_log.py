"""The kernel log, followed: `/dev/kmsg`, the journal, `dmesg` or a file; else why it cannot be.

In a container, and for a user where `kernel.dmesg_restrict` is set, it is not there. Then nothing
can be said from its silence, and the reason comes with the command that would change it.
"""

from __future__ import annotations

import errno
import os
import re
import selectors
import shutil
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .events import KERNEL_LOG, Event, Watched, pci
from .xid import read_xid

KMSG = Path("/dev/kmsg")
POLL = 0.1  # seconds between two looks
SOON = 0.5  # seconds in which a follower says that it may not read
LAST_READS = 1_000  # after the end; of a log that grows faster the rest is not read
RECORD = 16 << 10  # bytes of one record of /dev/kmsg; the kernel's own limit is 8 KiB
LONGEST_LINE = 64 << 10  # bytes; a longer one is cut
ELSEWHERE = "SPECREPRO_KERNEL_LOG"  # variable: a file to follow instead
_KMSG = re.compile(r"\d+,(?P<number>\d+),(?P<usec>\d+),[^;]*;(?P<message>.*)")
# Followers of the log that may be read without /dev/kmsg, first the one that needs less.
FOLLOWERS = (
    ("journalctl", "--dmesg", "--follow", "--lines=0", "--output=short-iso", "--no-pager"),
    ("dmesg", "--follow-new", "--time-format=iso", "--color=never"),
)
ROOT_HINT = "as root, or: sudo sysctl kernel.dmesg_restrict=0"
CONTAINER_HINT = "outside the container, or: docker run --device /dev/kmsg --cap-add SYSLOG …"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the log is to be read; `file` is None for the machine's own."""

    file: Path | None = None
    kmsg: Path = KMSG

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Place:
        """As the environment says."""
        return cls(Path(environ[ELSEWHERE])) if environ.get(ELSEWHERE) else cls()


class KernelLog:
    """A thread that collects Xid messages from the moment it is started."""

    def __init__(self, place: Place | None = None) -> None:
        self._place = place or Place.of(os.environ)
        self._events: list[Event] = []
        self._lines: list[str] = []
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._watched = Watched(KERNEL_LOG, False, "was not started")

    def start(self) -> None:
        """Begin at the end of the log. After this, what is logged is seen. Never raises."""
        file = self._place.file
        work = self._file(file) if file is not None else self._kmsg() or self._follower()
        if work is None:
            return
        self._watched = Watched(KERNEL_LOG, True)
        self._thread = threading.Thread(target=work, name="kernel-log", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and whatever it started; events are kept."""
        self._stop.set()
        if self._child is not None and self._child.poll() is None:
            self._child.kill()
        if self._thread is not None:
            self._thread.join(5)
            if self._thread.is_alive():
                self._fail("the kernel log could not be read to its end")

    def events(self) -> list[Event]:
        """What came so far, in order."""
        with self._lock:
            return list(self._events)

    def lines(self) -> list[str]:
        """The lines that the events were read from."""
        with self._lock:
            return list(self._lines)

    @property
    def watched(self) -> Watched:
        """Whether it could see."""
        return self._watched

    def _take(self, line: str) -> None:
        xid = read_xid(line)
        if xid is None:
            return
        with self._lock:
            self._lines.append(line)
            self._events.append(Event(KERNEL_LOG, time.time(), xid.code, pci(xid.bus), xid))

    def _fail(self, reason: str, hint: str = "") -> None:
        self._watched = Watched(KERNEL_LOG, False, reason, hint)

    def _file(self, file: Path) -> Callable[[], None] | None:
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
            if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                os.lseek(descriptor, 0, os.SEEK_END)
        except OSError as error:
            self._fail(f"{file}: {error.strerror}")
            return None
        return lambda: self._read(descriptor, file)

    def _read(self, descriptor: int, file: Path) -> None:
        """Lines of a file that grows, or of a pipe; what came before the end is read."""
        lines, left = _Lines(self._take), LAST_READS
        try:
            while left:
                stopped = self._stop.is_set()
                left -= stopped
                try:
                    content = os.read(descriptor, 1 << 16)
                except BlockingIOError:
                    content = b""
                if content:
                    lines.feed(content)
                    continue
                if why := _elsewhere(descriptor, file):
                    self._fail(f"{file}: {why}")
                if stopped:
                    return
                self._stop.wait(POLL)
            self._fail(f"{file}: there was more at the end than could be read")
        except OSError as error:
            self._fail(f"the log stopped: {error.strerror}")
        finally:
            os.close(descriptor)

    def _kmsg(self) -> Callable[[], None] | None:
        try:
            descriptor = os.open(self._place.kmsg, os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(descriptor, 0, os.SEEK_END)
        except OSError as error:
            missing = error.errno in (errno.ENOENT, errno.ENXIO, errno.ENODEV)
            hint = CONTAINER_HINT if missing else ROOT_HINT
            self._fail(f"{self._place.kmsg}: {error.strerror}", hint)
            return None
        return lambda: self._records(descriptor)

    def _records(self, descriptor: int) -> None:
        """Records of /dev/kmsg, one a read."""
        expected: int | None = None
        left = LAST_READS
        try:
            while left:
                stopped = self._stop.is_set()
                left -= stopped
                try:
                    record = os.read(descriptor, RECORD)
                except BlockingIOError:
                    if stopped:  # what came before the end was read
                        return
                    self._stop.wait(POLL)
                    continue
                except OSError as error:
                    if error.errno != errno.EPIPE:
                        raise
                    # records were overwritten before they were read; the next read goes on
                    self._fail("records of the kernel log were overwritten before they were read")
                    expected = None
                    continue
                if not record:
                    if stopped:
                        return
                    self._stop.wait(POLL)
                    continue
                expected = self._record(record.decode("utf-8", "replace"), expected)
        except OSError as error:
            self._fail(f"the kernel log stopped: {error.strerror}")
        finally:
            os.close(descriptor)

    def _record(self, record: str, expected: int | None) -> int | None:
        match = _KMSG.match(record)
        if match is None:
            return expected
        self._take(match["message"])
        number = int(match["number"])
        if expected is not None and number > expected:
            self._fail(f"{number - expected} records of the kernel log were not read")
        return number + 1

    def _follower(self) -> Callable[[], None] | None:
        """A program that follows the log, where the device itself cannot be opened."""
        for words in FOLLOWERS:
            program = shutil.which(words[0])
            if program is None:
                continue
            try:
                child, out, err = _started([program, *words[1:]])
            except OSError:
                continue
            if (why := _refusal(child, err)) is not None:
                os.close(out)
                # what the device said stands, with the follower's word behind it
                self._fail(f"{self._watched.reason}; {words[0]}: {why}", self._watched.hint)
                continue
            self._child = child
            return lambda: self._follow(child, out)
        return None

    def _follow(self, child: subprocess.Popen[bytes], out: int) -> None:
        lines = _Lines(self._take)
        try:
            while content := os.read(out, 1 << 16):
                lines.feed(content)
        finally:
            os.close(out)
            child.wait()
        if not self._stop.is_set():
            self._fail("the program that follows the kernel log ended")


def _elsewhere(descriptor: int, file: Path) -> str:
    """Why the log goes on elsewhere than in the open file, "" if it does not: it was rotated."""
    here = os.fstat(descriptor)
    if not stat.S_ISREG(here.st_mode):
        return ""
    try:
        there = os.stat(file)
    except OSError as error:
        return f"the file has gone: {error.strerror}"
    if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):
        return "another file has taken its place; what is logged there was not read"
    if here.st_size < os.lseek(descriptor, 0, os.SEEK_CUR):
        os.lseek(descriptor, 0, os.SEEK_SET)
        return "the file was cut; what stood between may not have been read"
    return ""


class _Lines:
    """Whole lines out of pieces of bytes."""

    def __init__(self, take: Callable[[str], None]) -> None:
        self._take = take
        self._rest = b""

    def feed(self, content: bytes) -> None:
        *whole, self._rest = (self._rest + content).split(b"\n")
        self._rest = self._rest[:LONGEST_LINE]
        for line in whole:
            self._take(line[:LONGEST_LINE].decode("utf-8", "replace"))


def _started(words: list[str]) -> tuple[subprocess.Popen[bytes], int, int]:
    """A program with the reading ends of its stdout and stderr."""
    out, write_out = os.pipe()
    err, write_err = os.pipe()
    try:
        child = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=write_out,
            stderr=write_err,
            start_new_session=True,
        )
    except OSError:
        os.close(out)
        os.close(err)
        raise
    finally:
        os.close(write_out)
        os.close(write_err)
    return child, out, err


def _refusal(child: subprocess.Popen[bytes], err: int) -> str | None:
    """What a follower says that may not read; None for one that is at work.

    journalctl goes on without permission and says so on stderr; dmesg ends.
    """
    with selectors.DefaultSelector() as selector:
        selector.register(err, selectors.EVENT_READ)
        said = os.read(err, 4096) if selector.select(SOON) else b""
    os.close(err)
    if child.poll() is None and not said:
        return None
    child.kill()
    child.wait()
    first = said.decode("utf-8", "replace").strip().splitlines()
    return first[0][:200] if first else f"ended with status {child.returncode}"
