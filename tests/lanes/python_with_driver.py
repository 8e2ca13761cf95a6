"""A Python whose CUDA driver is made up: LIBRARY REST…, where REST is what an interpreter is told
(`-m MODULE DIRECTORY`). Kernels are executed by the emulator, in this process."""

from __future__ import annotations

import ctypes
import importlib.util
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
    sys.argv = [module, directory]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
