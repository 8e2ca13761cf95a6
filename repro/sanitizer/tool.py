"""Where compute-sanitizer is, and which version.

Looked for on PATH, in CUDA_HOME and CUDA_PATH, and in the wheels of `nvidia-cuda-sanitizer-api`.
The wheel for CUDA 13 holds nvidia/cu13/compute-sanitizer/; the one for CUDA 12 holds
nvidia/cuda_sanitizer_api/{bin,lib}, its binary without the bit that lets it be executed and not
beside its libraries. Such a binary is copied and told where they are.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import LaneError
from ..escape import quoted

NAME = "compute-sanitizer"
OLDEST = (2023, 3)  # before, --xml wants a value, and destroying the context cannot be asked for
ANSWER = 20.0  # seconds in which the tool says its version
INSTALL = "install the extra `gpu`, or put the compute-sanitizer of a CUDA toolkit on PATH"

_VERSION = re.compile(r"^Version (\d{4})\.(\d{1,3})((?:\.\d{1,6}){0,3})(.{0,80})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that said its version. command: its words before any option. version: as printed,
    `2026.4.0.0`. origin: how it was found, for a reader."""

    command: tuple[str, ...]
    version: str
    origin: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A binary that may be the tool. libraries: where those are that it loads into its target, if
    not beside it."""

    binary: Path
    origin: str
    libraries: Path | None = None


def find(environ: Mapping[str, str], scratch: Path, packages: Sequence[Path] | None = None) -> Tool:
    """The first tool that answers. LaneError says what was found and why it cannot be used.

    scratch: a folder for a copy, where the binary must not be executed as it lies. packages: the
    folders `nvidia` of installed wheels; those of this interpreter if None.
    """
    refused = []
    for candidate in candidates(environ, _packages() if packages is None else packages):
        command, why = _command(candidate, scratch)
        version = ""
        if command:
            version, why = _version(command)
        if version:
            return Tool(command, version, candidate.origin)
        refused.append(f"{quoted(str(candidate.binary))} ({candidate.origin}): {why}")
    if refused:
        raise LaneError(f"no usable {NAME}: {'; '.join(refused)}", hint=INSTALL)
    raise LaneError(f"no {NAME} on PATH, in CUDA_HOME or in a wheel", hint=INSTALL)


def candidates(environ: Mapping[str, str], packages: Sequence[Path]) -> list[Candidate]:
    """Files that may be the tool, in the order in which they are tried."""
    found = []
    if on_path := shutil.which(NAME, path=environ.get("PATH", "")):
        found.append(Candidate(Path(on_path), "on PATH"))
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if root := environ.get(name):
            places = (Path(root, "bin", NAME), Path(root, NAME, NAME))
            found += [Candidate(place, name) for place in _files(places)]
    for package in packages:
        for place in _files(sorted(package.glob(f"cu[0-9]*/{NAME}/{NAME}"))):
            found.append(Candidate(place, "its wheel", place.parent))
        twelve = package / "cuda_sanitizer_api"
        for place in _files([twelve / "bin" / NAME]):
            found.append(Candidate(place, "its wheel", twelve / "lib"))
    return found


def _files(places: Iterable[Path]) -> list[Path]:
    return [place for place in places if place.is_file()]


def _packages() -> list[Path]:
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return []
    places = spec.submodule_search_locations if spec else None
    return [Path(place) for place in places or ()]


def _command(candidate: Candidate, scratch: Path) -> tuple[tuple[str, ...], str]:
    binary = candidate.binary
    if not os.access(binary, os.X_OK):
        if candidate.libraries is None:
            return (), "it is not executable"
        binary = scratch / NAME
        try:
            shutil.copyfile(candidate.binary, binary)
            binary.chmod(0o700)
        except OSError as error:
            return (), f"it is not executable, and cannot be copied: {error.strerror}"
    if candidate.libraries is None:
        return (str(binary),), ""
    if not candidate.libraries.is_dir():
        return (), f"its libraries are not in {quoted(str(candidate.libraries))}"
    return (str(binary), "--injection-path", str(candidate.libraries)), ""


def _version(command: Sequence[str]) -> tuple[str, str]:
    """What the tool calls itself, or "" and why that is no version to work with."""
    try:
        done = subprocess.run(
            [*command, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=ANSWER,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "", f"it does not say its version within {ANSWER:g} s"
    except OSError as error:
        return "", f"it cannot be started: {error.strerror}"
    found = _VERSION.search(done.stdout.decode(errors="replace"))
    if found is None:
        return "", f"it says no version (status {done.returncode})"
    said = f"{found[1]}.{found[2]}{found[3]}"
    if (int(found[1]), int(found[2])) < OLDEST:
        return "", f"version {said} is older than {OLDEST[0]}.{OLDEST[1]}"
    return said, ""
