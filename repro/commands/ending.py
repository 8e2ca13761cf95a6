"""How a command ends: the one place where an exception becomes an exit status."""

from __future__ import annotations

import errno
import os
import platform
import sys
import traceback
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ..errors import Exit, SpecreproError

# What a shell reports of a process that SIGPIPE ended; the reader has gone, so nobody is told.
BROKEN_PIPE = 141
# What writing to a full or failing device ends in; an error about a file would name it.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
# `git bisect run` reads 1..127 except 125 as "bad" and stops at 128.
STOP_BISECT = 128


class Escape(BaseException):
    """Carries an exception out through typer, which would give it a status of its own.

    Typer turns an interrupt, an end of input and a broken pipe into 1, which is a verdict here.
    """


def ended(command: Callable[[], object]) -> int:
    """Run `command` to its end and say with which status the process must exit.

    Errors of ours are explained on stderr; anything unforeseen goes to a log file whose path is
    printed, never as a traceback to the terminal.
    """
    try:
        try:
            command()
        finally:
            sys.stdout.flush()
    except SystemExit as exit_:
        if exit_.code is None:
            return Exit.OK
        return exit_.code if isinstance(exit_.code, int) else _explained(exit_)
    except Escape as escape:
        return _explained(escape.__cause__ or escape)
    except BaseException as error:
        return _explained(error)
    return Exit.OK


def for_git_bisect(status: int, arguments: Sequence[str]) -> int:
    """The status with which a command that was given --git-bisect ends: a command line that cannot
    be understood, or an error of ours, says nothing about the build."""
    if "--git-bisect" in arguments and status in (Exit.USAGE, Exit.INTERNAL):
        return STOP_BISECT
    return status


def _explained(error: BaseException) -> int:
    if isinstance(error, KeyboardInterrupt):
        return Exit.INTERRUPTED
    if isinstance(error, BrokenPipeError):
        # The interpreter flushes stdout once more on its way out, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return BROKEN_PIPE
    from ..report.console import print_error

    if isinstance(error, OSError) and error.errno in NO_ROOM and error.filename is None:
        # the interpreter would try, and complain, once more on its way out
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        error = SpecreproError(f"the output could not be written: {error.strerror}")
    if not isinstance(error, SpecreproError):
        error = _internal(error)
    try:
        print_error(error)
    except BrokenPipeError:
        return BROKEN_PIPE
    return error.exit_status


def _internal(error: BaseException) -> SpecreproError:
    from ..escape import printable

    what = printable(f"{type(error).__name__}: {error}")[:200]
    try:
        hint = f"the log is in {_write_log(error)}"
    except OSError as failure:
        hint = f"no log could be written: {failure}"
    return SpecreproError(f"internal error: {what}", hint=hint)


def _write_log(error: BaseException) -> Path:
    """A Markdown file that can be put into an issue; its path. OSError if it fits nowhere."""
    from importlib.metadata import version

    now = datetime.now(UTC)
    text = "\n".join(
        (
            "# specrepro: internal error",
            "",
            f"- time: {now.isoformat(timespec='seconds')}",
            f"- specrepro {version('specrepro')}, Python {platform.python_version()}",
            f"- {platform.platform()}",
            f"- arguments: {sys.argv[1:]!r}",
            "",
            "```text",
            *(line.rstrip("\n") for line in traceback.format_exception(error)),
            "```",
            "",
        )
    )
    name = f"error-{now:%Y%m%dT%H%M%S}-{os.getpid()}.md"
    path = _log_folder() / name
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
    return path


def _log_folder() -> Path:
    import tempfile

    from platformdirs import user_log_path

    folder = user_log_path("specrepro", appauthor=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="specrepro-log-"))
    return folder if os.access(folder, os.W_OK) else Path(tempfile.mkdtemp(prefix="specrepro-log-"))
