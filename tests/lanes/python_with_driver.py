"""A Python whose CUDA driver is made up: LIBRARY REST…, where REST is what an interpreter is told
(`-m MODULE DIRECTORY`, or `SCRIPT ARGUMENTS`). Kernels are executed by the emulator, in this
process. With NO_COMPILERS it finds none of the packages that compile kernels; with MADE_UP_TORCH it
has a torch over that driver.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import os
import runpy
import sys
from pathlib import Path
from typing import Any


def beside(name: str) -> Any:
    """The module in the file of that name beside this one; under another, which shadows nothing."""
    spec = importlib.util.spec_from_file_location(
        f"lanes_{name}", Path(__file__).with_name(f"{name}.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    library, *words = sys.argv[1:]
    module = words[1] if words[0] == "-m" else None
    card = beside("conftest")
    # a trial's process leaves what the device saw in the trial's folder
    device = card.Card(ctypes.CDLL(library), Path(words[2]) if module else None)
    device.reset()
    if os.environ.get("NO_COMPILERS"):
        installed = importlib.metadata.distribution

        def distribution(name: str) -> importlib.metadata.Distribution:
            if name in ("triton", "nvidia-cuda-nvrtc"):
                raise importlib.metadata.PackageNotFoundError(name)
            return installed(name)

        importlib.metadata.distribution = distribution
    if os.environ.get("MADE_UP_TORCH"):
        beside("made_up_torch").install()
    if module is None:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")
        return
    sys.argv = words[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
