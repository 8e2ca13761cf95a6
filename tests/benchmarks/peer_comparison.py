"""The emulator beside triton-viz: what each finds, what it costs, and cost and memory by grid.

python tests/benchmarks/peer_comparison.py --viz-python PATH [--rounds N]

triton-viz needs an environment of its own; without it the script prints how to make one. Each
measurement is a child process of its own, those of the tools alternate.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from page import write
from peer.tables import Cell, Grid, Measured, section
from peer.workloads import SUBJECTS, VARIATIONS

from specrepro.repro.compilation import compile_kernel
from specrepro.repro.compilation import write as write_kernel

PEER = Path(__file__).parent / "peer"
ENVIRONMENT = """triton-viz 3.0 needs an older triton and numpy, and torch, which it does not name:

  python3 -m venv VENV
  VENV/bin/pip install triton-viz==3.0 triton==3.6.0 'numpy<2.4' torch==2.13.0

then give --viz-python VENV/bin/python. (Any build of torch for the CPU will do.)"""
VERSIONS = """
import importlib.metadata as m, json
names = ("triton-viz", "triton", "numpy", "torch", "z3-solver")
print(json.dumps({name: m.version(name) for name in names}))
"""
REPEATS = 4  # of an execution within a process
GRIDS = (1, 4, 16, 64, 256, 1024, 4096)
# one thread for every library, or CPU time would measure their thread pools
SINGLE = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS")}


def main(arguments: list[str]) -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--viz-python", type=Path)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args(arguments)
    if given.viz_python is None or not given.viz_python.is_file():
        print(ENVIRONMENT, file=sys.stderr)
        return 2
    python = str(given.viz_python.absolute())
    versions = json.loads(subprocess.check_output([python, "-c", VERSIONS]))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copytree(PEER / "kernels", root / "kernels")
        compiled = compiled_kernels(root)
        cells = [
            measured_cell(python, root, name, size, state, given.rounds)
            for name, size, state in subjects()
        ]
        grids = [
            grid(root, op, programs) for op in ("scatter", "paged_decode") for programs in GRIDS
        ]
    write(
        "peer",
        "The emulator beside triton-viz",
        ["python", "tests/benchmarks/peer_comparison.py", "--viz-python", "PYTHON"],
        section(cells, grids, compiled, versions, given.rounds, PEER),
    )
    return 0


def subjects() -> Iterable[tuple[str, str, str]]:
    """Name, size and state of each cell."""
    for name, subject in {**SUBJECTS, **VARIATIONS}.items():
        for size in subject.sizes:
            for state in ("sound", "faulty"):
                yield name, size, state


def compiled_kernels(root: Path) -> dict[str, float]:
    """Compile every kernel under `root`; CPU seconds of each, ptxas included."""
    seconds = {}
    # what Triton does once a process is no kernel's
    compile_kernel("scatter", root)
    for op in sorted(path.name for path in (root / "kernels").iterdir()):
        before = spent()
        write_kernel(compile_kernel(op, root), root)
        seconds[op] = spent() - before
    return seconds


def spent() -> float:
    """CPU seconds of this process and of the children it waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def measured_cell(python: str, root: Path, name: str, size: str, state: str, rounds: int) -> Cell:
    """Run the tools in turn, `rounds` times."""
    what = [str(root), name, size, state]
    viz = [python, str(PEER / "viz_run.py"), *what, str(REPEATS)]
    own = [sys.executable, str(PEER / "own_run.py"), *what]
    runs: dict[str, list[Measured]] = {"viz": [], "all": [], "default": []}
    for _ in range(rounds):
        runs["viz"].append(measured(viz))
        for checks in ("all", "default"):
            runs[checks].append(measured([*own, checks, str(REPEATS)]))
    print(f"{name} {size} {state}", file=sys.stderr, flush=True)
    return Cell(name, size, state, runs["viz"], runs["all"], runs["default"])


def measured(command: list[str]) -> Measured:
    said, process = answer(command)
    return Measured(said["first"], said["again"], process, said)


def answer(command: list[str]) -> tuple[dict[str, Any], float]:
    """What a child printed last, and the CPU seconds of its whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    output = subprocess.check_output(command, env={**os.environ, **SINGLE}, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    said: dict[str, Any] = json.loads(output.splitlines()[-1])
    return said, process


def grid(root: Path, op: str, programs: int) -> Grid:
    said, _ = answer([sys.executable, str(PEER / "grid_run.py"), str(root), op, str(programs)])
    return Grid(op, programs, said["threads"], said["seconds"], said["peak"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
