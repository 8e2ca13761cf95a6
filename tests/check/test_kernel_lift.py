"""Kernels lifted out of files: text, line map, what they need, and what cannot be lifted."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.check.kernel.lifted import NotLiftedError, lifted
from specrepro.repro.check.probing.kernel_lift import lift_kernel
from specrepro.repro.check.probing.probe import Lift, NotFoundError, Sources

KERNEL = '''
import torch
from vllm.triton_utils import tl, triton

from .helpers import scale_of

WIDTH: tl.constexpr = 4


def host(x):
    return torch.zeros(x)


@triton.jit
def inner(x, offset):
    # a comment
    return x + offset * WIDTH


@triton.heuristics({"FLAG": lambda args: args["x"] is not None})
@triton.jit(do_not_specialize=["n"])
def outer(
    x_ptr,  # a pointer
    n: tl.int64,
    FLAG: tl.constexpr = True,
):
    """What it does.

    At length.
    """
    # another comment
    value = tl.load(inner(x_ptr, n))  # and one more

    tl.store(x_ptr, value * scale_of(n))
'''
HELPERS = """
import os

if os.environ.get("FAST", "0") == "1":
    scale_of = abs
else:

    def scale_of(n):
        return 2
"""


def lift(tmp_path: Path, files: dict[str, str], **asked: Any) -> dict[str, Any]:
    paths = {}
    for number, (name, text) in enumerate(files.items()):
        paths[name] = tmp_path / f"{number}.py"
        paths[name].write_text(text, encoding="utf-8")
    wanted = {"files": ("v1/kernels.py",), "names": ("outer",), **asked}
    return lift_kernel(Sources(paths), Lift("x", **wanted))


def both(kernel: str = KERNEL, helpers: str = HELPERS) -> dict[str, str]:
    return {"vllm/v1/kernels.py": kernel, "vllm/v1/helpers.py": helpers}


def test_a_kernel_comes_with_what_it_needs_and_nothing_else(tmp_path: Path) -> None:
    said = lift(tmp_path, both())
    names = {n.name for n in ast.walk(ast.parse(said["text"])) if isinstance(n, ast.FunctionDef)}
    assert names == {"inner", "outer", "scale_of"}
    assert "torch" not in said["text"]
    assert "heuristics" not in said["text"]
    assert "WIDTH: tl.constexpr = 4" in said["text"]
    assert (said["path"], said["entry"]) == ("vllm/v1/kernels.py", "outer")
    assert KERNEL.splitlines()[said["line"] - 1] == "def outer("


def test_every_line_is_the_line_of_the_build_that_the_map_says(tmp_path: Path) -> None:
    said = lift(tmp_path, both())
    lines = said["text"].splitlines()
    assert len(lines) == len(said["places"])
    for line, (file, number) in zip(lines, said["places"], strict=True):
        if number and not line.startswith("@"):
            original = both()[said["files"][file]].splitlines()[number - 1]
            assert original.strip().startswith(line.strip())


def test_parameters_come_with_annotation_and_default(tmp_path: Path) -> None:
    said = lift(tmp_path, both())
    assert said["parameters"] == [
        {"name": "x_ptr", "annotation": "", "default": None},
        {"name": "n", "annotation": "tl.int64", "default": None},
        {"name": "FLAG", "annotation": "tl.constexpr", "default": "True", "literal": True},
    ]


@given(
    st.lists(st.tuples(st.integers(0, 8), st.sampled_from(["# x", "", "  # y", "#"])), max_size=6)
)
def test_comments_blank_lines_and_docstrings_do_not_change_the_text(
    tmp_path_factory: pytest.TempPathFactory, added: list[tuple[int, str]]
) -> None:
    plain = lift(tmp_path_factory.mktemp("a"), both())
    body = KERNEL.replace(
        "    At length.\n", "    At greater length.\n    And more.\n"
    ).splitlines()
    start = body.index("    # another comment")
    # behind the docstring every place is between statements
    for place, text in added:
        body.insert(start + place % 3, f"    {text}")
    other = lift(tmp_path_factory.mktemp("b"), both("\n".join(body) + "\n"))
    assert other["text"] == plain["text"]
    assert other["places"] != plain["places"]


def test_a_method_is_moved_to_the_margin(tmp_path: Path) -> None:
    method = "class Holder:\n" + textwrap.indent(
        "@staticmethod\n@triton.jit\ndef outer(x_ptr):\n    tl.store(x_ptr, 1)\n", "    "
    )
    said = lift(
        tmp_path, {"v1/kernels.py": f"import triton\nimport triton.language as tl\n{method}"}
    )
    assert "\n@triton.jit\ndef outer(x_ptr):\n    tl.store(x_ptr, 1)\n" in said["text"]


@pytest.mark.parametrize(
    ("kernel", "helpers", "words"),
    [
        ("x = 1\n", HELPERS, "no kernel outer"),
        (KERNEL.replace("@triton.jit(do_not_specialize", "@host(do"), HELPERS, "no kernel outer"),
        (KERNEL, "", "scale_of is not defined in vllm/v1/helpers.py"),
        (KERNEL, "from numpy import scale_of\n", "it needs numpy"),
        (KERNEL, "def scale_of(n):\n    return torch.tensor(n)\n", "torch is not defined"),
        (KERNEL.replace("tl.load(inner(", "tl.load(missing("), HELPERS, "missing is not defined"),
        (
            KERNEL,
            "def scale_of(n):\n    return inner(n)\n\ndef inner(n):\n    return n\n",
            "another",
        ),
        (KERNEL.replace("def outer(", "def outer(*many, "), HELPERS, "any number"),
        ("def outer(:\n", HELPERS, "cannot be parsed"),
    ],
)
def test_what_cannot_be_lifted_is_said_by_name(
    tmp_path: Path, kernel: str, helpers: str, words: str
) -> None:
    with pytest.raises(NotFoundError, match=words):
        lift(tmp_path, both(kernel, helpers))


def test_a_kernel_without_the_parameters_that_are_needed_is_no_candidate(tmp_path: Path) -> None:
    assert lift(tmp_path, both(), needs=("n", "y_ptr|x_ptr"))["entry"] == "outer"
    with pytest.raises(NotFoundError, match="has no parameter z_ptr"):
        lift(tmp_path, both(), needs=("z_ptr",))


def test_a_file_that_was_not_looked_at_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="it needs helpers, which was not looked at"):
        lift(tmp_path, {"vllm/v1/kernels.py": KERNEL})


def test_an_answer_of_the_child_is_looked_at_before_it_is_believed(tmp_path: Path) -> None:
    said = lift(tmp_path, both())
    files = {name: text.encode() for name, text in both().items()}
    good = lifted(said, files)
    assert (good.entry, good.places[-1][0]) == ("outer", "vllm/v1/kernels.py")
    for wrong in (
        {"unknown": "no kernel"},
        {**said, "text": 5},
        {**said, "text": "x" * 300_000},
        {**said, "entry": "a; b"},
        {**said, "path": "/etc/passwd"},
        {**said, "files": ["", "../secret"], "places": [[1, 2]]},
        {**said, "places": [[9, 1]]},
        {**said, "parameters": [{}]},
        {**said, "parameters": said["parameters"] * 100},
        {},
    ):
        with pytest.raises(NotLiftedError):
            lifted(wrong, files)
