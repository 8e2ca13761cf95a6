"""`specrepro watch`: Xid incidents as they happen, alone or around a command of the user's."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import Exit
from .options import Json, Quiet, Runs, Verbose

if TYPE_CHECKING:
    from ..watch.watchers import Watchers

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- COMMAND...]", help="A command to run under the watchers."),
]
KernelLogFile = Annotated[
    Path | None,
    typer.Option("--kernel-log", metavar="FILE", help="Follow this file as the kernel log."),
]
Linger = Annotated[
    float,
    typer.Option("--linger", metavar="SECONDS", min=0.0, help="How long to watch after the end."),
]
For = Annotated[
    float | None,
    typer.Option("--for", metavar="SECONDS", min=0.0, help="Stop by itself [default: Ctrl-C]."),
]
CollectEnv = Annotated[
    bool | None,
    typer.Option(
        "--collect-env/--no-collect-env",
        help="Ask the command's Python for collect_env [default: where something went wrong].",
    ),
]
POLL = 0.2  # seconds
SETTLED = 2.0  # seconds without a further event after which an incident is told


def watch(
    words: Words = None,
    kernel_log: KernelLogFile = None,
    linger: Linger = 2.0,
    for_: For = None,
    collect_env: CollectEnv = None,
    runs: Runs = None,
    json_: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Show the driver's Xid incidents; with a command, run it, and store what was seen.

    The command's output, its signals and its exit status pass through.
    """
    from ..watch.kernel_log import Place
    from ..watch.watchers import Watchers

    watchers = Watchers(Place(kernel_log) if kernel_log else None, linger)
    if words:
        _around(words, watchers, collect_env, runs, json_, quiet, verbose)
    else:
        _live(watchers, for_, json_)


def _around(
    words: list[str],
    watchers: Watchers,
    collect_env: bool | None,
    runs: Path | None,
    json_: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    from ... import __version__
    from .. import store
    from ..report.console import console
    from ..report.watch_page import print_watch
    from ..run_record import environment
    from ..watch.gpus import gpus
    from ..watch.record import watch_record
    from ..watch.supervised import run

    path = store.create(store.runs_folder(runs), "watch", {"words": words})
    started, clock = store.now(), time.monotonic()
    with store.held(path):
        before = gpus()
        ended = None
        try:
            with watchers:
                ended = run(words, path / "output.log")
        except KeyboardInterrupt:
            # the command has ended, and only the while after it was cut short
            if ended is None:
                raise
        if lines := watchers.lines():
            # beside the output, where diagnose looks
            (path / "kernel.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
        record = watch_record(
            {
                "id": path.name,
                "path": str(path),
                "command": "watch",
                "version": __version__,
                "started": started,
                "seconds": round(time.monotonic() - clock, 3),
            },
            environment(),
            words,
            ended.status,
            watchers.seen(),
            (before, gpus()),
            os.environ,
            {"path": str(path / "output.log"), "bytes": ended.kept, "cut": ended.cut},
        )
        store.finish(path, record)
        if collect_env is None:
            collect_env = bool(ended.status or record["incidents"])
        # what was seen is stored by now, and asking an engine's Python takes a while
        record = {**record, "collect_env": _collected(words, collect_env)}
        store.finish(path, record)
    # stdout is the command's; what we say goes to stderr
    if json_:
        sys.stderr.write(json.dumps(record, allow_nan=False) + "\n")
    else:
        print_watch(console(stderr=True), record, quiet=quiet, verbose=verbose)
    raise typer.Exit(ended.status)


def _collected(words: list[str], wanted: bool) -> dict[str, Any]:
    """What `collect_env` says in the Python that ran the command."""
    from dataclasses import asdict

    from ..check.environments.collected import Collected, collect, python_of

    if not wanted:
        return asdict(Collected(reason="not asked for: --collect-env asks"))
    python = python_of(words, os.environ)
    if python is None:
        return asdict(Collected(reason="which Python runs the command is not known"))
    try:
        return asdict(collect(python, os.environ))
    except KeyboardInterrupt:
        return asdict(Collected(reason="interrupted"))


def _live(watchers: Watchers, seconds: float | None, json_: bool) -> None:
    from ..report.console import console
    from ..report.watch_page import print_sources
    from ..watch.record import watched_record

    last = None if seconds is None else time.monotonic() + seconds
    told = 0
    with watchers:
        sources = watchers.seen().watched
        if json_:
            print(json.dumps({"watched": [watched_record(one) for one in sources]}), flush=True)
        else:
            print_sources(console(stderr=True), [watched_record(one) for one in sources])
        if not any(one.observable for one in sources):
            raise typer.Exit(int(Exit.UNTESTABLE))
        try:
            while last is None or time.monotonic() < last:
                time.sleep(POLL)
                told += _tell(watchers, told, json_, settled=True)
        except KeyboardInterrupt:
            # who stops it a moment after a fault wants to hear of that fault
            _tell(watchers, told, json_, settled=False)
            raise
    _tell(watchers, told, json_, settled=False)


def _tell(watchers: Watchers, told: int, json_: bool, *, settled: bool) -> int:
    """Print incidents beyond the first `told`; how many. settled: only those that are over."""
    from ..report.console import console
    from ..report.watch_page import print_incident
    from ..watch.record import incident_record

    count = 0
    for incident in watchers.seen().incidents[told:]:
        if settled and time.time() - incident.events[-1].at < SETTLED:
            break
        record = incident_record(incident)
        if json_:
            print(json.dumps(record), flush=True)
        else:
            print_incident(console(), record)
        count += 1
    return count
