"""A Triton kernel of the user made into PTX, in a process of its own: its file is executed here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..compilation import source_module
from ..compiled import INSTALL_COMPILERS
from ..errors import KernelError, SpecreproError, UsageError
from .arguments import Arguments, BufferSpec, Constant, Nothing, Scalar, Value, View
from .element_types import TYPES
from .kernel_text import chosen
from .memory import ALIGNMENT
from .triton_device import TritonLaunch, installed

TRITON_NAMES: Mapping[str, str] = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "bf16": "bfloat16",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "bool": "bool",
    **{f"i{n}": f"int{n}" for n in (8, 16, 32, 64)},
    **{f"u{n}": f"uint{n}" for n in (8, 16, 32, 64)},
}


class StandIn:
    """A buffer while its kernel is compiled: its type, and how its address is aligned."""

    def __init__(self, number: int, dtype: str, offset: int) -> None:
        self.number = number
        self.dtype = TRITON_NAMES[dtype]
        self.address = (ALIGNMENT << 20) + offset * TYPES[dtype].size

    def data_ptr(self) -> int:
        return self.address


def compile_triton(
    path: Path,
    shown: str,
    entry: str | None,
    grid: tuple[int, int, int],
    arguments: Arguments,
    warps: int | None,
    scratch: Path,
) -> dict[str, Any]:
    """Compile the kernel as its launch with these arguments would; folders are made in `scratch`.

    The result is plain JSON: ptx, entry, warps, shared, scratch sizes, and for each parameter left
    at run time its name, its type and its value or the number of its argument.
    """
    kernels = _kernels(path, shown)
    kernel = kernels[chosen(kernels, entry, shown)]
    positional, named = _call(arguments)
    if warps is not None:
        named["num_warps"] = warps
    seen: list[TritonLaunch] = []
    with installed(seen.append, scratch=scratch):
        try:
            kernel[grid](*positional, **named)
        except SpecreproError:
            raise
        except Exception as error:
            raise KernelError(f"Triton refuses it: {_words(error)}", where=shown) from error
    [launch] = seen
    return {
        "ptx": launch.ptx,
        "entry": launch.name,
        "warps": launch.warps,
        "shared": launch.shared_bytes,
        "scratch": [launch.global_scratch, launch.profile_scratch],
        "parameters": [
            {"name": name, "type": kind, **_given(value)} for name, kind, value in launch.arguments
        ],
    }


def _kernels(path: Path, shown: str) -> dict[str, Any]:
    """The kernels that the file defines, by name; those that only others call are among them."""
    try:
        from triton.runtime.jit import JITFunction, KernelInterface
    except ImportError as error:
        raise UsageError(f"Triton cannot be loaded: {error}", hint=INSTALL_COMPILERS) from error
    try:
        module = source_module(path, path.stem)
    except Exception as error:
        raise KernelError(f"it cannot be loaded: {_words(error)}", where=shown) from error
    found = {}
    for name, value in vars(module).items():
        inner = value
        while isinstance(inner, KernelInterface) and not isinstance(inner, JITFunction):
            inner = inner.fn
        if isinstance(inner, JITFunction) and inner.fn.__module__ == module.__name__:
            found[name] = value
    return found


def _call(arguments: Arguments) -> tuple[list[Any], dict[str, Any]]:
    dtypes = {spec.name: spec.dtype for spec in arguments.buffers}
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for number, argument in enumerate(arguments.args):
        value = argument.value
        if isinstance(value, Constant) and argument.name is not None:
            named[argument.name] = value.value
        else:
            positional.append(_stand_in(arguments, number, value, dtypes))
    return positional, named


def _stand_in(arguments: Arguments, number: int, value: Value, dtypes: Mapping[str, str]) -> Any:
    if isinstance(value, BufferSpec):
        return StandIn(number, value.dtype, 0)
    if isinstance(value, View):
        return StandIn(number, dtypes[value.buffer], value.offset)
    if isinstance(value, Constant):
        return value.value
    if isinstance(value, Nothing):
        return None
    if isinstance(value, Scalar):
        return bool(value.value) if value.type == "bool" else value.value
    raise arguments.refusal(("args", number), "a Triton kernel takes no struct")


def _given(value: Any) -> dict[str, Any]:
    if isinstance(value, StandIn):
        return {"argument": value.number}
    return {"value": value if isinstance(value, bool | int | float | None) else int(value)}


def _words(error: BaseException) -> str:
    """An exception and its causes; Triton says in the last one what it missed."""
    said: list[str] = []
    one = error
    while len(said) < 5:
        said.append(f"{type(one).__name__}: {one}".strip(": "))
        if one.__cause__ is None:
            break
        one = one.__cause__
    return "\n".join(said)[:4000]
