"""Which set of packages a build is installed with, and for which Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import NoEnvironmentError
from ...escape import printable
from ..tree import Told
from .asked import Asked
from .complaints import NO_TORCH
from .installer import Installer
from .interpreters import Interpreter, Needs, choose, fits, listed
from .locked import Locked, cpu_build, left_out, read_lock, with_cuda


@dataclass(frozen=True, slots=True)
class Chosen:
    """A set of packages for one interpreter, written down in the folder that is being filled.

    `backend`: whether torch is of PyTorch's own index, as uv calls it. `without`: packages that
    something wants and that were left out.
    """

    interpreter: Interpreter
    packages: tuple[Locked, ...]
    backend: str | None
    notes: tuple[str, ...]
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolver:
    """`own` is the Python that runs this, `others` asks for those that are here besides;
    `pytorch`: uv may ask PyTorch's own index for a torch without CUDA.
    """

    installer: Installer
    own: Interpreter
    others: Callable[[], list[Interpreter]]
    pytorch: bool
    told: Told

    def choose(self, asked: Asked, needs: Needs, folder: Path) -> Chosen:
        """A set of packages for the first interpreter that has one."""
        failures: list[NoEnvironmentError] = []
        tried: list[Interpreter] = []
        for interpreter in self._candidates(needs):
            self.told(f"{asked.package} {asked.word}: packages for Python {interpreter.version}")
            try:
                return self._lock(asked, interpreter, folder)
            except NoEnvironmentError as error:
                if error.infra:
                    raise
                failures.append(error)
                tried.append(interpreter)
        if not failures:
            raise _no_python(asked, needs, [self.own, *self.others()])
        if tried[1:]:
            failures[0].message += f"; nor with Python {listed(tried[1:])}"
        raise failures[0]

    def _candidates(self, needs: Needs) -> Iterator[Interpreter]:
        """Interpreters that the build takes; the others are looked for when they are wanted."""
        first = fits(self.own, needs)
        if first:
            yield self.own
        yield from choose([self.own, *self.others()], needs)[first:]

    def _lock(self, asked: Asked, interpreter: Interpreter, folder: Path) -> Chosen:
        def lock(
            without: Sequence[str] = (), backend: str | None = None, limits: Sequence[str] = ()
        ) -> tuple[Locked, ...]:
            return read_lock(
                self.installer.lock(
                    asked.requirement,
                    interpreter.path,
                    folder,
                    without=without,
                    torch_backend=backend,
                    limits=[*asked.limits, *limits],
                )
            )

        if asked.package == "vllm" and not cpu_build(asked.version or ""):
            packages = lock()
            torch = next((p.version for p in packages if p.name == "torch"), "")
            if cpu_build(torch):
                # a local part makes it the newer one, wherever an index has both
                packages = lock(limits=[f"torch != {torch}"])
            return Chosen(interpreter, packages, None, ())
        packages, backend, notes = self._for_processors(lock)
        if gone := left_out(packages):
            packages = lock(without=gone, backend=backend)
            notes += (
                f"without {', '.join(gone)}: of these the indexes have builds for CUDA only, "
                "which do not load beside a CPU build of torch",
            )
        return Chosen(interpreter, packages, backend, notes, gone)

    def _for_processors(
        self, lock: Callable[..., tuple[Locked, ...]]
    ) -> tuple[tuple[Locked, ...], str | None, tuple[str, ...]]:
        """A set of packages with a torch for processors if one is to be had, uv's name for where
        torch comes from, and notes.
        """
        try:
            packages = lock()
        except NoEnvironmentError as error:
            if not (self.pytorch and error.hint == NO_TORCH.hint):
                raise
            try:
                return lock(backend="cpu"), "cpu", ()
            except NoEnvironmentError as second:
                if second.infra:
                    raise NoEnvironmentError(
                        f"{error.message}, and PyTorch's own index does not answer", infra=True
                    ) from second
                raise
        if not (self.pytorch and with_cuda(packages)):
            return packages, None, ()
        try:
            return lock(backend="cpu"), "cpu", ()
        except NoEnvironmentError:
            # the list in the folder is that of the first set again
            return lock(), None, ("torch is its CUDA build: a CPU build was not to be had",)


def _no_python(asked: Asked, needs: Needs, have: Sequence[Interpreter]) -> NoEnvironmentError:
    what = f"{asked.package} {asked.word}"
    if needs.requires and not any(fits(one, Needs(needs.requires, ())) for one in have):
        reason = f"{what} wants Python {printable(needs.requires)}; there is {listed(have)}"
    else:
        reason = f"{what} has no wheel for Python {listed(have)}"
    return NoEnvironmentError(reason, infra=False, hint="`uv python install VERSION` adds a Python")
