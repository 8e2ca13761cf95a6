"""Basic blocks, and which registers live longer than one.

A register that no block reads before it writes it is local to its blocks: threads that take
another way never look at it, so a block may write it for all threads, masked or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..errors import UnsupportedError
from .dtypes import BOOL, DTYPES, F16, F32, F64, SIGNED, UNSIGNED, DType
from .ptx import Address, Immediate, Instruction, Kernel, Negated, Operand, Pair, Register, Vector

# The carry flag of add.cc and its like, as a register of every kernel.
CARRY = Register("%CC", "pred")

NO_RESULT = frozenset(
    [
        "st",
        "bra",
        "ret",
        "exit",
        "bar",
        "barrier",
        "red",
        "membar",
        "fence",
        "trap",
        "prefetch",
        "prefetchu",
        "nanosleep",
        "discard",
        "applypriority",
        "brkpt",
        "pmevent",
        "assertfail",
        "recursion",
        "cp",
        "stmatrix",
        "wmma.store",
        "griddepcontrol",
        "setmaxnreg",
    ]
)
ENDS = frozenset(["bra", "ret", "exit", "trap", "bar", "barrier", "assertfail"])
# What only a whole warp may execute.
WHOLE = frozenset(
    ["ldmatrix", "stmatrix", "movmatrix", "mma", "wmma.load", "wmma.store", "wmma.mma"]
)
# Threads of a warp meet here: each begins a block, where groups join before it executes.
MEETINGS = frozenset({"shfl", "vote", "match", "redux", "activemask", "elect"} | WHOLE)


def meets(instruction: Instruction) -> bool:
    """Whether threads of a warp must be together to execute it."""
    return instruction.opcode in MEETINGS


def ends(instruction: Instruction) -> bool:
    """Whether a block ends after it."""
    return instruction.opcode in ENDS and not is_warp_barrier(instruction)


def is_warp_barrier(instruction: Instruction) -> bool:
    """`bar.warp.sync`: a meeting that does nothing else."""
    return instruction.opcode == "bar" and "warp" in instruction.modifiers


class Span(NamedTuple):
    """Instructions first <= i < end of a kernel: one basic block."""

    first: int
    end: int


def spans(kernel: Kernel) -> list[Span]:
    """The basic blocks in order; every label and every meeting begins one."""
    size = len(kernel.body)
    starts = {0, *(at for at in kernel.labels.values() if at < size)}
    for at, instruction in enumerate(kernel.body):
        if ends(instruction):
            starts.add(at + 1)
        if meets(instruction) or is_warp_barrier(instruction):
            starts.add(at)
    ordered = sorted(start for start in starts if start < size)
    return [Span(*pair) for pair in zip(ordered, [*ordered[1:], size], strict=True)] if size else []


def registers(operand: Operand) -> tuple[Register, ...]:
    """All registers in `operand`."""
    if isinstance(operand, Register):
        return (operand,)
    if isinstance(operand, Address):
        return registers(operand.base)
    if isinstance(operand, Vector):
        return tuple(register for item in operand.items for register in registers(item))
    if isinstance(operand, Negated):
        return (operand.register,)
    if isinstance(operand, Pair):
        return registers(operand.first) + registers(operand.second)
    return ()


def reads(instruction: Instruction) -> Iterator[Register]:
    """Registers whose old value an instruction needs; a predicated result keeps its old one."""
    results = 0 if instruction.opcode in NO_RESULT else 1
    for operand in instruction.operands[results:]:
        yield from registers(operand)
    if instruction.predicate is not None:
        yield instruction.predicate
        yield from writes(instruction)
    if instruction.opcode in ("addc", "subc", "madc"):
        yield CARRY


def writes(instruction: Instruction) -> Iterator[Register]:
    """Registers that an instruction writes."""
    if instruction.opcode not in NO_RESULT and instruction.operands:
        yield from registers(instruction.operands[0])
    if "cc" in instruction.modifiers:
        yield CARRY


def exposed(kernel: Kernel, blocks: Iterable[Span]) -> set[str]:
    """Names of the registers that some block reads before it writes them."""
    found: set[str] = set()
    for first, end in blocks:
        written: set[str] = set()
        for instruction in kernel.body[first:end]:
            found.update(r.name for r in reads(instruction) if r.name not in written)
            written.update(r.name for r in writes(instruction))
    return found


def homes(kernel: Kernel) -> dict[str, DType]:
    """For each register, the dtype it is kept in: the one most of its instructions see it as."""
    votes: dict[Register, Counter[DType]] = {}
    for instruction in kernel.body:
        wanted = {
            DTYPES[kind].itemsize: DTYPES[kind]
            for kind in reversed(instruction.modifiers)
            if kind in DTYPES and kind[0] != "b" and "x2" not in kind
        }
        if instruction.predicate is not None:
            votes.setdefault(instruction.predicate, Counter())
        for operand in instruction.operands:
            for register in registers(operand):
                counter = votes.setdefault(register, Counter())
                dtype = wanted.get(DTYPES[register.type].itemsize)
                if dtype is not None and dtype is not BOOL:
                    counter[dtype] += 1
    return {r.name: _elected(r.type, counter) for r, counter in votes.items()} | {CARRY.name: BOOL}


def _elected(kind: str, votes: Counter[DType]) -> DType:
    if kind == "pred":
        return BOOL
    size = DTYPES[kind].itemsize
    if size not in SIGNED:
        raise UnsupportedError(f"a register of type .{kind} in an instruction of another type")
    candidates = [SIGNED[size], UNSIGNED[size], *(t for t in (F16, F32, F64) if t.itemsize == size)]
    if not votes and kind in ("f16", "f32", "f64"):
        return DTYPES[kind]
    return max(candidates, key=lambda dtype: votes[dtype])


# Float operations whose NaN is the device's own, whatever NaN went in.
_ARITHMETIC = frozenset(
    {"add", "sub", "mul", "fma", "mad", "div", "min", "max", "rcp", "sqrt", "rsqrt", "ex2"}
    | {"lg2", "sin", "cos", "tanh", "cvt"}
)
MOVE_CHAIN = 50  # moves of one value that are followed
_MOVES = {"mov": 1, "selp": 2, "shfl": 1}  # opcode: operands that it may pass on


def computed_floats(kernel: Kernel) -> set[str]:
    """Names of the registers that only ever hold results of float arithmetic."""
    results = [(i, [r.name for r in writes(i)]) for i in kernel.body]
    found = {name for _, names in results for name in names}
    for _ in range(MOVE_CHAIN):
        kept = found - {
            name
            for instruction, names in results
            if names and not _computes(instruction, found)
            for name in names
        }
        if kept == found:
            return found
        found = kept
    return set()  # knowing of none is never wrong, only less exact about NaN


def _computes(instruction: Instruction, computed: set[str]) -> bool:
    if instruction.opcode in _ARITHMETIC:
        types = [word for word in instruction.modifiers if word in DTYPES]
        return bool(types) and types[0] in ("f16", "f32")
    count = _MOVES.get(instruction.opcode, 0)
    passed = instruction.operands[1 : 1 + count]
    return bool(passed) and all(
        operand.name in computed
        if isinstance(operand, Register)
        else isinstance(operand, Immediate)
        for operand in passed
    )
