"""No module takes the name of another one that could be meant.

Any folder can come to lie on sys.path: `python FILE` puts the file's own there, and a checkout is
often the working directory of an engine.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path, PurePosixPath
from typing import Any

# import names of what is installed beside specrepro by those who use it
NEIGHBOURS = {
    "_pytest",
    "click",
    "cuda",
    "cupy",
    "flashinfer",
    "jinja2",
    "kernels",
    "lmdeploy",
    "markdown_it",
    "nvidia",
    "packaging",
    "pip",
    "pkg_resources",
    "pluggy",
    "pygments",
    "pynvml",
    "requests",
    "safetensors",
    "sglang",
    "shellingham",
    "tokenizers",
    "torch",
    "transformers",
    "vllm",
    "wheel",
    "yaml",
}

ALLOWED = {
    "kernels": "a folder without __init__.py, which any real package of that name beats",
}


def test_no_file_or_folder_shadows_a_module_of_others(
    root: Path, project: dict[str, Any], tracked: list[str]
) -> None:
    taken = sys.stdlib_module_names | NEIGHBOURS | imported(root, tracked) | required(project)
    taken -= {"specrepro"}
    names: dict[str, str] = {}
    for path in map(PurePosixPath, tracked):
        if path.suffix == ".py":
            names |= {path.stem: str(path)} | {p.name: str(p) for p in path.parents if p.name}
    assert {"cli", "repro", "ops"} <= set(names)
    shadows = {name: where for name, where in names.items() if name in taken}
    assert set(shadows) == set(ALLOWED), shadows


def imported(root: Path, tracked: list[str]) -> set[str]:
    """The top-level names that any module of the tree imports absolutely."""
    found: set[str] = set()
    for name in tracked:
        if not name.endswith(".py"):
            continue
        for node in ast.walk(ast.parse((root / name).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                found.add(node.module.split(".")[0])
    # scripts are started from their own folder and import their neighbours there
    folders = ("tests/benchmarks/", "tests/gpu/")
    beside = [PurePosixPath(n) for n in tracked if n.startswith(folders)]
    local = {path.stem for path in beside} | {path.parent.name for path in beside}
    return found - local


def required(project: dict[str, Any]) -> set[str]:
    """Names of every package that pyproject.toml asks for, spelt as a module would be."""
    extras = project["project"]["optional-dependencies"].values()
    texts = [
        *project["project"]["dependencies"],
        *project["dependency-groups"]["dev"],
        *(text for extra in extras for text in extra),
    ]
    return {re.split(r"[^A-Za-z0-9_.-]", text)[0].replace("-", "_").lower() for text in texts}
