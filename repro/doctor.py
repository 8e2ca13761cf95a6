"""What this machine has for each thing specrepro does, and what to do about what it has not.

Every check answers by itself: one that fails hides no other. Nothing is imported that takes long
or touches a GPU; versions come from the metadata of packages, and programs are asked with a limit.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from .errors import SpecreproError
from .escape import printable
from .watch.gpus import Gpu, Gpus, gpus
from .watch.kernel_log import KernelLog, Place
from .watch.nvml_events import NvmlEvents

OK, BAD, UNKNOWN = "ok", "bad", "unknown"
ANSWER = 8.0  # seconds in which a program says its version
ROOM = 8 << 30  # bytes that the environments of two builds take
_RELEASE = re.compile(r"release (\d{1,3})\.(\d{1,3})")
_CUDA_OF = re.compile(r"\+cu(\d{2})(\d)")
CONTAINERS = (("/.dockerenv", "docker"), ("/run/.containerenv", "podman"))


@dataclass(frozen=True, slots=True)
class Check:
    """One thing. state: `ok`, `bad` or `unknown`. said: what was found. hint: what to do, "" where
    there is nothing to do. serves: what it is for."""

    name: str
    state: str
    said: str
    hint: str = ""
    serves: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """Where things are looked for; a test has its own."""

    environ: Mapping[str, str]
    place: Place
    root: Path = Path("/")


def examine(machine: Machine, no_device_lane: str) -> list[Check]:
    """Every check, in the order in which a person would ask. no_device_lane: why no GPU lane can
    run, "" if one can."""
    found = gpus()
    return [
        *_driver(found),
        _watcher("NVML events", NvmlEvents(), "Xid incidents of a run"),
        _watcher("kernel log", KernelLog(machine.place), "Xid incidents with process and address"),
        _lanes(no_device_lane),
        _sanitizer(machine),
        _program(machine, "cuda-gdb", "places in a core dump", "a CUDA toolkit has it"),
        _ptrace(machine),
        _torch(found),
        _triton(machine, found),
        _package("vllm", "check --vllm installed", "check --vllm VERSION needs none"),
        _program(machine, "uv", "check --depth engine", "pip install 'specrepro[engine]'"),
        _gh(machine),
        _container(machine),
        _room(),
    ]


def _driver(found: Gpus) -> Iterator[Check]:
    if not found.gpus:
        hint = "install NVIDIA's driver; reference and emulator need none"
        yield Check("driver", BAD, found.reason, hint, "lanes on a GPU")
        return
    yield Check("driver", OK, f"{found.driver or 'version not told'}, CUDA {found.cuda or '?'}")
    if found.reason:
        hint = "the kernel log says why; a GPU that is lost needs a reset or a reboot"
        yield Check("GPUs not told", BAD, printable(found.reason), hint, "lanes on a GPU")
    for gpu in found.gpus:
        yield _gpu(gpu)
        yield _others(gpu)


def _gpu(gpu: Gpu) -> Check:
    name = f"GPU {gpu.index}"
    parts = [gpu.name or "name not told", f"capability {gpu.capability or '?'}"]
    if gpu.memory is not None and gpu.free is not None:
        parts.append(f"{gpu.free / 2**30:.0f} of {gpu.memory / 2**30:.0f} GiB free")
    if gpu.mig:
        parts.append("partitioned (MIG)")
    said = ", ".join(parts)
    if gpu.recovery not in (None, "none"):
        return Check(name, BAD, f"{said}; the driver asks to {gpu.recovery}", "do so first")
    return Check(name, OK, said)


def _others(gpu: Gpu) -> Check:
    name = f"GPU {gpu.index}, others"
    serves = "planting a fault, which may end them"
    if gpu.processes is None:
        return Check(name, UNKNOWN, "the driver does not tell who computes on it", "", serves)
    if gpu.processes:
        pids = ", ".join(str(process.pid) for process in gpu.processes[:8])
        return Check(name, BAD, f"host pids {pids} compute on it", "use another GPU", serves)
    return Check(name, OK, "nobody else computes on it", "", serves)


def _watcher(name: str, watcher: NvmlEvents | KernelLog, serves: str) -> Check:
    watcher.start()
    watched = watcher.watched
    watcher.stop()
    if watched.observable:
        return Check(name, OK, "can be watched", "", serves)
    hint = watched.hint if watched.hint != "specrepro doctor" else "see driver"
    return Check(name, BAD, watched.reason, hint, serves)


def _lanes(no_device_lane: str) -> Check:
    if no_device_lane:
        said = f"reference and emulator; no GPU lane: {no_device_lane}"
        return Check("lanes", BAD, said, "", "specrepro run")
    return Check("lanes", OK, "reference, emulator, and those on a GPU", "", "specrepro run")


def _sanitizer(machine: Machine) -> Check:
    from .sanitizer.tool import find

    serves = "memcheck, racecheck, initcheck, synccheck"
    with tempfile.TemporaryDirectory(prefix="specrepro-doctor-") as scratch:
        try:
            tool = find(machine.environ, Path(scratch))
        except SpecreproError as error:
            return Check("compute-sanitizer", BAD, error.message, error.hint or "", serves)
    return Check("compute-sanitizer", OK, f"{tool.version} {tool.origin}", "", serves)


def _program(machine: Machine, name: str, serves: str, hint: str) -> Check:
    path = shutil.which(name, path=machine.environ.get("PATH", ""))
    if path is None and name == "uv":
        path = _wheel_of_uv()
    if path is None:
        return Check(name, BAD, "not found", hint, serves)
    said, why = _answer([path, "--version"], machine.environ)
    if why:
        return Check(name, UNKNOWN, why, "", serves)
    lines = [line for line in said.splitlines() if any(c.isdigit() for c in line)]
    return Check(name, OK, printable(lines[0].strip())[:80] if lines else "found", "", serves)


def _wheel_of_uv() -> str | None:
    try:
        from uv import find_uv_bin

        return str(find_uv_bin())
    except (ImportError, FileNotFoundError):
        return None


def _answer(words: list[str], environ: Mapping[str, str]) -> tuple[str, str]:
    """What a program prints, or "" and why nothing."""
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ANSWER,
            check=False,
            env=dict(environ),
        )
    except subprocess.TimeoutExpired:
        return "", f"found, but it does not answer within {ANSWER:g} s"
    except OSError as error:
        return "", f"found, but it cannot be started: {error.strerror}"
    if done.returncode:
        return "", f"found, but it ends with status {done.returncode}"
    return done.stdout.decode("utf-8", "replace"), ""


def _gh(machine: Machine) -> Check:
    serves = "specrepro attach"
    path = shutil.which("gh", path=machine.environ.get("PATH", ""))
    if path is None:
        token = machine.environ.get("GH_TOKEN") or machine.environ.get("GITHUB_TOKEN")
        if not token:
            return Check("gh", BAD, "not found", "or a token in GH_TOKEN", serves)
        said = "not here; a token is in the environment"
        if importlib.util.find_spec("requests") is None:
            hint = "pip install 'specrepro[attach]'"
            return Check("gh", BAD, f"{said}, and requests is not installed", hint, serves)
        return Check("gh", OK, f"{said}, whether GitHub takes it was not asked", "", serves)
    _, why = _answer([path, "auth", "status"], machine.environ)
    if "status" in why:  # it says the same where there is no network
        said = "found, and says that it has no valid login"
        return Check("gh", BAD, said, "gh auth status says why; gh auth login", serves)
    return Check("gh", UNKNOWN if why else OK, why or "found, logged in", "", serves)


def _ptrace(machine: Machine) -> Check:
    serves = "cuda-gdb"
    scope = machine.root / "proc/sys/kernel/yama/ptrace_scope"
    try:
        level = int(scope.read_text(encoding="ascii").strip())
    except FileNotFoundError:
        return Check("ptrace", OK, "not restricted", "", serves)
    except (OSError, ValueError):
        return Check("ptrace", UNKNOWN, "the kernel does not tell", "", serves)
    if level >= 3:  # `kernel.yama.ptrace_scope` in the kernel's documentation: no way back
        return Check("ptrace", BAD, f"forbidden to all ({level})", "until a reboot", serves)
    if level >= 2 and os.geteuid():
        return Check("ptrace", BAD, f"restricted to administrators ({level})", "as root", serves)
    return Check("ptrace", OK, f"a process may trace its children ({level})", "", serves)


def _torch(found: Gpus) -> Check:
    serves = "Triton's own launch on a GPU; without it the driver launches the same kernels"
    hint = "pip install 'specrepro[torch]', or the torch for this driver"
    version = _version("torch")
    if version is None:
        return Check("torch", BAD, "not installed", hint, serves)
    if "+cpu" in version:
        return Check("torch", BAD, f"{version} is built for CPUs", hint, serves)
    built = _CUDA_OF.search(version)
    if built is None or found.cuda is None:
        said = f"{version}; whether it fits the driver is not told"
        return Check("torch", UNKNOWN, said, "", serves)
    if int(built[1]) > _major(found.cuda):
        said = f"{version} is built for CUDA {built[1]}, the driver has {found.cuda}"
        return Check("torch", BAD, said, "a newer driver, or a torch for this one", serves)
    return Check("torch", OK, f"{version} for CUDA {built[1]}.{built[2]}", "", serves)


def _triton(machine: Machine, found: Gpus) -> Check:
    """Triton's own ptxas makes the machine code: of a later CUDA than the driver's it is refused,
    of the same or an earlier one it runs (CUDA's minor version compatibility)."""
    serves = "kernels on a GPU, edited kernels"
    check = _package("triton", serves, "pip install 'specrepro[kernels]'")
    if check.state != OK:
        return check
    release = _RELEASE.search(_answer([_ptxas(found), "--version"], machine.environ)[0])
    if release is None:
        return replace(check, state=UNKNOWN, said=f"{check.said}; its ptxas does not answer")
    said = f"{check.said}, ptxas of CUDA {release[1]}.{release[2]}"
    if found.cuda is not None and int(release[1]) > _major(found.cuda):
        said += f"; the driver has {found.cuda}"
        return replace(check, state=BAD, said=said, hint="a newer driver, or an older Triton")
    return replace(check, said=said)


def _ptxas(found: Gpus) -> str:
    """The ptxas that Triton takes for these GPUs (`get_ptxas` of its backends/nvidia/compiler.py,
    3.9.0: another one from capability 9.0 on); a name that is no program where there is none."""
    later = any(_major(gpu.capability or "0") >= 9 for gpu in found.gpus)
    name = "ptxas-blackwell" if later else "ptxas"
    files = importlib.metadata.files("triton") or ()
    return next((str(file.locate()) for file in files if file.name == name), f"no {name}")


def _major(version: str) -> int:
    return int(version.partition(".")[0])


def _package(name: str, serves: str, hint: str) -> Check:
    version = _version(name)
    if version is None:
        return Check(name, BAD, "not installed", hint, serves)
    return Check(name, OK, version, "", serves)


def _version(name: str) -> str | None:
    try:
        return printable(importlib.metadata.version(name))[:80]
    except importlib.metadata.PackageNotFoundError:
        return None


def _container(machine: Machine) -> Check:
    for mark, name in CONTAINERS:
        if (machine.root / mark.lstrip("/")).exists():
            hint = "pids of an Xid are the host's; the kernel log is outside"
            return Check("container", OK, f"inside one ({name})", hint)
    if "KUBERNETES_SERVICE_HOST" in machine.environ:
        return Check("container", OK, "inside one (Kubernetes)", "pids of an Xid are the host's")
    return Check("container", OK, "no sign of one")


def _room() -> Check:
    from platformdirs import user_cache_path

    serves = "check --depth engine"
    folder: Path = user_cache_path("specrepro", appauthor=False)
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Check("room for builds", UNKNOWN, str(error.strerror), "", serves)
    said = f"{free / 2**30:.0f} GiB free"
    if free < ROOM:
        hint = "specrepro environments prune, or XDG_CACHE_HOME on a larger disk"
        return Check("room for builds", BAD, said, hint, serves)
    return Check("room for builds", OK, said, "", serves)
