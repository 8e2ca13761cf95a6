"""One workload under triton-viz's sanitizer; prints what it cost and said as JSON.

python viz_run.py ROOT SUBJECT SIZE sound|faulty REPEATS

Runs in the environment of triton-viz; ROOT holds kernels/<op>/kernel.py.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import triton_viz
from triton_viz.clients import Sanitizer
from workloads import subject

ENOUGH = 1.0  # seconds of execution after which nothing is repeated
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def main(words: list[str]) -> dict[str, Any]:
    folder, name, size, state, repeats = words
    chosen = subject(name)
    workload = chosen.build(*chosen.sizes[size], faulty=state == "faulty")
    module = kernel_module(Path(folder), chosen.op)
    seconds: list[float] = []
    said: dict[str, Any] = {}
    while len(seconds) < 1 + int(repeats) and sum(seconds) < ENOUGH:
        arguments = [
            torch.from_numpy(value) if isinstance(value, np.ndarray) else value
            for value in workload.fresh().values()
        ]
        kernel = triton_viz.trace(client=Sanitizer())(getattr(module, chosen.op))
        started = time.process_time()
        said = execute(kernel[workload.grid], arguments, module.CONSTANTS)
        seconds.append(time.process_time() - started)
    return {"first": seconds[0], "again": min(seconds[1:], default=seconds[0]), **said}


def kernel_module(root: Path, op: str) -> Any:
    spec = importlib.util.spec_from_file_location(op, root / "kernels" / op / "kernel.py")
    if spec is None or spec.loader is None:
        raise ValueError(f"no kernel {op}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def execute(kernel: Any, arguments: list[Any], constants: dict[str, int]) -> dict[str, Any]:
    """outcome: found, quiet or fails; what was found, as far as the report says it."""
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output):
            kernel(*arguments, **constants)
    except SystemExit:  # how it ends after its first finding
        return {"outcome": "found", "found": [read(output.getvalue())]}
    except Exception as error:  # whatever it dies of is the outcome
        message = str(error).splitlines()[0] if str(error) else ""
        return {"outcome": "fails", "found": [], "error": f"{type(error).__name__}: {message}"}
    return {"outcome": "quiet", "found": []}


def read(report: str) -> dict[str, Any]:
    """Tensor, line and element of a printed report; ValueError where it is no such report."""
    text = COLOURS.sub("", report)
    numbers = {}
    for key, pattern in {
        "line": r"^\s*Line (\d+):",
        "address": r"Violation address:\s*(0x[0-9a-f]+)",
        "base": r"base_ptr:\s*(0x[0-9a-f]+)",
    }.items():
        match = re.search(pattern, text, re.MULTILINE)
        if match is None:
            raise ValueError(f"a report without {key}:\n{text}")
        numbers[key] = int(match[1], 0)
    argument = re.search(r"arg:\s*(\w+)", text)
    return {
        "tensor": argument[1] if argument else None,
        "line": numbers["line"],
        "byte": numbers["address"] - numbers["base"],
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
