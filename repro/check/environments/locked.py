"""The packages a resolution came to, as uv writes them down: `pylock.toml` (PEP 751). Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

from ...errors import NoEnvironmentError

# what a torch for processors cannot load beside it unless they are built for processors too
COMPANIONS = ("torchaudio", "torchcodec", "torchvision")


@dataclass(frozen=True, slots=True)
class Locked:
    """One package.

    `size`: bytes of its archive, None where neither index nor disk tells. `hashes`: sha256 of the
    archives that may be taken. `direct`: it is one file or URL, not a version of an index.
    """

    name: str
    version: str
    size: int | None
    hashes: tuple[str, ...] = ()
    direct: bool = False


def read_lock(text: str) -> tuple[Locked, ...]:
    """The packages of a `pylock.toml`. NoEnvironmentError (infra) for one that cannot be read."""
    try:
        content = tomllib.loads(text)
        packages = content["packages"]
        return tuple(map(_locked, packages))
    except (tomllib.TOMLDecodeError, AttributeError, KeyError, TypeError) as error:
        raise NoEnvironmentError(
            "uv wrote a list of packages that cannot be read",
            infra=True,
            hint="another version of uv may be understood: pip install -U uv",
        ) from error


def requirements(packages: Iterable[Locked], direct: str) -> str:
    """The packages as exact requirements with their hashes, one a line; `direct` stands for the
    one that is a file or URL. (`==` would take a version with a local part too.)

    uv installs `pylock.toml` itself too, and then fetches again what it has cached wherever the
    server sends no validators: 1 GB of 3.7 for a second release of vLLM.
    """
    return "".join(
        " ".join(
            (
                urldefrag(direct).url if p.direct else f"{p.name}==={p.version}",
                *(f"--hash=sha256:{digest}" for digest in p.hashes),
            )
        )
        + "\n"
        for p in packages
    )


def left_out(packages: Iterable[Locked]) -> tuple[str, ...]:
    """The companions of torch that its CPU build, if that is the one, cannot load.

    Of `torchvision` the usual index has the CUDA build only, whose operators are missing in
    `torch+cpu`, so that importing the engine ends in an exception. Text needs none of them.
    """
    versions = {package.name: package.version for package in packages}
    if not cpu_build(versions.get("torch", "")):
        return ()
    return tuple(n for n in COMPANIONS if n in versions and not cpu_build(versions[n]))


def cpu_build(version: str) -> bool:
    """Whether a version says that it was built for processors, as in `2.13.0+cpu`."""
    return version.partition("+")[2] == "cpu"


def with_cuda(packages: Iterable[Locked]) -> bool:
    """Whether torch comes with CUDA's libraries: gigabytes that a box without a GPU cannot use."""
    return any(re.match(r"nvidia-(?:cublas|cudnn|cuda-runtime)\b", p.name) for p in packages)


def needed(packages: Iterable[Locked], held: Iterable[tuple[str, str]]) -> int:
    """Bytes of the archives that are not among `held` (name, version); unknown ones count 0."""
    there = set(held)
    return sum(p.size or 0 for p in packages if (p.name, p.version) not in there)


def _locked(package: dict[str, Any]) -> Locked:
    known = [a for kind in ("archive", "sdist") if (a := package.get(kind))]
    archives = [*package.get("wheels", ()), *known]
    found = (archive.get("hashes", {}).get("sha256") for archive in archives)
    return Locked(
        name=str(package["name"]),
        version=str(package.get("version", "")),
        size=_size(package.get("wheels") or known),
        hashes=tuple(digest for digest in found if re.fullmatch(r"[0-9a-f]{64}", str(digest))),
        direct="archive" in package,
    )


def _size(archives: Iterable[dict[str, Any]]) -> int | None:
    sizes = [size for archive in archives if (size := _archive_size(archive)) is not None]
    return max(sizes, default=None)


def _archive_size(archive: dict[str, Any]) -> int | None:
    size = archive.get("size")
    if isinstance(size, int) and not isinstance(size, bool) and size >= 0:
        return size
    path = archive.get("path")
    parts = urlsplit(str(archive.get("url", "")))
    if path is None and parts.scheme == "file":
        path = unquote(parts.path)
    try:
        return Path(str(path)).stat().st_size if path else None
    except (OSError, ValueError):
        return None
