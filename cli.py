"""The command line: which commands there are. Each is loaded when it is asked for."""

from __future__ import annotations

import os
import signal
import sys
from collections import UserDict
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from . import __version__
from .repro.commands.conversion import pass_plain_values
from .repro.commands.ending import Escape, ended, for_git_bisect
from .repro.report.console import COLOR, Color

# name → module of repro/commands and what it calls the command, in the order of the help
COMMANDS: Mapping[str, str] = {
    "run": "run:run",
    "check": "check:check",
    "bisect": "bisecting:bisect",
    "session": "session:app",
    "report": "report:report",
    "attach": "attach:attach",
    "diagnose": "diagnose:diagnose",
    "explain": "explain:explain",
    "runs": "runs:app",
    "environments": "environments:app",
    "cache": "cache:app",
    "watch": "watch:watch",
    "doctor": "doctor:doctor",
    "selftest": "selftest:selftest",
    "list": "list_cases:list_cases",
    "show": "show:show",
    "schema": "schema:schema",
    "new": "new:new",
    "emulate": "emulate:emulate",
    "sanitize": "sanitize:sanitize",
}
# what stands behind their own arguments is another program's command line
PASSING_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False}
SETTINGS: Mapping[str, dict[str, Any]] = {"watch": PASSING_ON, "sanitize": PASSING_ON}


class Loaded(UserDict[str, Any]):
    """Commands by name, each loaded when it is asked for: all of them cost more than most of them.

    Whoever asks for all, as the help and a shell's completion do, loads all.
    """

    def __init__(self, registered: Mapping[str, Any]) -> None:
        super().__init__(dict.fromkeys(COMMANDS) | dict(registered))

    def __getitem__(self, name: str) -> Any:
        if self.data[name] is None:
            self.data[name] = load(name)
        return self.data[name]


def load(name: str) -> Any:
    """The command, or the group of commands, of a name in COMMANDS, as click's object."""
    module, _, called = COMMANDS[name].partition(":")
    found = getattr(import_module(f".repro.commands.{module}", __package__), called)
    if not isinstance(found, typer.Typer):
        command, found = found, typer.Typer(add_completion=False, rich_markup_mode=None)
        found.command(name=name, context_settings=SETTINGS.get(name))(command)
    return typer.main.get_command(found)


class Commands(TyperGroup):
    """The group of all commands; exceptions leave it unchanged by typer."""

    def __init__(self, *, commands: Any = None, **more: Any) -> None:
        super().__init__(commands=Loaded(commands or {}), **more)  # type: ignore[arg-type]

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, EOFError, OSError) as error:
            raise Escape from error


app = typer.Typer(
    name="specrepro",
    cls=Commands,
    help="Bring a reported GPU fault of an LLM engine back, and say what it is.",
    add_completion=True,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    color: Annotated[
        Color, typer.Option("--color", help="Colour and style in the output.")
    ] = Color.AUTO,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(f"specrepro {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(2)
    COLOR.set(color)


def _end_as_interrupted() -> None:
    """A cancelled job gets SIGTERM and a closed terminal sends SIGHUP: both end a command as Ctrl+C
    does, with its line to go on and nothing left behind. Who asked to ignore one (nohup) has that.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def main() -> None:
    """Run the command line and exit with its status (docs/verdicts.md)."""
    if sys.argv[1:] == ["--version"]:
        # typer loads pydantic to convert the first option it meets
        sys.exit(ended(lambda: print(f"specrepro {__version__}")))
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller: nobody reads it
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for as long as we run
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    _end_as_interrupted()
    pass_plain_values()
    sys.exit(for_git_bisect(ended(lambda: app(prog_name="specrepro")), sys.argv))
