"""What `collect_env` says of an environment: vLLM's own where the build has it, else torch's.

vLLM's bug form asks for its output, and the engine's maintainers for it in every thread. It is
made where the engine runs, by that Python: no other knows the versions that matter. Sources:
`vllm/collect_env.py` (read in 0.28.0) and `torch/utils/collect_env.py`, which it was made from.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import NoEnvironmentError
from ...escape import printable
from .process import Ended, run_tool

SECONDS = 120.0
MOST = 40_000  # characters that are kept; of more the beginning and the end
HEAD = 1024  # bytes of a script in which its interpreter is named
MARK = "specrepro-collected:"
NEITHER = 3  # exit status
# `-I` keeps variables of Python and the current folder out. What .pth files of the environment
# print comes before the mark; vLLM's own is passed over where it fails, and torch's is asked.
PROGRAM = f"""
import importlib.util, runpy, sys, traceback
from pathlib import Path
names = []
spec = importlib.util.find_spec("vllm")
folders = (spec.submodule_search_locations or ()) if spec else ()
if any((Path(folder) / "collect_env.py").is_file() for folder in folders):
    names.append("vllm.collect_env")
if importlib.util.find_spec("torch"):
    names.append("torch.utils.collect_env")
for name in names:
    print(sys.argv[1] + name, flush=True)
    try:
        runpy.run_module(name, run_name="__main__")
    except Exception:
        traceback.print_exc()
    else:
        sys.exit(0)
sys.exit(1 if names else {NEITHER})
"""
_NAME = re.compile(r"(?:vllm|torch\.utils)\.collect_env")
_PYTHON = re.compile(r"python(?:\d+(?:\.\d+)?t?)?")
# pip and uv write this where the path is too long, or has spaces, for a first line of its own
_LONG = re.compile(r"""'''exec' ["']?([^"'\0]{1,1000}?)["']? "\$0" "\$@\"""")


@dataclass(frozen=True, slots=True)
class Collected:
    """by: the module that said it, "" where none did, and then `reason` says why; where it is
    torch's, since vLLM's own failed, `reason` says how that did.

    output: as it came, a stranger's text. left_out: characters that were cut from its middle.
    """

    by: str = ""
    output: str = ""
    left_out: int = 0
    reason: str = ""


def collect(python: Path, env: Mapping[str, str], *, seconds: float = SECONDS) -> Collected:
    """Ask `python` for `collect_env`, in a process group of its own that has the variables `env`
    and ends after `seconds`. That it cannot be had is an answer, not an error."""
    command: list[str | Path] = [python, "-I", "-B", "-c", PROGRAM, MARK]
    try:
        with tempfile.TemporaryDirectory(prefix="sr-", ignore_cleanup_errors=True) as scratch:
            ended = run_tool(command, cwd=Path(scratch), env=env, seconds=seconds)
    except (NoEnvironmentError, OSError) as error:
        return Collected(reason=printable(str(error)))
    return _collected(ended, seconds)


def python_of(words: Sequence[str], environ: Mapping[str, str]) -> Path | None:
    """The Python that runs a command: the command itself, or what its script's first line names.
    None where neither tells, as for a shell, a container or a launcher that is no script."""
    found = shutil.which(words[0], path=environ.get("PATH")) if words else None
    if found is None:
        return None
    program = Path(os.path.abspath(found))  # a link is how an environment knows its packages
    if _PYTHON.fullmatch(program.name):
        return program
    try:
        with program.open("rb") as script:
            head = script.read(HEAD)
    except OSError:
        return None
    named = _interpreter(head)
    found = shutil.which(named, path=environ.get("PATH")) if named else None
    return Path(os.path.abspath(found)) if found and _PYTHON.fullmatch(Path(found).name) else None


def _interpreter(head: bytes) -> str:
    """The program that the beginning of a script names; "" where it names none."""
    if not head.startswith(b"#!"):
        return ""
    first, _, rest = head[2:].decode("utf-8", "replace").partition("\n")
    words = first.split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    elif words and Path(words[0]).name == "sh":
        long = _LONG.match(rest)
        words = [long[1]] if long else []
    return words[0] if words and "\0" not in words[0] else ""


def _collected(ended: Ended, seconds: float) -> Collected:
    if ended.status is None:
        return Collected(reason=f"no end within {seconds:g} s")
    if ended.status == NEITHER and MARK not in ended.output:
        return Collected(reason="neither vLLM's collect_env nor torch's is there")
    _, _, said = ended.output.rpartition(MARK)
    by, _, output = said.partition("\n")
    if ended.status != 0 or not _NAME.fullmatch(by) or not output.strip():
        return Collected(reason=f"exit status {ended.status}{_last(ended)}")
    passed_over = ended.output.count(MARK) > 1
    reason = f"vLLM's own failed{_last(ended)}" if passed_over else ""
    output = output.strip("\n")
    left_out = len(output) - MOST
    if left_out <= 0:
        return Collected(by, output, reason=reason)
    half = MOST // 2
    notice = f"\n… {left_out:,} characters left out …\n"
    return Collected(by, f"{output[:half]}{notice}{output[-half:]}", left_out, reason)


def _last(ended: Ended) -> str:
    """The last complaint, after a colon."""
    lines = [line for line in ended.complaints.splitlines() if line.strip()]
    return f": {printable(lines[-1].strip())[:300]}" if lines else ""
