"""Runs kernels in Triton's interpreter: `python interpreted.py FOLDER`, in an environment of torch.

FOLDER holds for each launch NAME.json (file, kernel, grid, arguments in order, constants) and
NAME.npz (the buffers). Afterwards it holds NAME.out.npz, or NAME.failed with why there is none.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

os.environ["TRITON_INTERPRET"] = "1"


def run(job: Path) -> dict[str, Any]:
    import torch

    what = json.loads(job.read_text())
    path = job.parent / what["file"]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with np.load(job.with_suffix(".npz")) as stored:
        buffers = {name: torch.from_numpy(stored[name].copy()) for name in stored.files}
    arguments = {name: buffers.get(name, value) for name, value in what["arguments"].items()}
    getattr(module, what["kernel"])[tuple(what["grid"])](**arguments)
    return {name: buffer.numpy() for name, buffer in buffers.items()}


def main(folder: Path) -> None:
    for job in sorted(folder.glob("*.json")):
        try:
            found = run(job)
        except Exception as error:  # the interpreter's own limits; the comparison is left out
            job.with_suffix(".failed").write_text(f"{type(error).__name__}: {error}")
            continue
        np.savez(job.with_suffix(".out.npz"), **found)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
