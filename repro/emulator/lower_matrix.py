"""Matrices that a warp holds together: ldmatrix, stmatrix, movmatrix, mma.

Every one needs its whole warp, which the scheduler brings together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .access import Access, Form
from .builder import Builder
from .closures import copy
from .dtypes import F16, F32, F64, SIGNED, UNSIGNED, Array, DType
from .eight_bits import EIGHT_BITS
from .geometry import WARP
from .lower_memory import gathered
from .matrices import (
    matrix,
    multiply_add,
    places_a,
    places_b,
    places_c,
    spread,
    truncated_tf32,
)
from .memory import SHARED, Memory
from .program import MEMORY, File, Op
from .ptx import Instruction, Operand, Register, Vector
from .rounding import canonical, from_bf16

U16, U32 = UNSIGNED[2], UNSIGNED[4]
ROW = 8  # elements of 16 bits in a row, rows in a matrix
COUNTS = {"x1": 1, "x2": 2, "x4": 4}


# --- rows in shared memory -----------------------------------------------------------------------
def _rows(
    builder: Builder, instruction: Instruction, address: Operand, *, writes: bool
) -> tuple[Access, int, bool]:
    """The access to rows, how many matrices there are, and whether they are transposed."""
    form = Form(builder, instruction)
    words = form.words
    counts = [COUNTS[word] for word in words if word in COUNTS]
    if form.space != SHARED or form.kind != "b16" or form.elements > 1 or len(counts) != 1:
        builder.unsupported()
    if sorted(set(words) - COUNTS.keys() - {"trans"}) != ["aligned", "m8n8", "sync"]:
        builder.unsupported()
    form.elements = ROW
    return Access(builder, address, form, U16, writes=writes), counts[0], "trans" in words


def _addressed(access: Access, file: File, count: int) -> tuple[Array, Array]:
    """Addresses of rows and the lanes that give them: the first 8 of each matrix."""
    found = access.lanes(file)
    memory: Memory = file[MEMORY]
    if found is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    addresses, lanes = found
    if lanes is None:
        lanes = memory.geometry.lane
    chosen = lanes % WARP < ROW * count
    return np.broadcast_to(addresses, lanes.shape)[chosen], lanes[chosen]


def load_matrix(builder: Builder, instruction: Instruction) -> None:
    """ldmatrix: `{d...}, [row]`."""
    if len(instruction.operands) != 2:
        builder.unsupported()
    result, address = instruction.operands
    access, count, transposed = _rows(builder, instruction, address, writes=False)
    results = _vector(builder, result, count)
    slots = [builder.slot() for _ in results]

    def run(file: File) -> None:
        addresses, lanes = _addressed(access, file, count)
        memory: Memory = file[MEMORY]
        total = memory.geometry.lanes
        if not lanes.size:
            for slot in slots:
                file[slot] = np.zeros(1, np.uint32)
            return
        pieces = memory.resolve(access.site, addresses, lanes)
        rows = gathered(pieces, access.site, addresses, lanes, total)
        found = rows.reshape(-1, WARP, ROW)[:, : ROW * count].reshape(-1, count, ROW, ROW)
        for number, slot in enumerate(slots):
            file[slot] = _fragment(found[:, number], transposed=transposed)

    builder.both(run)
    for register, slot in zip(results, slots, strict=True):
        builder.assign(register, U32, copy(slot))


def _fragment(matrices: Array, *, transposed: bool) -> Array:
    """uint32[lanes]: two elements a lane of uint16[warps, 8, 8]."""
    if transposed:
        matrices = matrices.transpose(0, 2, 1)
    return np.ascontiguousarray(matrices).view(U32).reshape(-1)


def _matrices(fragment: Array, *, transposed: bool) -> Array:
    """uint16[warps, 8, 8] of uint32[lanes]."""
    found: Array = fragment.view(U16).reshape(-1, ROW, ROW)
    return found.transpose(0, 2, 1) if transposed else found


def store_matrix(builder: Builder, instruction: Instruction) -> None:
    """stmatrix: `[row], {a...}`."""
    if len(instruction.operands) != 2:
        builder.unsupported()
    address, value = instruction.operands
    access, count, transposed = _rows(builder, instruction, address, writes=True)
    slots = [builder.read(item, U32) for item in _vector(builder, value, count)]

    def run(file: File) -> None:
        addresses, lanes = _addressed(access, file, count)
        if not lanes.size:
            return
        memory: Memory = file[MEMORY]
        total = memory.geometry.lanes
        rows = np.zeros((total // WARP, WARP, ROW), U16)
        for number, slot in enumerate(slots):
            fragment = np.ascontiguousarray(np.broadcast_to(file[slot], total))
            found = _matrices(fragment, transposed=transposed)
            rows[:, ROW * number : ROW * (number + 1)] = found
        values = rows.reshape(total, ROW)[lanes]
        stored = tuple(rows.reshape(total, ROW).T)
        for records, at, which in memory.resolve(access.site, addresses, lanes, stored):
            records[at] = values if which is None else values[which]

    builder.both(run)


def move_matrix(builder: Builder, instruction: Instruction) -> None:
    """movmatrix: an 8 x 8 matrix transposed."""
    if (
        instruction.modifiers != ("sync", "aligned", "m8n8", "trans", "b16")
        or len(instruction.operands) != 2
    ):
        builder.unsupported()
    result, source = instruction.operands
    slot = builder.read(source, U32)

    def make(d: int) -> Op:
        def run(file: File) -> None:
            total = file[MEMORY].geometry.lanes
            whole = np.ascontiguousarray(np.broadcast_to(file[slot], total))
            file[d] = _fragment(_matrices(whole, transposed=False), transposed=True)

        return run

    builder.assign(result, U32, make)


def _vector(builder: Builder, operand: Operand, count: int) -> tuple[Operand, ...]:
    items = operand.items if isinstance(operand, Vector) else (operand,)
    if len(items) != count:
        builder.unsupported(f"{len(items)} registers where {count} are needed")
    return items


# --- products ------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Element:
    """A type of A and B. bits: of one in a register. decode: of uint8, 16, 32 or float64."""

    bits: int
    decode: Callable[[Array], Array]


def _signed8(raw: Array) -> Array:
    found: Array = raw.view(np.int8)
    return found


ELEMENTS = {
    "f16": Element(16, lambda raw: raw.view(F16)),
    "bf16": Element(16, from_bf16),
    "tf32": Element(32, truncated_tf32),
    "s8": Element(8, _signed8),
    "u8": Element(8, lambda raw: raw),
    "e4m3": Element(8, EIGHT_BITS["e4m3"].decode),
    "e5m2": Element(8, EIGHT_BITS["e5m2"].decode),
    "f64": Element(64, lambda raw: raw.view(F64)),
}
_HALF = frozenset({"f16"})
_EIGHT = frozenset({"e4m3", "e5m2"})
_BYTES = frozenset({"s8", "u8"})
# (shape, types of A and B, types of C and D)
FORMS: tuple[tuple[str, frozenset[str], frozenset[str]], ...] = (
    ("m16n8k16", _HALF, frozenset({"f16", "f32"})),
    ("m16n8k8", _HALF, frozenset({"f16", "f32"})),
    ("m16n8k16", frozenset({"bf16"}), frozenset({"f32"})),
    ("m16n8k8", frozenset({"bf16"}), frozenset({"f32"})),
    ("m16n8k8", frozenset({"tf32"}), frozenset({"f32"})),
    ("m16n8k4", frozenset({"tf32"}), frozenset({"f32"})),
    ("m16n8k32", _EIGHT, frozenset({"f16", "f32"})),
    ("m16n8k16", _EIGHT, frozenset({"f16", "f32"})),
    ("m16n8k32", _BYTES, frozenset({"s32"})),
    ("m16n8k16", _BYTES, frozenset({"s32"})),
    *((shape, frozenset({"f64"}), frozenset({"f64"})) for shape in ("m8n8k4", "m16n8k4")),
    *((shape, frozenset({"f64"}), frozenset({"f64"})) for shape in ("m16n8k8", "m16n8k16")),
)
_DEPTH = {"m16n8k32": 32, "m16n8k16": 16, "m16n8k8": 8, "m16n8k4": 4, "m8n8k4": 4}


@dataclass(frozen=True, slots=True)
class Product:
    """One form of mma: shape, elements of A and B, type of C and D."""

    rows: int
    depth: int
    a: Element
    b: Element
    kind: str
    saturated: bool

    def compute(self, a: list[Array], b: list[Array], c: list[Array]) -> list[Array]:
        """Registers of D of those of A, B and C, each of one value a lane."""
        left = matrix(self._elements(a, self.a), places_a(self.rows, self.depth, self._packed))
        right = matrix(self._elements(b, self.b), places_b(self.depth, self._packed))
        places = places_c(self.rows)
        start = matrix(self._start(c), places)
        found = multiply_add(left, right, start)
        if self.kind == "s32":
            if self.saturated:
                found = np.clip(found, -(1 << 31), (1 << 31) - 1)
            return list(spread(found.astype(np.int64).astype(np.int32), places))
        if self.kind != "f16":
            return list(spread(canonical(found), places))
        halves = spread(canonical(found.astype(F16)), places).view(np.uint16).astype(np.uint32)
        return [
            low | (high << np.uint32(16)) for low, high in zip(*[iter(halves)] * 2, strict=True)
        ]

    @property
    def _packed(self) -> int:
        return max(1, 32 // self.a.bits)

    def _elements(self, registers: list[Array], element: Element) -> Array:
        """[registers, warps, lanes, packed], decoded."""
        stacked = np.stack(registers)
        raw = stacked.view(UNSIGNED[element.bits // 8])
        decoded: Array = element.decode(raw)
        return decoded.reshape(len(registers), -1, WARP, self._packed)

    def _start(self, registers: list[Array]) -> Array:
        """C as [registers, warps, lanes, 1], in the dtype that sums are kept in."""
        stacked = np.stack(registers)
        if self.kind == "f16":
            pairs = stacked.view(F16).reshape(len(registers), -1, 2)
            stacked = pairs.transpose(0, 2, 1).reshape(2 * len(registers), -1).astype(F32)
        elif self.kind == "s32":
            stacked = stacked.astype(np.int64)
        return stacked.reshape(len(stacked), -1, WARP, 1)


def multiply(builder: Builder, instruction: Instruction) -> None:
    """mma.sync: `d, a, b, c`, vectors of registers."""
    words = list(instruction.modifiers)
    saturated = "satfinite" in words
    if saturated:
        words.remove("satfinite")
    if len(words) != 9 or len(instruction.operands) != 4:
        builder.unsupported()
    *head, d, a, b, c = words
    shape = head[2]
    if (
        head != ["sync", "aligned", shape, "row", "col"]
        or d != c
        or saturated != (saturated and d == "s32")
    ):
        builder.unsupported()
    known = any(
        shape == name and {a, b} <= inputs and d in outputs and (a == b or len(inputs) > 1)
        for name, inputs, outputs in FORMS
    )
    if not known:
        builder.unsupported()
    rows = 8 if shape == "m8n8k4" else 16
    product = Product(rows, _DEPTH[shape], ELEMENTS[a], ELEMENTS[b], d, saturated)
    _emit_product(builder, instruction, product)


def _emit_product(builder: Builder, instruction: Instruction, product: Product) -> None:
    wide: DType = UNSIGNED[8] if product.a.bits == 64 else U32
    sums: dict[str, DType] = {"f16": U32, "f32": F32, "f64": F64, "s32": SIGNED[4]}
    kept = sums[product.kind]
    lane_bits = WARP * 8 * wide.itemsize
    counts = (
        product.rows
        * 8
        * (16 if product.kind == "f16" else 8 * kept.itemsize)
        // (WARP * 8 * kept.itemsize),
        product.rows * product.depth * product.a.bits // lane_bits,
        product.depth * 8 * product.b.bits // lane_bits,
    )
    result, *sources = instruction.operands
    results = _vector(builder, result, counts[0])
    dtypes = (wide, wide, kept)
    slots = [
        [builder.read(item, dtype) for item in _vector(builder, operand, count)]
        for operand, dtype, count in zip(
            sources, dtypes, (counts[1], counts[2], counts[0]), strict=True
        )
    ]
    outs = [builder.slot() for _ in results]

    def run(file: File) -> None:
        total = file[MEMORY].geometry.lanes
        a, b, c = ([np.broadcast_to(file[slot], total) for slot in each] for each in slots)
        for out, values in zip(outs, product.compute(a, b, c), strict=True):
            file[out] = values

    builder.both(run)
    for register, slot in zip(results, outs, strict=True):
        if not isinstance(register, Register):
            builder.unsupported("a result that is no register")
        builder.assign(register, kept, copy(slot))


HANDLERS = {
    "ldmatrix": load_matrix,
    "stmatrix": store_matrix,
    "movmatrix": move_matrix,
    "mma": multiply,
}
