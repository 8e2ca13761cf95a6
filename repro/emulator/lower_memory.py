"""Loads, stores and address conversions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .access import SPACES, Access, Form, Lanes
from .builder import Builder
from .closures import apply1, copy
from .dtypes import BOOL, DTYPES, FLOATS, SIGNED, UNSIGNED, Array, DType
from .memory import GENERIC, LOCAL, SHARED, Memory, Piece
from .program import MEMORY, File, Op
from .ptx import Address, Instruction, Operand, Register, Sink, Symbol, Vector
from .rounding import canonical
from .rows import put_rows, rows_at
from .sites import Site
from .storage import LOCAL_TAG, PARAMETER_TAG, SHARED_TAG, TAG_BITS, window_start

WINDOWS = {SHARED: window_start(SHARED_TAG), LOCAL: window_start(LOCAL_TAG)}


def load(builder: Builder, instruction: Instruction) -> None:
    """ld: `ld.space.vec.type d, [a]`."""
    form = Form(builder, instruction)
    if form.words or len(instruction.operands) != 2 + form.policy:
        builder.unsupported()
    result, address = instruction.operands[:2]
    results = result.items if isinstance(result, Vector) else (result,)
    if len(results) != form.elements:
        builder.unsupported("as many registers as elements are needed")
    dtype = _memory_dtype(builder, form, results)
    if form.parameter and isinstance(address, Address) and isinstance(address.base, Symbol):
        predicate = builder.predicate
        for number, register in enumerate(results):
            builder.predicate = predicate
            slot = builder.parameter(address, dtype, number * dtype.itemsize)
            _deliver(builder, form, register, dtype, slot)
        return
    predicate = builder.predicate
    access = Access(builder, address, form, dtype, writes=False)
    slots = [builder.slot() for _ in results]
    builder.both(_load(access, slots, dtype))
    builder.predicate = predicate
    for register, slot in zip(results, slots, strict=True):
        _deliver(builder, form, register, dtype, slot)


def _load(access: Access, slots: list[int], dtype: DType) -> Op:
    site = access.site
    single = slots[0] if len(slots) == 1 else None
    nothing = np.zeros(1, dtype)

    def run(file: File) -> None:
        active = access.lanes(file)
        if active is None:
            for slot in slots:
                file[slot] = nothing
            return
        addresses, lanes = active
        memory: Memory = file[MEMORY]
        pieces = memory.resolve(site, addresses, lanes)
        values = gathered(pieces, site, addresses, lanes, memory.geometry.lanes)
        if single is not None:
            file[single] = values
        else:
            for number, slot in enumerate(slots):
                file[slot] = values[:, number]

    return run


def gathered(pieces: list[Piece], site: Site, addresses: Array, lanes: Lanes, count: int) -> Array:
    """The values of `pieces`, each at its lane (or one for all); 0 where there is none."""
    dtype, elements = site.key
    shape = () if elements == 1 else (elements,)
    if len(pieces) == 1 and pieces[0].which is None:
        values: Array = rows_at(pieces[0].records, pieces[0].at)
        if len(values) == 1 and addresses.size == 1:
            return values
    else:
        size = count if lanes is None else lanes.size
        values = np.zeros((size, *shape), dtype)
        for records, at, which in pieces:
            values[which] = rows_at(records, at)
    if lanes is None:
        return values
    everywhere = np.zeros((count, *shape), dtype)
    everywhere[lanes] = values
    return everywhere


def store(builder: Builder, instruction: Instruction) -> None:
    """st: `st.space.vec.type [a], b`."""
    form = Form(builder, instruction)
    if form.words or form.parameter or len(instruction.operands) != 2 + form.policy:
        builder.unsupported()
    address, value = instruction.operands[:2]
    values = value.items if isinstance(value, Vector) else (value,)
    if len(values) != form.elements:
        builder.unsupported("as many registers as elements are needed")
    dtype = _memory_dtype(builder, form, values)
    slots = [_stored(builder, item, dtype) for item in values]
    access = Access(builder, address, form, dtype, writes=True)
    builder.both(_store(access, slots))


def _store(access: Access, slots: list[int]) -> Op:
    site = access.site

    def run(file: File) -> None:
        active = access.lanes(file)
        if active is None:
            return
        addresses, lanes = active
        memory: Memory = file[MEMORY]
        stored = tuple([file[slot] for slot in slots])
        for records, at, which in memory.resolve(site, addresses, lanes, stored):
            flat = records.ndim == 1
            together = np.empty((0 if flat else at.size, len(stored)), records.dtype)
            for number, values in enumerate(stored):
                if values.size > 1:
                    values = values if lanes is None else values[lanes]
                    values = values if which is None else values[which]
                    if at.size == 1:  # all lanes write one place: the last one stays
                        values = values[-1:]
                if flat:
                    records[at] = values
                else:
                    together[:, number] = values
            if not flat:
                put_rows(records, at, together)

    return run


def _memory_dtype(builder: Builder, form: Form, values: tuple[Operand, ...]) -> DType:
    """The dtype of an element in memory: the register's own where the sizes agree."""
    dtype = DTYPES[form.kind]
    if form.elements == 1 or len({type(value) for value in values}) == 1:
        homes = {builder.home(value, dtype) for value in values}
        if len(homes) == 1:
            return homes.pop()
    return dtype


def _deliver(builder: Builder, form: Form, result: Operand, dtype: DType, slot: int) -> None:
    """A loaded value into its register, extended where the register is wider."""
    if isinstance(result, Sink):
        return
    if not isinstance(result, Register):
        builder.unsupported("the result is no register")
    size = DTYPES[result.type].itemsize
    if size == dtype.itemsize:
        builder.assign(result, dtype, copy(slot))
    elif size < dtype.itemsize or form.kind in FLOATS:
        builder.unsupported(f"{result.name} has type .{result.type}")
    else:
        wide = (SIGNED if form.kind[0] == "s" else UNSIGNED)[size]
        builder.assign(result, wide, apply1(lambda value: value.astype(wide), slot))


def _stored(builder: Builder, value: Operand, dtype: DType) -> int:
    """The slot of a value to store, cut where the register is wider."""
    if isinstance(value, Register) and DTYPES[value.type].itemsize > dtype.itemsize:
        wide = builder.read(value, UNSIGNED[DTYPES[value.type].itemsize])
        return builder.compute(apply1(lambda bits: bits.astype(dtype), wide))
    slot = builder.read(value, dtype, bits=True)
    if isinstance(value, Register) and dtype.kind == "f" and value.name in builder.computed:
        return builder.compute(apply1(canonical, slot))
    return slot


def convert_address(builder: Builder, instruction: Instruction) -> None:
    """cvta: between the addresses of a space and generic ones."""
    modifiers = list(instruction.modifiers)
    to = "to" in modifiers
    if to:
        modifiers.remove("to")
    if len(modifiers) != 2 or len(instruction.operands) != 2 or modifiers[1] not in ("u64", "s64"):
        builder.unsupported()
    space = SPACES.get(modifiers[0])
    if space is None:
        builder.unsupported()
    result, source = instruction.operands
    dtype = SIGNED[8]
    slot = builder.read(source, dtype)
    if space == GENERIC:
        builder.assign(result, dtype, copy(slot))
        return
    start = np.int64(-WINDOWS[space] if to else WINDOWS[space])
    function: Callable[[Any], Any] = lambda value: value + start  # noqa: E731
    builder.assign(result, dtype, apply1(function, slot))


def nothing(builder: Builder, instruction: Instruction) -> None:
    """membar, fence, prefetch, nanosleep: order, caches and time, of which there is none here."""


def create_policy(builder: Builder, instruction: Instruction) -> None:
    """createpolicy: a cache hint, which nothing reads."""
    builder.assign(instruction.operands[0], SIGNED[8], copy(builder.constant(0, SIGNED[8])))


def is_in_space(builder: Builder, instruction: Instruction) -> None:
    """isspacep: whether a generic address lies in a space."""
    words = instruction.modifiers
    if len(words) != 1 or len(instruction.operands) != 2:
        builder.unsupported()
    tags = {
        "shared": (SHARED_TAG, SHARED_TAG + 1),
        "shared::cta": (SHARED_TAG, SHARED_TAG + 1),
        "local": (LOCAL_TAG, LOCAL_TAG + 1),
        "global": (1, PARAMETER_TAG),
    }
    if words[0] not in tags:
        builder.unsupported()
    low, high = tags[words[0]]
    result, address = instruction.operands

    def inside(value: Array) -> Array:
        tag = value >> np.int64(TAG_BITS)
        found: Array = (tag >= low) & (tag < high)
        return found

    builder.assign(result, BOOL, apply1(inside, builder.read(address, SIGNED[8])))


HANDLERS = {
    "ld": load,
    "ldu": load,
    "st": store,
    "cvta": convert_address,
    "membar": nothing,
    "fence": nothing,
    "prefetch": nothing,
    "prefetchu": nothing,
    "nanosleep": nothing,
    "discard": nothing,
    "applypriority": nothing,
    "createpolicy": create_policy,
    "griddepcontrol": nothing,
    "setmaxnreg": nothing,
    "brkpt": nothing,
    "pmevent": nothing,
    "isspacep": is_in_space,
}
