"""What device code calls of its run time: printf and assert; and calls too deep to be followed."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..errors import UnsupportedError
from .builder import Builder
from .closures import copy
from .dtypes import SIGNED, UNSIGNED, Array
from .memory import Memory
from .printf import formatted
from .program import MASK, MEMORY, File
from .ptx import Immediate, Instruction
from .storage import TAG_BITS

MAX_STRING = 4096  # bytes
MAX_ARGUMENTS = 256  # bytes of printf
MAX_CALLS = 4096  # threads that print in one instruction


def print_formatted(builder: Builder, instruction: Instruction) -> None:
    """vprintf: `d, format, arguments`; the threads of an instruction print in their order."""
    result, pattern, arguments = instruction.operands
    predicate = builder.predicate
    slots = builder.read(pattern, SIGNED[8]), builder.read(arguments, SIGNED[8])

    def run(file: File) -> None:
        memory: Memory = file[MEMORY]
        patterns, places = (_each(file, slot) for slot in slots)
        for lane in _lanes(file, predicate)[:MAX_CALLS]:
            found = _string(memory, int(patterns[lane]), int(lane))
            raw = _bytes(memory, int(places[lane]), int(lane), MAX_ARGUMENTS)
            text = partial(_string, memory, lane=int(lane))
            if not memory.recorder.print(formatted(found, raw, text)):
                return

    builder.both(run)
    builder.assign(result, SIGNED[4], copy(builder.constant(0, SIGNED[4])))


def assert_failed(builder: Builder, instruction: Instruction) -> None:
    """assertfail: `message, file, line, function, size of a character`; ends its threads."""
    message, file_name, line, function, _ = instruction.operands
    predicate = builder.predicate
    texts = [builder.read(each, SIGNED[8]) for each in (message, file_name, function)]
    number = builder.read(line, UNSIGNED[4])
    place = instruction.place

    def run(file: File) -> None:
        lanes = _lanes(file, predicate)
        if not lanes.size:
            return
        memory: Memory = file[MEMORY]
        first = int(lanes[0])
        what, where, name = (
            _string(memory, int(_each(file, slot)[first]), first) for slot in texts
        )
        text = f"{where}:{int(_each(file, number)[first])}: {name}: assertion `{what}` failed"
        memory.recorder.trap(place, lanes, memory.geometry, text)

    builder.both(run)


def too_deep(builder: Builder, instruction: Instruction) -> None:
    """recursion: where a function would call itself once more than was put in."""
    (depth,) = instruction.operands
    predicate = builder.predicate
    most = depth.value if isinstance(depth, Immediate) else 0
    where = f"{builder.kernel.name}, PTX line {instruction.line}"

    def run(file: File) -> None:
        if _lanes(file, predicate).size:
            raise UnsupportedError(f"a function calls itself more than {most} deep", where=where)

    builder.both(run)


def _lanes(file: File, predicate: int | None) -> Array:
    """The lanes that execute."""
    geometry = file[MEMORY].geometry
    mask = file[MASK]
    active = np.ones(geometry.lanes, np.bool_) if mask is None else mask
    if geometry.running is not None:
        active = active & geometry.running
    if predicate is not None:
        active = active & file[predicate]
    return np.flatnonzero(active)


def _each(file: File, slot: int) -> Array:
    return np.broadcast_to(file[slot], file[MEMORY].geometry.lanes)


def _bytes(memory: Memory, address: int, lane: int, most: int) -> bytes:
    """Up to `most` bytes from an address on, none where it lies in nothing."""
    found = memory.storages.get(address >> TAG_BITS)
    if found is None:
        return b""
    offset = address - found.base
    if not 0 <= offset < found.size:
        return b""
    start = 0
    if found.starts is not None:
        start = int(found.starts[lane if found.starts.size > 1 else 0])
    end = min(offset + most, found.size)
    return found.data[start + offset : start + end].tobytes()


def _string(memory: Memory, address: int, lane: int) -> str:
    raw = _bytes(memory, address, lane, MAX_STRING)
    return raw.partition(b"\0")[0].decode("utf-8", "replace")


HANDLERS = {
    "vprintf": print_formatted,
    "assertfail": assert_failed,
    "recursion": too_deep,
}
