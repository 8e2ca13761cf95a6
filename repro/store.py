"""Run directories: make, write, find, list and prune them.

A run directory is DIR/<id>/ with run.json (the result, written last, in one step), job folders, and
nothing that another run needs. `latest` names the run that was finished last. A directory without
run.json is a run that was cut off; `resume` takes its whole results over.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import NoRoomError, RunNotFoundError, UsageError
from .escape import quoted

REQUEST = "request.json"  # what was asked for; there from the start
RESULT = "run.json"
LOCK = "lock"
LATEST = "latest"
# kinds of result this version reads, with the keys its pages need
SHAPES = {
    "specrepro/watch@1": {"run", "words", "incidents", "watched", "log"},
    "specrepro/run@1": {"run", "cases"},
    "specrepro/check@1": {"run", "case", "builds", "cause"},
    "specrepro/bisect@1": {"run", "case", "result", "stages", "trials", "boundary"},
    "specrepro/diagnose@1": {"run", "sources", "engine", "first_failure", "classes", "incidents"},
}


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run directory. state: `finished` with a result that can be read, `cut off` without one,
    `damaged` with one that cannot be read. size: bytes of its files."""

    id: str
    path: Path
    command: str
    started: str
    state: str
    size: int

    @property
    def finished(self) -> bool:
        """Whether it has a result that can be read."""
        return self.state == "finished"


def runs_folder(given: Path | None) -> Path:
    """Where runs are kept: --runs, else the user's state directory."""
    if given is not None:
        return given.expanduser().absolute()
    from platformdirs import user_state_path

    return user_state_path("specrepro", appauthor=False) / "runs"


def create(folder: Path, command: str, request: Mapping[str, Any]) -> Path:
    """A new run directory with its request in it."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    path = folder / f"{stamp}-{command}-{_fresh()}"
    try:
        path.mkdir(parents=True)
    except OSError as error:
        raise UsageError(
            f"cannot keep runs in {quoted(str(folder))}: {error.strerror}",
            hint="--runs DIR names another folder",
        ) from error
    write_json(path / REQUEST, {"command": command, "started": now(), **request})
    return path


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold a run directory while a process works in it; UsageError if another one does.

    The lock ends with the process, however that ends.
    """
    with (path / LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(f"run {quoted(path.name)} is being run by another process") from error
        yield


def in_use(path: Path) -> bool:
    """Whether a process works in a run directory now."""
    try:
        with held(path):
            return False
    except (UsageError, OSError):
        return True


def finish(path: Path, result: Mapping[str, Any]) -> None:
    """Write the result and make this run the latest, each in one step."""
    write_json(path / RESULT, result)
    link = path.parent / f".{LATEST}-{_fresh()}"
    try:
        link.symlink_to(path.name, target_is_directory=True)
        os.replace(link, path.parent / LATEST)
    except OSError:
        # a file system without links: `find` falls back to the newest finished run
        link.unlink(missing_ok=True)


def discard(path: Path) -> None:
    """Take away a run directory whose question turned out to be none."""
    shutil.rmtree(path)


def find(folder: Path, name: str) -> Path:
    """The directory of a run: `latest`, an id, a unique beginning of one, or a path."""
    if name == LATEST:
        link = folder / LATEST
        if link.is_dir():
            return link.resolve()
        for path in _runs(folder):
            if _state(path) == "finished":
                return path
        raise RunNotFoundError(
            f"no finished run in {quoted(str(folder))}", hint="specrepro run CASE makes one"
        )
    if os.sep in name and (Path(name) / REQUEST).is_file():
        return Path(name).resolve()
    matches = [path for path in _runs(folder) if path.name.startswith(name)] if name else []
    if len(matches) == 1:
        return matches[0]
    what = "several runs begin" if matches else "no run begins"
    raise RunNotFoundError(
        f"{what} with {quoted(name)} in {quoted(str(folder))}", hint="specrepro runs list"
    )


def load(path: Path) -> dict[str, Any]:
    """The result of a run; RunNotFoundError where it was cut off or is not a run of ours."""
    record = _read_json(path / RESULT, "has no result: it was cut off", _again(path))
    schema = record.get("schema")
    needed = SHAPES.get(schema) if isinstance(schema, str) else None
    if needed is None or not needed <= record.keys():
        raise RunNotFoundError(
            f"run {quoted(path.name)}: {RESULT} is of no kind that this version reads",
            hint="specrepro runs list",
        )
    return record


def request(path: Path) -> dict[str, Any]:
    """What a run was asked for."""
    return _read_json(path / REQUEST, "is not a run directory", "specrepro runs list")


def stored(folder: Path) -> list[StoredRun]:
    """The runs in a folder, newest first; what is not a run is passed over."""
    runs = []
    for path in _runs(folder):
        try:
            asked = request(path)
        except RunNotFoundError:
            asked = {}
        runs.append(
            StoredRun(
                path.name,
                path,
                str(asked.get("command", "?")),
                str(asked.get("started", "?")),
                _state(path),
                sum(f.stat().st_size for f in path.rglob("*") if f.is_file()),
            )
        )
    return runs


def prune(folder: Path, keep: int) -> list[StoredRun]:
    """Remove all but the newest `keep` runs; those removed.

    A run at work stays, and so does the one that `latest` names, while any is kept at all.
    """
    latest_run = (folder / LATEST).resolve() if keep else None
    gone = [r for r in stored(folder)[keep:] if r.path.resolve() != latest_run]
    gone = [run for run in gone if not in_use(run.path)]
    for run in gone:
        shutil.rmtree(run.path)
    latest = folder / LATEST
    if latest.is_symlink() and not latest.exists():
        latest.unlink()
    return gone


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file whole or not at all; NoRoomError where that cannot be."""
    text = json.dumps(value, indent=1, allow_nan=False)
    temporary = path.with_name(f".{path.name}.{_fresh()}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise NoRoomError(
            f"{path.name} cannot be written to {quoted(str(path.parent))}: "
            f"{error.strerror or error}",
            hint="--runs DIR names another folder",
        ) from error


def _fresh() -> str:
    # as secrets.token_hex makes it, which loads OpenSSL
    return os.urandom(3).hex()


def now() -> str:
    """The time of day in UTC, ISO 8601."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _again(path: Path) -> str:
    """What to do about a run without a result that can be read."""
    try:
        resumes = request(path).get("command") == "run" and not (path / RESULT).exists()
    except RunNotFoundError:
        resumes = False
    return f"specrepro run --resume {path.name}" if resumes else "run its command again"


def _runs(folder: Path) -> Iterator[Path]:
    """The run directories in a folder, newest first."""
    if folder.is_dir():
        for path in sorted(folder.iterdir(), reverse=True):
            if not path.is_symlink() and (path / REQUEST).is_file():
                yield path


def _state(path: Path) -> str:
    if not (path / RESULT).is_file():
        return "cut off"
    try:
        load(path)
    except RunNotFoundError:
        return "damaged"
    return "finished"


def _read_json(path: Path, missing: str, hint: str) -> dict[str, Any]:
    name = quoted(path.parent.name)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RunNotFoundError(f"run {name} {missing}", hint=hint) from error
    except ValueError as error:
        raise RunNotFoundError(f"run {name}: {path.name} cannot be read", hint=hint) from error
    if not isinstance(value, dict):
        raise RunNotFoundError(f"run {name}: {path.name} is not a run of ours", hint=hint)
    return value
