"""Instructions to closures on numpy arrays.

A program is a list of basic blocks, a block a list of closures over one register file: a list with
an array a slot. Arrays hold one value a thread, or one value for all (size 1); none is ever changed
in place. Each block exists twice: `fast` for when no thread is elsewhere and results may be written
for all, `slow` with results merged into those of the threads that are elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ..errors import UnsupportedError
from .dataflow import computed_floats, ends, exposed, homes, is_warp_barrier, meets, spans
from .dtypes import BOOL, DTYPES, SIGNED, Array, DType, unsigned
from .parser import layout
from .ptx import (
    Address,
    Immediate,
    Instruction,
    Kernel,
    Negated,
    Operand,
    Register,
    Sink,
    Special,
    Symbol,
)
from .rounding import canonical

File = list[Any]  # the register file
Op = Callable[[File], None]
Make = Callable[[int], Op]  # destination slot -> closure

# Slots that every program has: active threads (bool[n], None for all), the launch's memory and
# the batch's geometry.
MASK, MEMORY, GEOMETRY = 0, 1, 2

MAX_SHARED = 227 << 10  # bytes of a block, the most any device has
MAX_LOCAL = 64 << 10  # bytes of a thread; devices have 512 KB, but not for all threads at once

SPECIAL_DTYPES: dict[str, DType] = {
    f"%{name}{axis}": SIGNED[4]
    for name in ("tid", "ntid", "ctaid", "nctaid")
    for axis in (".x", ".y", ".z")
} | {
    f"%{name}": SIGNED[4]
    for name in [
        "laneid",
        "warpid",
        "nwarpid",
        "dynamic_smem_size",
        "total_smem_size",
        "lanemask_eq",
        "lanemask_le",
        "lanemask_lt",
        "lanemask_ge",
        "lanemask_gt",
    ]
}


@dataclass(frozen=True, slots=True)
class End:
    """How a block ends. kind: jump, fall, return, trap, barrier.

    predicate: slot of the threads for which that holds (None: all); the others fall through.
    target: of a jump, a block. barrier: its number.
    """

    kind: str
    instruction: Instruction
    predicate: int | None = None
    target: int = 0
    barrier: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """A basic block. members: slot of the member mask when it begins with a meeting."""

    fast: tuple[Op, ...]
    slow: tuple[Op, ...]
    end: End
    length: int
    members: int | None
    first: Instruction


@dataclass(frozen=True, slots=True)
class Program:
    """A lowered kernel. template: the register file before the batch's own values are put in.

    specials: slot of each special register used. params: (parameter, dtype, slot).
    shared_static, local_bytes: bytes a block, a thread. dynamic_offset: where dynamic shared
    memory begins.
    """

    blocks: tuple[Block, ...]
    template: tuple[Any, ...]
    specials: dict[str, int]
    params: tuple[tuple[int, DType, int], ...]
    shared_static: int
    local_bytes: int


class Builder:
    """State while one kernel (not an empty one) is lowered; what the handlers call."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.template: File = [None, None, None]
        self.homes = homes(kernel)
        self.spans = spans(kernel)
        self.exposed = exposed(kernel, self.spans)
        self.computed = computed_floats(kernel)
        self.specials: dict[str, int] = {}
        self.params: dict[tuple[int, DType], int] = {}
        self.typed: dict[tuple[str, DType], int] = {}
        self.constants: dict[tuple[str, bytes], int] = {}
        self.forms: dict[str, dict[DType, int]] = {}
        self.fast: list[Op] = []
        self.slow: list[Op] = []
        self.predicate: int | None = None
        self.instruction = kernel.body[0]
        locals_ = [v for v in kernel.variables.values() if v.space == "local"]
        self.local_offsets, self.local_bytes = layout(locals_)
        if self.local_bytes > MAX_LOCAL or kernel.shared_bytes > MAX_SHARED:
            raise UnsupportedError(
                f"{kernel.shared_bytes} bytes of shared and {self.local_bytes} of local memory",
                where=kernel.name,
            )
        dynamic = [v for v in kernel.variables.values() if v.dynamic]
        align = max((v.align for v in dynamic), default=1)
        self.shared_static = -(-kernel.shared_bytes // align) * align

    def unsupported(self, why: str = "") -> NoReturn:
        """Refuse the current instruction."""
        text = f"{self.instruction.spelling} is not supported"
        raise UnsupportedError(
            f"{text}: {why}" if why else text,
            where=f"{self.kernel.name}, PTX line {self.instruction.line}",
        )

    # --- slots ---------------------------------------------------------------------------------
    def slot(self, value: Any = None) -> int:
        """A new place in the register file."""
        self.template.append(value)
        return len(self.template) - 1

    def constant(self, value: int | float, dtype: DType) -> int:
        """A slot that holds `value` (integers modulo the size of dtype) for all threads."""
        if dtype.kind in "iu":
            bits = int(value) & ((1 << 8 * dtype.itemsize) - 1)
            array: Array = np.array([bits], unsigned(dtype)).view(dtype)
        else:
            array = np.array([value], dtype)
        key = (dtype.str, array.tobytes())
        if key not in self.constants:
            self.constants[key] = self.slot(array)
        return self.constants[key]

    def _typed(self, name: str, dtype: DType) -> int:
        key = (name, dtype)
        if key not in self.typed:
            self.typed[key] = self.slot(np.zeros(1, dtype))
        return self.typed[key]

    # --- reading -------------------------------------------------------------------------------
    def read(self, operand: Operand, dtype: DType, *, bits: bool = False) -> int:
        """The slot of an operand seen as `dtype`. bits: a literal gives bits, whatever its type."""
        match operand:
            case Register():
                if DTYPES[operand.type].itemsize != dtype.itemsize or (
                    (operand.type == "pred") != (dtype == BOOL)
                ):
                    self.unsupported(f"{operand.name} has type .{operand.type}")
                return self._form(operand.name, self.homes[operand.name], dtype)
            case Negated(register):
                if dtype != BOOL:
                    self.unsupported("a negated predicate is no number")
                return self.compute(apply1(np.logical_not, self.read(register, BOOL)))
            case Immediate():
                return self._literal(operand, dtype, bits)
            case Special():
                return self._special(operand, dtype)
            case Symbol(name):
                if dtype.itemsize < 4 or dtype.kind == "f":
                    self.unsupported(f"{name} is an address")
                return self.constant(self.address_of(name), dtype)
            case _:
                return self.unsupported("an operand of this form is not known here")

    def kept(self, register: Register) -> int:
        """The slot in which `register` is kept between blocks, of its home dtype."""
        if DTYPES[register.type].itemsize != 4:
            self.unsupported(f"{register.name} has type .{register.type}")
        return self._typed(register.name, self.homes[register.name])

    def _form(self, name: str, home: DType, dtype: DType) -> int:
        forms = self.forms.setdefault(name, {home: self._typed(name, home)})
        if dtype not in forms:
            source = next(iter(forms.values()))
            forms[dtype] = self._typed(name, dtype)
            make = view(source, dtype)
            if name in self.computed and home.kind == "f":
                make = apply1(lambda value: canonical(value).view(dtype), forms.get(home, source))
            self.both(make(forms[dtype]))
        return forms[dtype]

    def _literal(self, operand: Immediate, dtype: DType, bits: bool) -> int:
        size = 8 * dtype.itemsize
        if dtype == BOOL:
            return self.constant(operand.value != 0, BOOL)
        if dtype.kind == "f" and not bits:
            if not operand.float_bits:
                self.unsupported("an integer literal where a float is expected")
            if operand.float_bits != size:
                wide = np.array([operand.value], f"u{operand.float_bits // 8}")
                value = wide.view(f"f{operand.float_bits // 8}").astype(dtype)[0]
                return self.constant(value, dtype)
        if operand.float_bits > size:
            self.unsupported("a literal too wide")
        if not -(1 << 64) < operand.value < 1 << 64:
            self.unsupported("a literal of more than 64 bits")
        if dtype.kind == "f":
            raw = np.array([operand.value & ((1 << size) - 1)], unsigned(dtype))
            key = (dtype.str, raw.tobytes())
            if key not in self.constants:
                self.constants[key] = self.slot(raw.view(dtype))
            return self.constants[key]
        return self.constant(operand.value, dtype)

    def _special(self, operand: Special, dtype: DType) -> int:
        home = SPECIAL_DTYPES.get(operand.name)
        if home is None:
            self.unsupported(f"{operand.name} has no meaning here")
        if operand.name not in self.specials:
            self.specials[operand.name] = self._typed(operand.name, home)
        slot = self._form(operand.name, home, home)
        if dtype.itemsize == home.itemsize:
            return self._form(operand.name, home, dtype)
        if dtype.kind not in "iu":
            self.unsupported(f"{operand.name} is a 32-bit integer")
        return self.compute(lambda d: _cast_unsigned(d, slot, dtype))

    def address_of(self, name: str) -> int:
        """The address of a variable in its own space."""
        variable = self.kernel.variables.get(name)
        if variable is None:
            self.unsupported(f"{name} is not defined")
        if variable.dynamic:
            return self.shared_static
        if variable.space == "shared":
            return self.kernel.shared_offsets[name]
        if variable.space == "local":
            return self.local_offsets[name]
        return self.unsupported(f"{name} lies in .{variable.space} memory of the module")

    # --- writing -------------------------------------------------------------------------------
    def both(self, op: Op) -> None:
        """Add a closure that needs no merge."""
        self.fast.append(op)
        self.slow.append(op)

    def compute(self, make: Make) -> int:
        """A new slot that holds what `make` computes; for all threads."""
        slot = self.slot()
        self.both(make(slot))
        return slot

    def assign(self, result: Operand, dtype: DType, make: Make) -> None:
        """Put what `make` computes, of `dtype`, into `result`, for the threads that execute."""
        if isinstance(result, Sink):
            return
        if not isinstance(result, Register):
            self.unsupported("the result is no register")
        if DTYPES[result.type].itemsize != dtype.itemsize or (
            (result.type == "pred") != (dtype == BOOL)
        ):
            self.unsupported(f"{result.name} has type .{result.type}")
        name, home = result.name, self.homes[result.name]
        if self.predicate is not None:
            make = select(self.predicate, self.compute(make), self.read(result, dtype))
        if name not in self.exposed:
            slot = self._typed(name, dtype)
            self.both(make(slot))
            self.forms[name] = {dtype: slot}
            return
        kept = self._typed(name, home)
        self.forms[name] = {home: kept}
        if dtype != home:
            slot = self._typed(name, dtype)
            self.both(make(slot))
            self.forms[name][dtype] = slot
            make = view(slot, home)
        scratch = self.slot()
        self.fast.append(make(kept))
        self.slow.append(make(scratch))
        self.slow.append(select(MASK, scratch, kept)(kept))

    def home(self, operand: Operand, default: DType) -> DType:
        """The dtype in which moving bits to or from `operand` costs nothing."""
        if isinstance(operand, Register):
            dtype = self.homes[operand.name]
            if dtype.itemsize == default.itemsize and dtype != BOOL:
                return dtype
        return default

    def integer(self, operand: Operand, default: DType) -> DType:
        """Like `home`, of the integer dtypes: for operations that do not look at the sign."""
        dtype = self.home(operand, default)
        return dtype if dtype.kind in "iu" else default

    def parameter(self, address: Operand, dtype: DType) -> int:
        """The slot that a launch fills with the parameter at `address`."""
        if not isinstance(address, Address) or not isinstance(address.base, Symbol):
            self.unsupported("only named parameters are loaded")
        names = [parameter.name for parameter in self.kernel.params]
        if address.base.name not in names:
            self.unsupported(f"{address.base.name} is no parameter")
        index = names.index(address.base.name)
        parameter = self.kernel.params[index]
        if parameter.size or address.offset:
            self.unsupported("parameters passed as structures are not known")
        if DTYPES[parameter.type].itemsize != dtype.itemsize:
            self.unsupported(f"{parameter.name} has type .{parameter.type}")
        key = (index, dtype)
        if key not in self.params:
            self.params[key] = self.slot()
        return self.params[key]


def lower(kernel: Kernel) -> Program:
    """A kernel as a program; UnsupportedError names what it does not execute."""
    from .instructions import HANDLERS

    if not kernel.body:
        return Program((), (None, None, None), {}, (), kernel.shared_bytes, 0)
    builder = Builder(kernel)
    numbers = {span.first: number for number, span in enumerate(builder.spans)}
    blocks = []
    for span in builder.spans:
        builder.forms, builder.fast, builder.slow = {}, [], []
        first = kernel.body[span.first]
        members = None
        end = End("fall", kernel.body[span.end - 1])
        for instruction in kernel.body[span.first : span.end]:
            builder.instruction = instruction
            builder.predicate = None
            predicate = None
            if instruction.predicate is not None:
                predicate = builder.read(instruction.predicate, BOOL)
                if instruction.negated:
                    predicate = builder.compute(apply1(np.logical_not, predicate))
            if ends(instruction):
                end = _end(builder, instruction, predicate, numbers)
                continue
            if meets(instruction) or is_warp_barrier(instruction):
                if predicate is not None:
                    builder.unsupported("predicated")
                members = _members(builder, instruction)
            builder.predicate = predicate
            handler = HANDLERS.get(instruction.opcode)
            if handler is None:
                builder.unsupported()
            handler(builder, instruction)
        fast, slow = tuple(builder.fast), tuple(builder.slow)
        blocks.append(Block(fast, slow, end, span.end - span.first, members, first))
    return Program(
        tuple(blocks),
        tuple(builder.template),
        builder.specials,
        tuple((index, dtype, slot) for (index, dtype), slot in builder.params.items()),
        builder.shared_static,
        builder.local_bytes,
    )


def _end(
    builder: Builder, instruction: Instruction, predicate: int | None, numbers: dict[int, int]
) -> End:
    opcode, modifiers, operands = (
        instruction.opcode,
        set(instruction.modifiers),
        instruction.operands,
    )
    if opcode == "bra":
        if modifiers - {"uni"} or len(operands) != 1 or not isinstance(operands[0], Symbol):
            builder.unsupported()
        at = builder.kernel.labels[operands[0].name]
        return End("jump", instruction, predicate, numbers.get(at, len(numbers)))
    if opcode in ("ret", "exit", "trap"):
        if modifiers - {"uni"} or operands:
            builder.unsupported()
        return End("trap" if opcode == "trap" else "return", instruction, predicate)
    plain = ("bar", {"sync"}), ("bar", {"cta", "sync"}), ("barrier", {"sync"})
    if (opcode, modifiers - {"aligned"}) not in (*plain, ("barrier", {"cta", "sync"})):
        builder.unsupported()
    if len(operands) != 1 or not isinstance(operands[0], Immediate):
        builder.unsupported("only numbered barriers of the whole block are known")
    if not 0 <= operands[0].value < 16:
        builder.unsupported("barriers are numbered from 0 to 15")
    return End("barrier", instruction, predicate, 0, operands[0].value)


def _members(builder: Builder, instruction: Instruction) -> int:
    """The slot of the member mask of a meeting."""
    if instruction.opcode == "activemask":
        return builder.constant(0, DTYPES["u32"])
    named = instruction.operands[-1] if instruction.operands else None
    if isinstance(named, Register):
        # The scheduler looks at it before the block runs, so where it is kept between blocks.
        return builder.kept(named)
    if not isinstance(named, Immediate):
        builder.unsupported()
    return builder.read(named, DTYPES["u32"])


# --- closures ----------------------------------------------------------------------------------
def apply1(function: Callable[..., Any], a: int) -> Make:
    """d = function(a)"""

    def make(d: int) -> Op:
        def run(file: File) -> None:
            file[d] = function(file[a])

        return run

    return make


def apply2(function: Callable[..., Any], a: int, b: int) -> Make:
    """d = function(a, b)"""

    def make(d: int) -> Op:
        def run(file: File) -> None:
            file[d] = function(file[a], file[b])

        return run

    return make


def apply3(function: Callable[..., Any], a: int, b: int, c: int) -> Make:
    """d = function(a, b, c)"""

    def make(d: int) -> Op:
        def run(file: File) -> None:
            file[d] = function(file[a], file[b], file[c])

        return run

    return make


def copy(a: int) -> Make:
    """d = a"""

    def make(d: int) -> Op:
        def run(file: File) -> None:
            file[d] = file[a]

        return run

    return make


def view(a: int, dtype: DType) -> Make:
    """d = the bits of a as dtype"""

    def make(d: int) -> Op:
        def run(file: File) -> None:
            file[d] = file[a].view(dtype)

        return run

    return make


def select(p: int, a: int, b: int) -> Make:
    """d = a where p else b"""
    return apply3(np.where, p, a, b)


def _cast_unsigned(d: int, a: int, dtype: DType) -> Op:
    def run(file: File) -> None:
        file[d] = file[a].view(np.uint32).astype(dtype)

    return run
