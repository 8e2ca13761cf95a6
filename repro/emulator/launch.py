"""Launching a kernel: arguments in, wrong accesses out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from ..errors import LaunchRefusedError
from ..ops import Owners
from . import checks as checking
from .affine.decide import decided
from .dtypes import DTYPES, UNSIGNED, Array, DType
from .geometry import WARP, Geometry, Triple, geometry
from .global_races import GlobalRaces, watch
from .lower_copy import finish
from .lowering import lower
from .machine import Machine
from .memory import Memory
from .program import GEOMETRY, MASK, MAX_SHARED, MEMORY, File, Program
from .ptx import Kernel, Parameter
from .report import LaunchReport, Recorder, StopLaunch, WrongAccess
from .statics import parameter_storage, storages
from .storage import (
    LOCAL_TAG,
    MAX_BUFFERS,
    SHARED_TAG,
    Storage,
    buffer_storage,
    row_storage,
)

__all__ = ["Buffer", "LaunchReport", "WrongAccess", "launch"]

MAX_INSTRUCTIONS = 20_000_000
MAX_THREADS = 1024  # of a block
MAX_GRID = (2**31 - 1, 65535, 65535)
LANES = 1 << 14  # threads at once, so that registers stay in cache; a block is never cut
BATCH_BYTES = 256 << 20  # of registers, shared and local memory

_PROGRAMS: WeakKeyDictionary[Kernel, Program] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Buffer:
    """A pointer argument. data: one-dimensional storage, changed in place.

    behind: what lies right behind it, where that is known: reads that land there are recorded and
    return it. owners: who may touch which unit of it. initialised: bool[bytes of data], which bytes
    somebody wrote, changed in place as stores write them; None: all.
    """

    name: str
    data: Array
    owners: Owners | None = None
    behind: Array | None = None
    initialised: Array | None = None


@dataclass(frozen=True, slots=True)
class Structure:
    """A structure passed by value. pointers: byte offset -> the buffer that an address there names.

    A buffer that is an argument of the launch too is one and the same.
    """

    data: bytes
    pointers: Mapping[int, Buffer] = field(default_factory=dict)


Value = Buffer | Structure | int | float | bytes | None


def launch(
    kernel: Kernel,
    grid: Triple,
    block: Triple,
    args: Sequence[Value],
    *,
    shared_bytes: int = 0,
    requests: Array | None = None,
    stop_at_first: bool = False,
    max_instructions: int = MAX_INSTRUCTIONS,
    checks: frozenset[str] = checking.DEFAULT,
    outputs: bool = True,
    marks: bool = False,
    copies: bool = False,
) -> LaunchReport:
    """Execute `kernel` for all threads, in place on the buffers.

    args: in parameter order; None, and what is missing at the end, is null; structures are bytes.
    Variables of the module keep what is written to them for as long as `kernel` lives.
    shared_bytes: dynamic shared memory of a block. requests: int32[grid x], the request each block
    column works for. checks: of checks.ALL, those to make besides the limits. outputs: False where
    only the findings are wanted: blocks are then not executed if they can be decided all at once,
    and what the buffers hold afterwards means nothing. Nor do the marks of what is initialised, but
    with `marks`, and then not of those in the report's `unmarked`. copies: True where a compiler
    laid out shared memory (Triton), so that what threads store to one place by one instruction are
    copies of one number: that they differ is told in the report's `uneven` and is no race.
    UnsupportedError before anything runs where the kernel holds what is not executed, and while it
    runs after max_instructions or where threads wait for each other for ever. LaunchRefusedError
    for arguments that no launch could have.
    """
    program = prepare(kernel)
    _check_shape(kernel, grid, block, program.shared_static + shared_bytes, shared_bytes)
    if requests is not None and requests.shape != (grid[0],):
        raise LaunchRefusedError(f"{grid[0]} block columns, requests for {requests.shape}")
    buffers, values = _arguments(kernel, args)
    variables = storages(kernel.statics)
    for number in program.addressed:
        variables.append(parameter_storage(kernel, number, values[number]))
    checks = checking.chosen(checks)
    memory = (buffers + variables, values)
    if not outputs and not stop_at_first:
        shape = (grid, block, shared_bytes)
        recorder = Recorder(requests, stop_at_first=False, checks=checks)
        looked = decided(kernel, program, shape, memory, recorder, marks=marks)
        if looked is not None:
            return LaunchReport(
                recorder.accesses(buffers),
                looked.steps,
                checks=checks,
                invented=program.invented,
                decided=grid[0] * grid[1] * grid[2],
                unmarked=looked.unmarked,
            )
    recorder = Recorder(requests, stop_at_first=stop_at_first, checks=checks, copies=copies)
    for storage in variables:
        storage.watch = None  # it may be of an earlier launch, which they outlive
    watched: list[GlobalRaces] = []
    if checking.GLOBAL_RACE in checks and grid != (1, 1, 1):
        watched = watch(buffers + variables, recorder.warnings, program.grain)
    instructions = 0
    lanes: Geometry | None = None
    for first, count in _batches(program, grid, block, shared_bytes):
        lanes = geometry(first, count, block, grid, lanes)
        machine = _machine(program, kernel, lanes, memory, recorder, shared_bytes)
        for each in watched:
            each.geometry = lanes
        try:
            with np.errstate(all="ignore"):
                machine.run(max_instructions - instructions)
                finish(machine.memory)
        except StopLaunch:
            break
        finally:
            instructions += machine.executed
    for each in watched:
        each.settle()
    return LaunchReport(
        recorder.accesses(buffers),
        instructions,
        "".join(recorder.printed),
        recorder.warnings.warnings(),
        checks,
        program.invented,
        uneven=recorder.uneven.warnings(),
    )


def prepare(kernel: Kernel) -> Program:
    """The program of a kernel, lowered once."""
    program = _PROGRAMS.get(kernel)
    if program is None:
        program = _PROGRAMS[kernel] = lower(kernel)
    return program


def _check_shape(kernel: Kernel, grid: Triple, block: Triple, shared: int, dynamic: int) -> None:
    threads = block[0] * block[1] * block[2]
    if min(block) < 1 or threads > MAX_THREADS:
        raise LaunchRefusedError(f"{kernel.name}: a block of {block} threads")
    if kernel.reqntid is not None and block != kernel.reqntid:
        raise LaunchRefusedError(
            f"{kernel.name}: a block of {block} threads, compiled for {kernel.reqntid}"
        )
    if any(not 1 <= size <= most for size, most in zip(grid, MAX_GRID, strict=True)):
        raise LaunchRefusedError(f"{kernel.name}: a grid of {grid} blocks")
    if dynamic < 0 or shared > MAX_SHARED:
        raise LaunchRefusedError(f"{kernel.name}: {shared} bytes of shared memory a block")


def _arguments(kernel: Kernel, args: Sequence[Value]) -> tuple[list[Storage], list[bytes]]:
    """Buffers, and the bits of every parameter."""
    if len(args) > len(kernel.params):
        raise LaunchRefusedError(
            f"{kernel.name} takes {len(kernel.params)} arguments, {len(args)} were given"
        )
    known: dict[int, Storage] = {}
    bits = []
    for number, parameter in enumerate(kernel.params):
        value = args[number] if number < len(args) else None
        if isinstance(value, Buffer):
            if parameter.size or DTYPES[parameter.type].itemsize != 8:
                raise LaunchRefusedError(f"{kernel.name}: {parameter.name} is no pointer")
            bits.append(_pointer(kernel, value, known))
        elif isinstance(value, Structure):
            raw = bytearray(_scalar(kernel, parameter, value.data))
            for at, buffer in value.pointers.items():
                if not 0 <= at <= len(raw) - 8:
                    raise LaunchRefusedError(f"{kernel.name}: {parameter.name} ends before {at}")
                raw[at : at + 8] = _pointer(kernel, buffer, known)
            bits.append(bytes(raw))
        else:
            bits.append(_scalar(kernel, parameter, value))
    return list(known.values()), bits


def _pointer(kernel: Kernel, buffer: Buffer, known: dict[int, Storage]) -> bytes:
    """The address of a buffer. known: the storages of the launch, by the identity of buffers."""
    if id(buffer) not in known:
        if len(known) == MAX_BUFFERS:
            raise LaunchRefusedError(f"{kernel.name}: more than {MAX_BUFFERS} buffers")
        tag = len(known) + 1
        try:
            storage = buffer_storage(
                buffer.name,
                buffer.data,
                tag,
                buffer.owners,
                buffer.behind,
                buffer.initialised,
            )
        except ValueError as error:
            raise LaunchRefusedError(str(error)) from error
        known[id(buffer)] = storage
    return known[id(buffer)].base.to_bytes(8, "little")


def _scalar(kernel: Kernel, parameter: Parameter, value: int | float | bytes | None) -> bytes:
    if parameter.size or isinstance(value, bytes):
        size = parameter.size or DTYPES[parameter.type].itemsize
        if value is None:
            return bytes(size)
        if not isinstance(value, bytes) or len(value) != size:
            raise LaunchRefusedError(f"{kernel.name}: {parameter.name} takes {size} bytes")
        return value
    dtype = DTYPES[parameter.type]
    if value is None:
        return bytes(dtype.itemsize)
    if isinstance(value, float) or dtype.kind == "f":
        if dtype.itemsize not in (2, 4, 8) or parameter.type[0] in "su":
            raise LaunchRefusedError(f"{kernel.name}: {parameter.name} is no float")
        return np.array([value], f"f{dtype.itemsize}").tobytes()
    size = 8 * dtype.itemsize
    if not -(1 << (size - 1)) <= value < 1 << size:
        raise LaunchRefusedError(f"{kernel.name}: {parameter.name} = {value} needs more bits")
    return (int(value) & ((1 << size) - 1)).to_bytes(dtype.itemsize, "little")


def _batches(
    program: Program, grid: Triple, block: Triple, dynamic: int
) -> Iterator[tuple[int, int]]:
    """The blocks of a launch as (first, count) of each batch."""
    threads = block[0] * block[1] * block[2]
    padded = -(-threads // WARP) * WARP
    lane_bytes = 8 * len(program.template) + program.local_bytes + 16
    block_bytes = padded * lane_bytes + program.shared_static + dynamic + 16
    count = max(1, min(LANES // padded, BATCH_BYTES // block_bytes))
    total = grid[0] * grid[1] * grid[2]
    for first in range(0, total, count):
        yield first, min(count, total - first)


def _machine(
    program: Program,
    kernel: Kernel,
    lanes: Geometry,
    arguments: tuple[list[Storage], list[bytes]],
    recorder: Recorder,
    dynamic: int,
) -> Machine:
    """One batch, ready to run."""
    buffers, bits = arguments
    size = program.shared_static + dynamic
    marked = checking.INITIALISED in recorder.checks
    shared = row_storage("shared memory", SHARED_TAG, size, lanes.count, lanes.row, marked=marked)
    local_rows = lanes.lanes if program.local_bytes else 1
    local = row_storage(
        "local memory", LOCAL_TAG, program.local_bytes, local_rows, lanes.lane, marked=marked
    )
    file: File = list(program.template)
    file[MASK] = None
    file[MEMORY] = Memory(buffers, shared, local, lanes, recorder, program.grain)
    file[GEOMETRY] = lanes
    for name, slot in program.specials.items():
        file[slot] = lanes.special(name, dynamic, size)
    for number, at, dtype, slot in program.params:
        file[slot] = _parameter(bits[number], at, dtype)
    return Machine(program, file, file[MEMORY], kernel.name)


def _parameter(bits: bytes, at: int, dtype: DType) -> Array:
    return np.frombuffer(bits, UNSIGNED[dtype.itemsize], 1, at).view(dtype)
