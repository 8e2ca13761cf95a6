"""The error tree, the exit statuses, and the one place that maps one to the other.

SpecreproError
├── UsageError               what was asked for cannot be understood
│   ├── CaseError            a case file is invalid (file, line, column, key)
│   └── RunNotFoundError     no such run directory
├── KernelError              a shipped or edited kernel cannot be used
│   ├── StaleKernelError     its source was edited and no compiler is at hand
│   └── LaunchRefusedError   arguments break what the kernel was compiled for
├── NotPostedError           a text did not reach GitHub, or it is not known whether it did
├── UntestableError          a build cannot be had, or cannot be looked at
│   ├── UnreachableError     for now: who has it does not answer
│   └── NoEnvironmentError   there is no environment in which it could run
├── InterruptedRunError      stopped by the user; the hint is the line to resume
├── UnsupportedError         the emulator met something it does not execute
├── ClusterError             a cluster cannot be had, or is lost
└── LaneError                a lane could not be started or its result could not be read
"""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit statuses of every command; docs/verdicts.md has the table for users."""

    OK = 0
    FAULT = 1
    USAGE = 2
    INTERNAL = 3
    UNTESTABLE = 125
    INTERRUPTED = 130


# When several apply, the first one here wins.
PRECEDENCE = (
    Exit.INTERRUPTED,
    Exit.INTERNAL,
    Exit.USAGE,
    Exit.FAULT,
    Exit.UNTESTABLE,
    Exit.OK,
)


def worst(statuses: list[Exit]) -> Exit:
    """The status that stands for all of them, by PRECEDENCE; OK for none."""
    return next((status for status in PRECEDENCE if status in statuses), Exit.OK)


class SpecreproError(Exception):
    """Base of all errors a user may see: what happened, where, and what to do next."""

    exit_status = Exit.INTERNAL

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class UsageError(SpecreproError):
    """What was asked for cannot be understood or contradicts itself."""

    exit_status = Exit.USAGE


class CaseError(UsageError):
    """A case file is invalid. `where` is file:line:column, `key` the dotted path of the key."""

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        key: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.key = key


class RunNotFoundError(UsageError):
    """No run directory answers to the given name."""


class KernelError(SpecreproError):
    """A kernel cannot be used as it is."""

    exit_status = Exit.UNTESTABLE


class StaleKernelError(KernelError):
    """The source of a kernel differs from the one its PTX was made of, and no compiler is here."""


class LaunchRefusedError(KernelError):
    """Arguments break what the kernel was compiled for (alignment, type, range)."""


class NotPostedError(SpecreproError):
    """A text did not reach GitHub, or it cannot be told whether it did; it is kept in its run."""

    exit_status = Exit.FAULT


class UntestableError(SpecreproError):
    """A build cannot be had, is not what it says it is, or cannot be looked at.

    temporary: it says nothing about the build, and the same question may be answered later.
    """

    exit_status = Exit.UNTESTABLE
    temporary = False


class UnreachableError(UntestableError):
    """A server does not answer, or not in time, also when it is asked again."""

    temporary = True


class NoRoomError(UntestableError):
    """This machine has no room for what must be written, or does not let it be written."""

    temporary = True


class GpuLostError(UntestableError):
    """The GPU that builds were tried on is gone, which says nothing of any of them."""

    temporary = True


class NoEnvironmentError(UntestableError):
    """There is no environment in which a build could run.

    `infra`: because of this machine or its network (no uv, no room, no answer), which says nothing
    of the build and may be over the next time; else the build cannot be installed here at all.
    """

    def __init__(
        self,
        message: str,
        *,
        infra: bool,
        where: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.infra = self.temporary = infra


class InterruptedRunError(SpecreproError):
    """The user stopped a run; what is whole of it can be resumed."""

    exit_status = Exit.INTERRUPTED


class UnsupportedError(SpecreproError):
    """The emulator met an instruction or directive that it does not execute; never guessed."""

    exit_status = Exit.UNTESTABLE


class ClusterError(SpecreproError):
    """A cluster cannot be had, none of its nodes can be used, or it is lost in the middle."""

    exit_status = Exit.UNTESTABLE


class LaneError(SpecreproError):
    """A lane could not be started, or what it left behind could not be read."""

    exit_status = Exit.UNTESTABLE
