"""wmma: products of 16 x 16 matrices of halves, whose fragments a warp loads and stores whole.

Which element lies in which register of which lane is the device's own (PTX ISA, "Matrix fragments
for WMMA"); here lane l holds 8 elements of row l / 2, from column 8 (l % 2) on. Fragments of A and
B have room for each element twice, as on devices.
"""

from __future__ import annotations

import numpy as np

from .access import Access, Form
from .builder import Builder
from .closures import copy
from .dtypes import DTYPES, F16, F32, SIGNED, UNSIGNED, Array, DType
from .geometry import WARP
from .lower_memory import gathered
from .matrices import multiply_add
from .memory import Memory
from .program import MEMORY, File
from .ptx import Instruction, Operand, Register, Vector
from .rounding import canonical

U32 = UNSIGNED[4]
SHAPE, SIDE = "m16n16k16", 16
RUN = 8  # elements of a lane
PIECE = 16  # bytes of one access: rows need not be aligned to more
LAYOUTS = ("row", "col")


class Fragment:
    """The access to a matrix in memory: `[address], stride`, by rows or by columns.

    matrix: a, b, c or d. dtype: of an element. registers: of the fragment, and the dtype of one.
    """

    def __init__(
        self, builder: Builder, instruction: Instruction, address: Operand, stride: Operand | None
    ) -> None:
        form = Form(builder, instruction)
        writes = instruction.opcode == "wmma.store"
        kinds = {"a": ("f16",), "b": ("f16",), "c": ("f16", "f32"), "d": ("f16", "f32")}
        matrix, *words = form.words or ("",)
        if (
            matrix not in (("d",) if writes else ("a", "b", "c"))
            or form.kind not in kinds[matrix]
            or len(words) != 4
            or words[:2] != ["sync", "aligned"]
            or words[2] not in LAYOUTS
            or words[3] != SHAPE
        ):
            builder.unsupported()
        self.dtype: DType = DTYPES[form.kind]
        self.by_columns = words[2] == "col"
        self.copies = 2 if matrix in ("a", "b") else 1
        self.kept: DType = F32 if self.dtype == F32 else U32
        self.count = RUN * self.dtype.itemsize // self.kept.itemsize
        form.elements = PIECE // self.dtype.itemsize
        self.access = Access(builder, address, form, self.dtype, writes=writes)
        self.stride = (
            builder.constant(SIDE, SIGNED[4]) if stride is None else builder.read(stride, SIGNED[4])
        )

    def places(self, file: File) -> tuple[list[Array], Array | None] | None:
        """Addresses of each lane's pieces, and the lanes (None: all); None where none is active."""
        found = self.access.lanes(file)
        if found is None:
            return None
        addresses, lanes = found
        lane = file[MEMORY].geometry.lane if lanes is None else lanes
        stride = np.broadcast_to(file[self.stride], file[MEMORY].geometry.lanes)[lane]
        inside = lane % WARP
        elements = (inside // 2).astype(np.int64) * stride + inside % 2 * RUN
        first = addresses + elements * self.dtype.itemsize
        size = RUN * self.dtype.itemsize
        return [first + at for at in range(0, size, PIECE)], lanes

    def turned(self, elements: Array) -> Array:
        """[lanes, RUN] by lines of memory from rows, or the other way round."""
        if not self.by_columns:
            return elements
        matrices = elements.reshape(-1, SIDE, SIDE).transpose(0, 2, 1)
        return np.ascontiguousarray(matrices).reshape(-1, RUN)


def load(builder: Builder, instruction: Instruction) -> None:
    """wmma.load: `{d...}, [a], stride`."""
    if len(instruction.operands) not in (2, 3):
        builder.unsupported()
    result, address, *stride = instruction.operands
    fragment = Fragment(builder, instruction, address, stride[0] if stride else None)
    results = _vector(builder, result, fragment.count * fragment.copies)
    slots = [builder.slot() for _ in range(fragment.count)]
    site = fragment.access.site

    def run(file: File) -> None:
        found = fragment.places(file)
        if found is None:
            for slot in slots:
                file[slot] = np.zeros(1, fragment.kept)
            return
        memory: Memory = file[MEMORY]
        total = memory.geometry.lanes
        pieces, lanes = found
        loaded = [
            gathered(memory.resolve(site, at, lanes), site, at, lanes, total) for at in pieces
        ]
        rows = fragment.turned(np.concatenate(loaded, axis=1))
        for slot, values in zip(
            slots, np.ascontiguousarray(rows).view(fragment.kept).T, strict=True
        ):
            file[slot] = np.ascontiguousarray(values)

    builder.both(run)
    for number, register in enumerate(results):
        builder.assign(register, fragment.kept, copy(slots[number % fragment.count]))


def store(builder: Builder, instruction: Instruction) -> None:
    """wmma.store: `[a], {d...}, stride`."""
    if len(instruction.operands) not in (2, 3):
        builder.unsupported()
    address, value, *stride = instruction.operands
    fragment = Fragment(builder, instruction, address, stride[0] if stride else None)
    items = _vector(builder, value, fragment.count)
    slots = [builder.read(item, fragment.kept) for item in items]
    site = fragment.access.site

    def run(file: File) -> None:
        found = fragment.places(file)
        if found is None:
            return
        memory: Memory = file[MEMORY]
        pieces, lanes = found
        whole = _elements(file, slots, fragment.dtype)
        rows = fragment.turned(whole).reshape(len(whole), len(pieces), -1)
        for number, addresses in enumerate(pieces):
            part = rows[:, number]
            mine = part if lanes is None else part[lanes]
            for records, at, which in memory.resolve(site, addresses, lanes, tuple(part.T)):
                records[at] = mine if which is None else mine[which]

    builder.both(run)


def multiply(builder: Builder, instruction: Instruction) -> None:
    """wmma.mma: `d, a, b, c`: of halves, into halves or floats."""
    words = instruction.modifiers
    if (
        len(words) != 7
        or words[:2] != ("sync", "aligned")
        or not set(words[2:4]) <= set(LAYOUTS)
        or words[4] != SHAPE
        or not set(words[5:]) <= {"f16", "f32"}
        or len(instruction.operands) != 4
    ):
        builder.unsupported()
    result, left, right, start = instruction.operands
    out, into = DTYPES[words[5]], DTYPES[words[6]]
    results = _vector(builder, result, RUN if out == F32 else RUN // 2)
    sources = [
        [builder.read(item, U32) for item in _vector(builder, each, RUN)[: RUN // 2]]
        for each in (left, right)
    ]
    wanted = _vector(builder, start, RUN if into == F32 else RUN // 2)
    sums = [builder.read(item, F32 if into == F32 else U32) for item in wanted]
    slots = [builder.slot() for _ in results]
    kept: DType = F32 if out == F32 else U32

    def run(file: File) -> None:
        a, b = (_elements(file, each, F16).reshape(-1, SIDE, SIDE) for each in sources)
        c = _elements(file, sums, into).reshape(-1, SIDE, SIDE).astype(F32)
        found = canonical(multiply_add(a, b, c).astype(out)).reshape(-1, RUN)
        for slot, values in zip(slots, np.ascontiguousarray(found).view(kept).T, strict=True):
            file[slot] = np.ascontiguousarray(values)

    builder.both(run)
    for register, slot in zip(results, slots, strict=True):
        builder.assign(register, kept, copy(slot))


def _elements(file: File, slots: list[int], dtype: DType) -> Array:
    """[lanes, elements] of the registers of a fragment."""
    total = file[MEMORY].geometry.lanes
    registers = np.stack([np.broadcast_to(file[slot], total) for slot in slots], axis=1)
    return registers.view(dtype)


def _vector(builder: Builder, operand: Operand, count: int) -> tuple[Operand, ...]:
    if not isinstance(operand, Vector) or len(operand.items) != count:
        builder.unsupported(f"a fragment of {count} registers is needed")
    if not all(isinstance(item, Register) for item in operand.items):
        builder.unsupported("a fragment holds registers")
    return operand.items


HANDLERS = {"wmma.load": load, "wmma.store": store, "wmma.mma": multiply}
