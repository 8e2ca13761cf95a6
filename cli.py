"""The command line: assembles the commands. Each imports what it needs when it runs."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from . import __version__
from .repro.commands.attach import attach
from .repro.commands.bisecting import bisect
from .repro.commands.check import check
from .repro.commands.conversion import pass_plain_values
from .repro.commands.diagnose import diagnose
from .repro.commands.doctor import doctor
from .repro.commands.emulate import emulate
from .repro.commands.ending import Escape, ended, for_git_bisect
from .repro.commands.environments import app as environments
from .repro.commands.explain import explain
from .repro.commands.list_cases import list_cases
from .repro.commands.new import new
from .repro.commands.report import report
from .repro.commands.run import run
from .repro.commands.runs import app as runs
from .repro.commands.sanitize import sanitize
from .repro.commands.schema import schema
from .repro.commands.session import app as session
from .repro.commands.show import show
from .repro.commands.watch import watch
from .repro.report.console import COLOR, Color


class Commands(TyperGroup):
    """The group of all commands; exceptions leave it unchanged by typer."""

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
app.command()(run)
app.command()(check)
app.command()(bisect)
app.add_typer(session, name="session")
app.command()(report)
app.command()(attach)
app.command()(diagnose)
app.command()(explain)
app.add_typer(runs, name="runs")
app.add_typer(environments, name="environments")
app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})(
    watch
)
app.command()(doctor)
app.command(name="list")(list_cases)
app.command()(show)
app.command()(schema)
app.command()(new)
app.command()(emulate)
app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})(
    sanitize
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
    pass_plain_values()
    _leave_out_all_but(sys.argv[1] if len(sys.argv) > 1 else "")
    sys.exit(for_git_bisect(ended(lambda: app(prog_name="specrepro")), sys.argv))


def _leave_out_all_but(name: str) -> None:
    """Keep the command of this name alone, if there is one: typer builds every one it knows."""
    commands = [
        c
        for c in app.registered_commands
        if (c.name or getattr(c.callback, "__name__", "")) == name
    ]
    groups = [group for group in app.registered_groups if group.name == name]
    if commands or groups:
        app.registered_commands, app.registered_groups = commands, groups
