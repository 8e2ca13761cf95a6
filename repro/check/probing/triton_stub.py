"""Enough of `triton.language` to run the index arithmetic of a kernel in plain Python.

Values are Python numbers or lists of them (`Block`). A load or store outside its buffer raises
OutOfBoundsError: on a device it would be the fault. No arithmetic of floats is meant to be right
here, only of indices.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any


class OutOfBoundsError(Exception):
    """An access outside a buffer."""

    def __init__(self, index: int, size: int) -> None:
        super().__init__(f"index {index} of {size}")
        self.index = index
        self.size = size


def _spread(value: Any, length: int) -> list[Any]:
    return value.items if isinstance(value, Block) else [value] * length


def _apply(function: Callable[..., Any], *values: Any) -> Any:
    length = next((len(v.items) for v in values if isinstance(v, Block)), None)
    if length is None:
        return function(*values)
    columns = [_spread(v, length) for v in values]
    return Block([function(*row) for row in zip(*columns, strict=True)])


class Block:
    """A one-dimensional block of values; axes added by indexing do not change it."""

    def __init__(self, items: Sequence[Any]) -> None:
        self.items = list(items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __getitem__(self, _axes: Any) -> Block:
        return self

    def to(self, *_type: Any, **_options: Any) -> Block:
        return self

    def __neg__(self) -> Block:
        return Block([-v for v in self.items])

    def __invert__(self) -> Block:
        return Block([not v if isinstance(v, bool) else ~v for v in self.items])


def _operators() -> None:
    def add(name: str, function: Callable[[Any, Any], Any]) -> None:
        def forward(self: Any, other: Any) -> Any:
            if isinstance(other, Pointer):
                return NotImplemented
            return _apply(function, self, other)

        def backward(self: Any, other: Any) -> Any:
            return _apply(function, other, self)

        setattr(Block, f"__{name}__", forward)
        if name not in ("lt", "le", "gt", "ge", "eq", "ne"):
            setattr(Block, f"__r{name}__", backward)

    for name, function in (
        ("add", operator.add),
        ("sub", operator.sub),
        ("mul", operator.mul),
        ("floordiv", operator.floordiv),
        ("truediv", operator.truediv),
        ("mod", operator.mod),
        ("and", operator.and_),
        ("or", operator.or_),
        ("xor", operator.xor),
        ("lt", operator.lt),
        ("le", operator.le),
        ("gt", operator.gt),
        ("ge", operator.ge),
        ("eq", operator.eq),
        ("ne", operator.ne),
    ):
        add(name, function)


class Number(int):
    """An integer of a kernel: what `.to(...)` can be called on."""

    def to(self, *_type: Any, **_options: Any) -> Number:
        return self


class Pointer:
    """A buffer (a list, changed in place) and an offset into it, in elements."""

    def __init__(self, buffer: list[Any], offset: Any = 0) -> None:
        self.buffer = buffer
        self.offset = offset

    def __add__(self, distance: Any) -> Pointer:
        return Pointer(self.buffer, _apply(operator.add, self.offset, distance))

    __radd__ = __add__

    def __sub__(self, distance: Any) -> Pointer:
        return Pointer(self.buffer, _apply(operator.sub, self.offset, distance))

    def to(self, *_type: Any, **_options: Any) -> Pointer:
        return self


_operators()


def integer_range(*bounds: Any, **_options: Any) -> builtins.range:
    """`range` for bounds that a kernel loaded."""
    return builtins.range(*(int(bound) for bound in bounds))


class Language:
    """Stands for the module `triton.language`; one program of a launch at a time."""

    constexpr = int
    int1 = int8 = int32 = int64 = uint32 = uint64 = float16 = bfloat16 = float32 = float64 = None

    def __init__(self, program: int = 0) -> None:
        self.program = program

    def program_id(self, axis: int = 0) -> Number:
        return Number(self.program if axis == 0 else 0)

    def num_programs(self, _axis: int = 0) -> Number:
        return Number(1)

    def arange(self, first: int, last: int) -> Block:
        return Block([Number(n) for n in builtins.range(first, last)])

    def load(self, pointer: Any, mask: Any = True, other: Any = 0, **_options: Any) -> Any:
        if not isinstance(pointer, Pointer):
            return pointer

        def one(offset: Any, wanted: Any, instead: Any) -> Any:
            if not wanted:
                return instead
            value = pointer.buffer[_inside(pointer, offset)]
            return Number(value) if isinstance(value, int) else value

        return _apply(one, pointer.offset, mask, other)

    def store(self, pointer: Pointer, value: Any, mask: Any = True, **_options: Any) -> None:
        def one(offset: Any, new: Any, wanted: Any) -> None:
            if wanted:
                pointer.buffer[_inside(pointer, offset)] = new

        _apply(one, pointer.offset, value, mask)

    def where(self, condition: Any, first: Any, second: Any) -> Any:
        return _apply(lambda c, a, b: a if c else b, condition, first, second)

    def minimum(self, first: Any, second: Any) -> Any:
        return _apply(min, first, second)

    def maximum(self, first: Any, second: Any) -> Any:
        return _apply(max, first, second)

    def max(self, block: Any, *_axis: Any, **_options: Any) -> Any:
        return max(block.items) if isinstance(block, Block) else block

    def sum(self, block: Any, *_axis: Any, **_options: Any) -> Any:
        return sum(block.items) if isinstance(block, Block) else block

    def cdiv(self, first: int, second: int) -> Number:
        return Number(-(-first // second))

    def cast(self, value: Any, *_type: Any, **_options: Any) -> Any:
        return value

    def exp(self, value: Any) -> Any:
        return _apply(lambda v: math.exp(min(v, 0.0)), value)

    def zeros(self, shape: Any, *_type: Any, **_options: Any) -> Block:
        return Block([0.0] * int(shape[-1]))

    def debug_barrier(self) -> None:
        """All of a program's lanes are executed together here."""

    def static_range(self, *bounds: Any) -> builtins.range:
        return integer_range(*bounds)

    range = static_range


def _inside(pointer: Pointer, offset: Any) -> int:
    if not 0 <= offset < len(pointer.buffer):
        raise OutOfBoundsError(int(offset), len(pointer.buffer))
    return int(offset)
