"""The planted kernels compiled again, and machines with a GPU made up.

`python tests/selftest/conftest.py` writes their PTX anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.compilation import compiler_version, nvrtc
from specrepro.repro.ptx_text import normalise

PLANTED = Path(str(files("specrepro") / "repro/selftest/ptx"))
NAME = "planted.cu"


def compiled() -> str:
    """planted.cu as NVRTC writes it."""
    return normalise(nvrtc((PLANTED / NAME).read_bytes(), NAME).ptx, NAME)


@pytest.fixture(scope="module")
def box_of(made_up_gpu: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Any]:
    """Makes a machine with a GPU (tests/lanes/box.py)."""
    return lambda: made_up_gpu(tmp_path_factory.mktemp("box"))


@pytest.fixture
def box(made_up_gpu: Any, tmp_path: Path) -> Any:
    return made_up_gpu(tmp_path)


if __name__ == "__main__":
    (PLANTED / "planted.ptx").write_text(compiled(), encoding="utf-8")
    made = {"source": NAME, "compiler": {"name": "nvrtc", "version": compiler_version("cuda")}}
    (PLANTED / "manifest.json").write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
