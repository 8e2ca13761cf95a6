"""One launch of a kernel of the user: arguments in, findings out, as plain JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..emulator.checks import INITIALISED
from ..emulator.findings import findings
from ..emulator.launch import Buffer, LaunchReport, launch
from ..emulator.ptx import Kernel, Parameter, parse
from ..errors import CaseError, UnsupportedError
from ..ops import Owners
from ..records import to_json
from .accesses import MOST_RANGES, named, warnings
from .accesses import chosen as checks_but
from .arguments import Arguments, BufferSpec, Constant, Nothing, Scalar, Struct, Value, View
from .element_types import TYPES, element_type
from .kernel_text import chosen, with_places
from .memory import Filled, base_address, encode, filled, place_pointers, pointer

MAX_FINDINGS = 1000
POINTER_BYTES = 8

Passed = Buffer | int | float | bytes | None


def emulated(
    ptx: str,
    entry: str | None,
    shown: str,
    shape: tuple[tuple[int, int, int], tuple[int, int, int], int],
    arguments: Arguments,
    triton: Mapping[str, Any] | None,
    skipped: Sequence[str] = (),
) -> dict[str, Any]:
    """Execute one launch. shape: grid, block, dynamic shared bytes. triton: what its compiler said
    of the parameters, None for other kernels. skipped: checks that are not made.
    """
    checks = checks_but(skipped)
    module = parse(ptx)
    kernel = with_places(module.kernels[chosen(module.kernels, entry, shown)], shown)
    grid, block, shared = shape
    buffers = filled(arguments)
    given = _Given(arguments, kernel, buffers)
    values: list[Passed]
    if triton is None:
        _count(arguments, kernel)
        values = [
            given.value(number, argument.value, kernel.params[number], argument.place)
            for number, argument in enumerate(arguments.args)
        ]
    else:
        values = _triton_values(given, triton, grid)
    extra = [each for each in buffers if each.spec.name not in given.direct]
    kernel = replace(
        kernel,
        params=(*kernel.params, *(Parameter(f"specrepro_{e.spec.name}", "u64") for e in extra)),
    )
    values += [None] * (len(kernel.params) - len(extra) - len(values))
    values += [given.passed[each.spec.name] for each in extra]
    report = launch(
        kernel,
        grid=grid,
        block=kernel.reqntid or block,
        args=values,
        shared_bytes=shared,
        requests=_requests(arguments, grid),
        checks=checks,
        outputs=False,  # nobody gets to see them
        marks=True,
        copies=triton is not None,
    )
    made, left_out = named(report.checks, owners=arguments.requests is not None)
    sizes = {each.spec.name: (each.data.size, each.data.itemsize) for each in buffers}
    found = findings(report, kernel.name, 0, sizes, most=MOST_RANGES)
    return {
        "entry": kernel.name,
        "target": module.target,
        "block": list(kernel.reqntid or block),
        "checks": made,
        "unchecked": left_out,
        "warnings": to_json(warnings(report, kernel.name, 0)[:MAX_FINDINGS]),
        "printed": report.printed,
        "notes": [
            f"{name} has no meaning here: clocks only rise, blocks are dealt out in turn"
            for name in report.invented
        ]
        + list(_never_written(buffers, report)),
        "findings": to_json(found[:MAX_FINDINGS]),
        "more": max(0, len(found) - MAX_FINDINGS),
        "instructions": report.instructions,
        "decided": report.decided,
        "buffers": [_told(each, each.spec.name in given.direct) for each in buffers],
    }


def _never_written(buffers: Sequence[Filled], report: LaunchReport) -> Iterator[str]:
    """Of each buffer that began uninitialised: what of it nobody has written, in a sentence."""
    if INITIALISED not in report.checks:
        return
    for each in buffers:
        name, written = each.spec.name, each.written
        if written is None or not written.size or name in report.unmarked:
            continue
        left = np.flatnonzero(~written.reshape(each.data.size, -1).all(axis=1))
        if left.size == each.data.size:
            yield f"this launch wrote no element of {name}"
        elif left.size:
            yield (
                f"this launch left {left.size:,} of the {each.data.size:,} elements of {name} "
                f"unwritten, the first is {name}[{left[0]}]"
            )


class _Given:
    """Argument values as a launch takes them."""

    def __init__(self, arguments: Arguments, kernel: Kernel, buffers: Sequence[Filled]) -> None:
        self.arguments = arguments
        self.kernel = kernel
        # A launch numbers its buffers in the order of its parameters: those passed themselves
        # come first, those behind them get parameters of their own.
        own = [a.value.name for a in arguments.args if isinstance(a.value, BufferSpec)]
        self.direct = set(own)
        named = {each.spec.name: each for each in buffers}
        order = [*own, *(name for name in named if name not in self.direct)]
        self.passed = {name: _buffer(each) for name, each in named.items()}
        self.sizes = {name: each.data.itemsize for name, each in named.items()}
        self.addresses = {
            name: base_address(number, named[name].data) for number, name in enumerate(order)
        }
        place_pointers(buffers, self.addresses)

    def value(self, number: int, value: Value, to: Parameter, place: Any) -> Passed:
        """The value for parameter `to`; refused where it is of another size or kind."""
        if isinstance(value, Constant):
            raise self.refusal(place, "constexpr is for Triton kernels only")
        if isinstance(value, Struct):
            packed = self.struct(value)
            if to.size != len(packed):
                raise self.refusal(
                    place, f"the struct has {len(packed)} bytes, {self.parameter(number, to)}"
                )
            return packed
        size = TYPES[value.type].size if isinstance(value, Scalar) else POINTER_BYTES
        wanted = _bytes(to)
        if size != wanted:
            raise self.refusal(place, f"has {size} bytes, {self.parameter(number, to)}")
        if isinstance(value, Scalar):
            float_ = TYPES[value.type].kind == "f"
            if (float_ and to.type[0] in "su") or (not float_ and to.type[0] == "f"):
                kind = "a float" if float_ else "no float"
                raise self.refusal(place, f"is {kind}, {self.parameter(number, to)}")
        return self.plain(value, to)

    def plain(
        self, value: BufferSpec | View | Nothing | Scalar, to: Parameter
    ) -> Buffer | int | float | None:
        if isinstance(value, BufferSpec):
            return self.passed[value.name]
        if isinstance(value, View):
            return pointer(value, self.addresses, self.sizes)
        if isinstance(value, Nothing):
            return None
        dtype = TYPES[value.type]
        if dtype.kind != "f":
            return int(value.value)
        if to.type in ("f32", "f64"):
            return float(value.value)
        # a parameter of type b32 or b16 takes the bits
        bits = encode(np.array([value.value]), dtype)
        return int(bits.view(np.dtype(f"u{dtype.size}"))[0])

    def struct(self, struct: Struct) -> bytes:
        packed, widest = b"", 1
        for part in struct.fields:
            if isinstance(part, Scalar):
                dtype = TYPES[part.type]
                raw = encode(np.array([part.value], object if dtype.kind != "f" else float), dtype)
                word = raw.tobytes()
            else:
                address = 0
                if isinstance(part, View):
                    address = pointer(part, self.addresses, self.sizes)
                word = address.to_bytes(POINTER_BYTES, "little")
            widest = max(widest, len(word))
            packed += bytes(-len(packed) % len(word)) + word
        return packed + bytes(-len(packed) % widest)

    def parameter(self, number: int, to: Parameter) -> str:
        return f"parameter {number} of {self.kernel.name} ({to.type}) {_bytes(to)}"

    def refusal(self, place: Any, message: str) -> CaseError:
        return self.arguments.refusal(place, message)


def _bytes(parameter: Parameter) -> int:
    return parameter.size or int(_digits(parameter.type)) // 8


def _digits(text: str) -> str:
    """The digits of a PTX type: 32 of u32."""
    return "".join(sign for sign in text if sign.isdigit())


def _count(arguments: Arguments, kernel: Kernel) -> None:
    given, wanted = len(arguments.args), len(kernel.params)
    if given != wanted:
        raise arguments.refusal(
            ("args",),
            f"{given} arguments, but {kernel.name} has {wanted} parameters",
            "--write-args prints a file that fits",
        )


def _triton_values(
    given: _Given, triton: Mapping[str, Any], grid: tuple[int, int, int]
) -> list[Passed]:
    values: list[Passed] = []
    for parameter, to in zip(triton["parameters"], given.kernel.params, strict=False):
        if "argument" in parameter:
            pointed = given.arguments.args[parameter["argument"]].value
            if not isinstance(pointed, BufferSpec | View):
                raise UnsupportedError(f"parameter {parameter['name']} is given no buffer")
            values.append(given.plain(pointed, to))
            continue
        value, dtype = parameter["value"], element_type(parameter["type"])
        if value is None or dtype is None:
            values.append(None)
        else:
            values.append(given.plain(Scalar(dtype.name, value), to))
    blocks = grid[0] * grid[1] * grid[2]
    for name, size in zip(("global", "profile"), triton["scratch"], strict=True):
        if size * blocks > 1 << 30:
            raise UnsupportedError(f"{size * blocks:,} bytes of {name} scratch memory")
        if size:
            # its number would come between those of the argument file's buffers
            raise UnsupportedError(f"a kernel that needs {name} scratch memory")
        values.append(None)
    return values


def _buffer(each: Filled) -> Buffer:
    owner = each.spec.owner
    owners = None if owner is None else Owners(owner.unit, np.array(owner.of, np.int32))
    return Buffer(each.spec.name, each.data, owners, initialised=each.written)


def _requests(arguments: Arguments, grid: tuple[int, int, int]) -> Any:
    if arguments.requests is None:
        return None
    if len(arguments.requests) != grid[0]:
        raise arguments.refusal(
            ("requests",), f"{len(arguments.requests)} requests for {grid[0]} block columns"
        )
    return np.array(arguments.requests, np.int32)


def _told(each: Filled, direct: bool) -> dict[str, Any]:
    return {
        "name": each.spec.name,
        "dtype": each.spec.dtype,
        "shape": list(each.spec.shape),
        "bytes": int(each.data.nbytes),
        "fill": each.spec.fill.kind,
        "argument": direct,
    }
