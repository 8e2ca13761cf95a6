"""Triton kernels of other projects: their functions taken out of a file, arguments guessed.

Only what a kernel needs is taken: the jitted functions of its file and those it imports from files
beside it, without the tuners around them. Nothing of the project is imported or run.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

HEADER = (
    "import triton\nimport triton.language as tl\n"
    "from triton.language.extra import libdevice\n"
    + "".join(
        f"@triton.jit\ndef {name}(x): return tl.{name}(x)\n"
        for name in ("exp", "log", "log2", "exp2")
    )
)
TAKES_POINTER = {"load", "store", "make_block_ptr", "make_tensor_descriptor", "atomic_add"}
INTEGERS = re.compile(
    r"ind|idx|loc|len|num|offset|slot|table|token|ids|map|pos|seq|count|start|order|query_start"
    r"|block_t|req|mask"
)
FLOATS = re.compile(r"scale|eps|temp|alpha|beta|gamma|bound|normalizer|softcap|^p$|prob|rate|sm_")
FLAG = re.compile(r"^(USE|HAS|IS|STORE|REVERSE|OUTPUT|SAVE|WITH|DO|ENABLE|APPLY|NO|SKIP|INPLACE)")
COUNT = 1 << 16  # elements of each buffer
SIZE = 32  # of everything that is a size
STEP = re.compile(r"stride_.*(n|d|k|col|1|vocab)$")  # strides of what lies next to each other


@dataclass(frozen=True)
class Guess:
    """How to call a kernel: names in order with their Triton types, and constants."""

    name: str
    types: dict[str, str]
    constants: dict[str, int | bool]
    flags: bool


def functions(path: Path) -> dict[str, ast.FunctionDef]:
    """The jitted functions of a file, with no decorator but the one that jits."""
    found = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef) and any(_jits(d) for d in node.decorator_list):
            node.decorator_list = [ast.parse("triton.jit", mode="eval").body]
            found[node.name] = node
    return found


def _jits(decorator: ast.expr) -> bool:
    return ast.unparse(decorator).startswith("triton.jit")


def constants(path: Path) -> list[ast.stmt]:
    """`NAME = literal` of a file; Triton takes such globals as constexpr only."""
    found: list[ast.stmt] = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = node.value
            if isinstance(value, ast.Call) and ast.unparse(value.func) == "tl.constexpr":
                value = value.args[0]
            if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
                name = node.targets[0].id
                found += ast.parse(f"{name} = tl.constexpr({ast.unparse(value)})").body
    return found


def standalone(path: Path, helpers: list[Path]) -> str:
    """The text of a module with the functions of `path` and `helpers` alone."""
    parts: list[ast.stmt] = []
    for each in [*helpers, path]:
        parts += constants(each)
        parts += functions(each).values()
    return HEADER + "\n".join(ast.unparse(part) for part in parts)


def entries(path: Path) -> list[str]:
    """Functions of a file that no other of it calls and that store something."""
    found = functions(path)
    called = {
        node.func.id
        for function in found.values()
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    return [name for name, node in found.items() if name not in called and "store" in _text(node)]


def _text(node: ast.AST) -> str:
    return ast.unparse(node)


def guess(function: ast.FunctionDef, *, flags: bool) -> Guess:
    """Types and constants by names and uses."""
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    fixed = [a.arg for a in arguments if a.annotation and "constexpr" in _text(a.annotation)]
    pointers = _pointers(function)
    types: dict[str, str] = {}
    values: dict[str, int | bool] = {}
    for argument in arguments:
        name = argument.arg
        lower = name.lower()
        if name in fixed:
            types[name] = "constexpr"
            values[name] = flags if FLAG.match(name) else _constant(name)
        elif name in pointers or lower.endswith("_ptr"):
            types[name] = "*i32" if INTEGERS.search(lower) else "*fp32"
        else:
            types[name] = "fp32" if FLOATS.search(lower) else "i32"
    return Guess(function.name, types, values, flags)


def scalar(name: str, kind: str) -> int | float:
    """The value of an argument that is no pointer."""
    if kind == "fp32":
        return 0.5
    return 1 if STEP.match(name.lower()) else SIZE


def _constant(name: str) -> int:
    if STEP.match(name.lower()):
        return 1
    if name in ("H", "HQ", "HV", "G", "N", "NG") or name.startswith(("NUM", "num", "N_")):
        return 2
    return 16 if name[:1] == "B" or "BLOCK" in name.upper() else SIZE


def _pointers(function: ast.FunctionDef) -> set[str]:
    """Names that are, or begin, the address of a load or store."""
    found: set[str] = set()
    while True:
        before = len(found)
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and node.args:
                if isinstance(node.func, ast.Attribute) and node.func.attr in TAKES_POINTER:
                    found |= _first(node.args[0])
            elif isinstance(node, ast.Assign | ast.AugAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = {t.id for t in targets if isinstance(t, ast.Name)}
                if names & found and isinstance(node, ast.Assign):
                    found |= _first(node.value)
        if len(found) == before:
            return found


def _first(node: ast.expr) -> set[str]:
    """The leftmost name of a sum."""
    while isinstance(node, ast.BinOp):
        node = node.left
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _first(node.func.value) if node.func.attr == "to" else set()
    return {node.id} if isinstance(node, ast.Name) else set()
