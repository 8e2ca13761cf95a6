"""From the arguments of a command line to case files: files, folders, ids of shipped cases."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from ..errors import CaseError
from ..escape import printable, quoted
from ..scenarios.declare import nearest

SUFFIX = ".yaml"


def shipped_cases() -> list[Path]:
    """The case files inside the package, by name; a file is named after its case's id."""
    return _cases_in(Path(str(files(__package__.partition(".")[0]) / "cases")))


def find_cases(arguments: Sequence[str]) -> list[Path]:
    """The case files that `arguments` name, in order, each once.

    An argument is a file, a folder (its *.yaml, by name) or the id of a shipped case. CaseError for
    a folder without cases and for anything else.
    """
    found: dict[Path, Path] = {}
    for argument in arguments:
        for path in _named(argument):
            found.setdefault(path.resolve(), path)
    return list(found.values())


def _named(argument: str) -> list[Path]:
    path = Path(argument)
    where = printable(argument)
    if path.is_dir():
        cases = _cases_in(path)
        if not cases:
            raise CaseError(f"a folder without cases; a case is a *{SUFFIX} file", where=where)
        return cases
    if path.exists() or path.suffix or path.name != argument:
        return [path]  # reading it says what is wrong with it
    shipped = {case.stem: case for case in shipped_cases()}
    if argument not in shipped:
        message = f"no file, folder or shipped case is called {quoted(argument)}"
        raise CaseError(message, hint=nearest(argument, shipped) or "see them: specrepro list")
    return [shipped[argument]]


def _cases_in(folder: Path) -> list[Path]:
    try:
        return sorted(p for p in folder.iterdir() if p.suffix == SUFFIX and p.name[0] != ".")
    except OSError as error:
        reason = error.strerror or str(error)
        raise CaseError(f"cannot be read: {reason}", where=printable(str(folder))) from error
