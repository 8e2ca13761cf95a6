"""Asking a probe of kernels about a tree with one file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from specrepro.repro.check.builds import Builds
from specrepro.repro.check.cache import Cache
from specrepro.repro.check.kernel.compiler import Compiler, compiler
from specrepro.repro.check.kernel.depth import look_at
from specrepro.repro.check.kernel.launching import Saw
from specrepro.repro.check.source import Reading

Ask = Callable[..., tuple[Reading, Saw]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    return compiler(Cache(tmp_path_factory.mktemp("cache"), print))


@pytest.fixture
def ask(made: Compiler, tmp_path: Path) -> Ask:
    """Takes a probe, a file below `vllm/` and its text."""

    def asked(probe: str, file: str, text: str, seconds: float = 60.0) -> tuple[Reading, Saw]:
        planted = {"_version.py": "__version__ = '0.99.0'\n", file: text}
        for name, content in planted.items():
            path = tmp_path / "vllm" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        with Builds(cache=tmp_path / "builds") as builds:
            tree = builds.open(str(tmp_path))
            try:
                looked = look_at(tree, made, [probe], [], seconds)
            finally:
                tree.close()
        return looked.readings[probe], looked.saw[probe]

    return asked
