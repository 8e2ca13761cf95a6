"""A Python whose CUDA driver is made up: LIBRARY REST…, where REST is what an interpreter is told
(`-m MODULE DIRECTORY`). Kernels are executed by the emulator, in this process. With NO_COMPILERS it
finds none of the packages that compile kernels."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import os
import runpy
import sys
from pathlib import Path


def main() -> None:
    library, option, module, directory = sys.argv[1:]
    assert option == "-m"
    spec = importlib.util.spec_from_file_location("card", Path(__file__).with_name("conftest.py"))
    assert spec is not None
    assert spec.loader is not None
    card = importlib.util.module_from_spec(spec)
    sys.modules["card"] = card
    spec.loader.exec_module(card)
    device = card.Card(ctypes.CDLL(library), Path(directory))
    device.reset()
    if os.environ.get("NO_COMPILERS"):
        installed = importlib.metadata.distribution

        def distribution(name: str) -> importlib.metadata.Distribution:
            if name in ("triton", "nvidia-cuda-nvrtc"):
                raise importlib.metadata.PackageNotFoundError(name)
            return installed(name)

        importlib.metadata.distribution = distribution
    sys.argv = [module, directory]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
