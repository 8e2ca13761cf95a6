"""The planted kernels compiled again. `python tests/selftest/conftest.py` writes their PTX anew."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

from specrepro.repro.compilation import compiler_version, nvrtc
from specrepro.repro.ptx_text import normalise

PLANTED = Path(str(files("specrepro") / "repro/selftest/ptx"))
NAME = "planted.cu"


def compiled() -> str:
    """planted.cu as NVRTC writes it."""
    return normalise(nvrtc((PLANTED / NAME).read_bytes(), NAME).ptx, NAME)


if __name__ == "__main__":
    (PLANTED / "planted.ptx").write_text(compiled(), encoding="utf-8")
    made = {"source": NAME, "compiler": {"name": "nvrtc", "version": compiler_version("cuda")}}
    (PLANTED / "manifest.json").write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
