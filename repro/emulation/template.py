"""An argument file to start from, written from a kernel's signature; nothing is executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from ..errors import UsageError
from .host_code import device_code
from .kernel_text import chosen, language, plain_name

C_TYPES = {
    "float": "f32",
    "double": "f64",
    "half": "f16",
    "__half": "f16",
    "__nv_bfloat16": "bf16",
    "char": "i8",
    "signed char": "i8",
    "unsigned char": "u8",
    "short": "i16",
    "unsigned short": "u16",
    "int": "i32",
    "unsigned": "u32",
    "unsigned int": "u32",
    "long": "i64",
    "unsigned long": "u64",
    "long long": "i64",
    "unsigned long long": "u64",
    "size_t": "u64",
    "bool": "bool",
    **{
        f"{sign}int{bits}_t": f"{kind}{bits}"
        for sign, kind in (("", "i"), ("u", "u"))
        for bits in (8, 16, 32, 64)
    },
}
HEAD = """\
# Arguments of {kernel}, in the order of its parameters. Adapt every line.
#   buffer    {{name: x, dtype: f32, shape: [4, 16], fill: arange}}
#             fill: zeros, arange, uninitialised, {{random: 1}}, {{values: [...]}}, {{file: x.npy}}
#   view      {{view: x, offset: 16}}              a pointer to element 16 of buffer x
#   scalar    {{i32: 5}}, {{u64: 5}}, {{f32: 0.5}}…    null pointer: {{none: true}}
#   struct    {{struct: [{{i32: 1}}, {{f32: 2.0}}]}}   by value
args:
"""
_QUALIFIERS = re.compile(
    r"\b(?:const|volatile|__restrict__|__restrict|__grid_constant__|register)\b"
)
_PTX_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(([^)]*)\)")
_PTX_PARAM = re.compile(
    r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+(.*?)([\w$]+)(?:\[(\d+)\])?\s*$"
)
_CUDA_KERNEL = re.compile(
    r"__global__[^;{}()]*?(?:__launch_bounds__\s*\([^)]*\)[^;{}()]*?)?(\w+)\s*\(([^)]*)\)\s*\{"
)


def template(path: Path, entry: str | None) -> str:
    """The text of an argument file for a kernel of `path`. UsageError if none or several are
    meant.
    """
    kind = language(path)
    text = path.read_text(encoding="utf-8", errors="replace")
    found = {"ptx": _ptx, "cuda": _cuda, "triton": _triton}[kind](path, text)
    name = chosen(found, entry, str(path))
    lines = [f"  - {line}\n" for line in found[name]]
    text = HEAD.format(kernel=plain_name(name)) + "".join(lines)
    return text if lines else text.replace("args:\n", "args: []\n")


def _line(entry: str, comment: str) -> str:
    return f"{entry:<52} # {comment}"


def _buffer(name: str, dtype: str) -> str:
    return f"{{name: {name}, dtype: {dtype}, shape: [1024], fill: zeros}}"


def _ptx(path: Path, text: str) -> dict[str, list[str]]:
    return {name: list(_ptx_lines(params)) for name, params in _PTX_ENTRY.findall(text)}


def _ptx_lines(params: str) -> Iterator[str]:
    for number, piece in enumerate(part.strip() for part in params.split(",") if part.strip()):
        match = _PTX_PARAM.search(piece)
        if match is None:
            raise UsageError(f"parameter {piece!r} cannot be read")
        kind, attributes, name, size = match[2], match[3], match[4], match[5]
        if size is not None:
            yield _line("{struct: [{i32: 0}]}", f"{name}: {size} bytes by value")
        elif ".ptr" in attributes:
            yield _line(_buffer(f"p{number}", "f32"), f"{name}: a pointer")
        elif kind in ("u64", "b64", "s64"):
            note = f"{name}: a pointer, or 64 bits: {{u64: 0}}"
            yield _line(_buffer(f"p{number}", "f32"), note)
        else:
            scalar = kind.replace("s", "i").replace("b", "u").replace("pred", "u8")
            value = "0.0" if kind.startswith("f") else "0"
            yield _line(f"{{{scalar}: {value}}}", f"{name}: .{kind}")


def _cuda(path: Path, text: str) -> dict[str, list[str]]:
    device = re.sub(r"//[^\n]*|/\*.*?\*/", " ", device_code(text).text, flags=re.DOTALL)
    return {name: list(_cuda_lines(params)) for name, params in _CUDA_KERNEL.findall(device)}


def _cuda_lines(params: str) -> Iterator[str]:
    for piece in (part.strip() for part in params.split(",")):
        if not piece or piece == "void":
            continue
        plain = " ".join(_QUALIFIERS.sub(" ", piece).split())
        match = re.fullmatch(r"(.*?)\s*(\**)\s*(\w+)\s*(?:=.*)?", plain)
        if match is None:
            raise UsageError(f"parameter {piece!r} cannot be read")
        kind, name = C_TYPES.get(match[1].strip()), match[3]
        if len(match[2]) == 1:
            yield _line(_buffer(name, kind or "u8"), piece)
        elif match[2]:
            yield _line(
                f"{{name: {name}, dtype: u64, shape: [1], fill: {{values: [0]}}}}",
                f"{piece}: pointers {{ptr: NAME}}",
            )
        elif kind is None:
            yield _line("{struct: [{i32: 0}]}", piece)
        else:
            value = {"f": "0.0", "b": "false"}.get(kind[0], "0")
            yield _line(f"{{name: {name}, {kind}: {value}}}", piece)


def _triton(path: Path, text: str) -> dict[str, list[str]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"is not Python: {error}", where=str(path)) from error
    return {
        node.name: list(_triton_lines(node))
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and any(re.search(r"\bjit\b", ast.unparse(one)) for one in node.decorator_list)
    }


def _triton_lines(node: ast.FunctionDef) -> Iterator[str]:
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    used = {one.id for inner in ast.walk(node) for one in _pointers(inner)}
    for argument in arguments:
        name = argument.arg
        note = ast.unparse(argument.annotation) if argument.annotation else ""
        if "constexpr" in note:
            yield _line(f"{{name: {name}, constexpr: 128}}", f"{name}: compiled in")
        elif name in used or name.endswith("ptr"):
            yield _line(_buffer(name, "f32"), f"{name}: a pointer")
        else:
            yield _line(f"{{name: {name}, i32: 1024}}", f"{name}: a number, or a buffer")


def _pointers(node: ast.AST) -> Iterator[ast.Name]:
    """Names in the first argument of a load, store or atomic, where they stand first in a sum."""
    if not isinstance(node, ast.Call) or not node.args:
        return
    if not re.search(r"\b(?:load|store|atomic_\w+)$", ast.unparse(node.func)):
        return
    inner = node.args[0]
    while isinstance(inner, ast.BinOp):
        inner = inner.left
    if isinstance(inner, ast.Name):
        yield inner
