"""A Python of the user's: where it is, and where it looks for packages, asked of itself."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from ...errors import NoEnvironmentError
from ...escape import printable
from ..local import Place
from .process import Ended, inherited, run_tool

SECONDS = 60.0
MOST_FOLDERS, LONGEST = 1000, 4096
MARK = "specrepro-path:"
HINT = "--python PATH is the interpreter of an environment with vLLM in it"
# `-I` keeps variables and the current folder out. What .pth files of the environment print comes
# before the mark; nothing of the engine is imported.
QUESTION = "import json, sys; print(sys.argv[1] + json.dumps(sys.path))"


def executable(python: Path) -> Path:
    """The interpreter that `python` names, which may be the folder of a virtual environment.

    NoEnvironmentError (not infra) if there is none.
    """
    path = python.expanduser().absolute()
    if path.is_dir():
        path = path / "bin" / "python"
    if not os.access(path, os.X_OK) or not path.is_file():
        raise NoEnvironmentError(
            "no such interpreter", infra=False, where=printable(str(path)), hint=HINT
        )
    return path


def place(
    python: Path, environ: Mapping[str, str] | None = None, *, seconds: float = SECONDS
) -> Place:
    """The folders in which an interpreter finds packages. It runs in a group of its own, for
    `seconds`, and of what it says the end is read; NoEnvironmentError for one that does not answer
    (infra) or gives no such list.
    """
    path = executable(python)
    env = inherited(os.environ if environ is None else environ)
    command: list[str | Path] = [path, "-I", "-B", "-c", QUESTION, MARK]
    ended = run_tool(command, cwd=Path("/"), env=env, seconds=seconds)
    if ended.status is None:
        raise NoEnvironmentError(
            f"the interpreter did not answer within {seconds:g} s", infra=True, where=str(path)
        )
    folders = _folders(ended)
    if folders is None:
        raise NoEnvironmentError(
            f"no Python that says where it finds packages (exit status {ended.status})",
            infra=False,
            where=printable(str(path)),
            hint=HINT,
        )
    return Place(str(path), folders)


def _folders(ended: Ended) -> tuple[str, ...] | None:
    _, mark, answer = ended.output.rpartition(MARK)
    if ended.status != 0 or not mark:
        return None
    try:
        said = json.loads(answer)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, list) or len(said) > MOST_FOLDERS:
        return None
    if not all(isinstance(one, str) and len(one) < LONGEST and "\0" not in one for one in said):
        return None
    return tuple(one for one in said if os.path.isabs(one) and os.path.isdir(one))
