"""What of a kernel decides where it reads and writes: taken out once, walked for every launch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

from ..builder import ALONE, INVENTED
from ..dataflow import reads, registers, writes
from ..dtypes import DTYPES
from ..ptx import Address, Immediate, Instruction, Kernel, Negated, Register, Special, Symbol
from .value import (
    Value,
    conjunction,
    difference,
    disjunction,
    greatest,
    least,
    minus,
    plus,
    quotient,
    remainder,
    shifted_left,
    shifted_right,
    wrapped,
)

Binary = Callable[[Value, Value, int], Value | None]

BINARY: dict[str, Binary] = {
    "add": plus,
    "sub": minus,
    "shl": shifted_left,
    "shr": shifted_right,
    "div": quotient,
    "rem": remainder,
    "and": conjunction,
    "or": disjunction,
    "xor": difference,
    "min": least,
    "max": greatest,
}
# What cares whether a number is signed: unsigned ones must then not be negative.
SIGN_MATTERS = frozenset({"shr", "div", "rem", "min", "max", "mul", "mad", "setp", "cvt"})
WIDE = {2: 4, 4: 8}
INTEGERS = frozenset(f"{kind}{size}" for kind in "sub" for size in (32, 64))
# Nothing but their result comes of these, so they count only where it is needed.
PURE = frozenset(
    {"abs", "add", "addc", "and", "bfe", "bfi", "bfind", "brev", "clz", "cnot", "copysign", "cos"}
    | {"cvt", "cvta", "div", "dp2a", "dp4a", "ex2", "fma", "fns", "isspacep", "lg2", "lop3", "mad"}
    | {"madc", "max", "min", "mov", "mul", "neg", "not", "or", "popc", "prmt", "rcp", "rem"}
    | {"rsqrt", "sad", "selp", "set", "setp", "shf", "shl", "shr", "sin", "slct", "sqrt", "sub"}
    | {"subc", "tanh", "testp", "xor"}
)
NOTHING = frozenset({"membar", "fence", "prefetch", "prefetchu", "discard", "applypriority"})
COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "lo", "ls", "hi", "hs"})

Operand = str | int | Special | tuple[int, int, str] | None  # register, number, ..., parameter


@dataclass(frozen=True, eq=False)  # no slots: it keeps what it is asked for
class Step:
    """What is walked of an instruction.

    kind: compute, compare, access, branch, leave, barrier or nothing. do: of compute, what is done;
    of compare, with what it is combined. gives: registers. takes: the operands; None: not known.
    predicate: register and whether it is negated. size: bytes of the result. signed: whether its
    operands are. target: step to go to. offset: of an address. words: the comparison.
    """

    kind: str
    instruction: Instruction
    gives: tuple[str, ...] = ()
    takes: tuple[Operand, ...] = ()
    predicate: tuple[str, bool] | None = None
    do: str = ""
    size: int = 4
    signed: bool = True
    target: int = -1
    offset: int = 0
    words: tuple[str, ...] = ()

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The registers that it looks at."""
        names = [o.removeprefix("!") for o in self.takes if isinstance(o, str)]
        return (*names, self.predicate[0]) if self.predicate else tuple(names)


_CODES: WeakKeyDictionary[Kernel, tuple[Step, ...] | None] = WeakKeyDictionary()


def code(kernel: Kernel) -> tuple[Step, ...] | None:
    """The steps of a kernel; None where it does what is not walked. A step's number is that of
    its instruction.
    """
    if kernel not in _CODES:
        _CODES[kernel] = _decoded(kernel)
    return _CODES[kernel]


def _decoded(kernel: Kernel) -> tuple[Step, ...] | None:
    if not all(map(_walked, kernel.body)) or any(
        v.space in ("shared", "local") for v in kernel.variables.values()
    ):
        return None
    needed = _needed(kernel)
    steps = []
    for instruction in kernel.body:
        step = _step(kernel, instruction, needed)
        if step is None:
            return None
        steps.append(step)
    return tuple(steps)


def _walked(instruction: Instruction) -> bool:
    opcode, words = instruction.opcode, instruction.modifiers
    if opcode in ("ld", "st", "atom", "red"):
        return bool(words) and not {"shared", "shared::cta", "local", "const"} & set(words)
    if opcode in ("bar", "barrier"):
        return "warp" not in words and words[-1:] != ("arrive",) and "red" not in words
    return opcode in PURE or opcode in NOTHING or opcode in ("bra", "ret", "exit")


def _is_parameter(instruction: Instruction) -> bool:
    return any(word.startswith("param") for word in instruction.modifiers)


def _is_access(instruction: Instruction) -> bool:
    return instruction.opcode in ("ld", "st", "atom", "red") and not _is_parameter(instruction)


def _needed(kernel: Kernel) -> frozenset[str]:
    """Registers on which addresses and ways depend."""
    found: set[str] = set()
    for instruction in kernel.body:
        if _is_access(instruction):
            found.update(
                r.name for o in instruction.operands if isinstance(o, Address) for r in registers(o)
            )
        if instruction.predicate is not None and instruction.opcode not in PURE:
            found.add(instruction.predicate.name)
    while True:
        more = set(found)
        for instruction in kernel.body:
            if not _is_access(instruction) and any(r.name in found for r in writes(instruction)):
                more.update(r.name for r in reads(instruction))
        if more == found:
            return frozenset(found)
        found = more


def _step(kernel: Kernel, instruction: Instruction, needed: frozenset[str]) -> Step | None:
    opcode = instruction.opcode
    gives = tuple(r.name for r in writes(instruction) if r.name in needed)
    given = instruction.predicate
    predicate = None if given is None else (given.name, instruction.negated)
    if _is_access(instruction):
        address = next((o for o in instruction.operands if isinstance(o, Address)), None)
        if address is None:
            return None
        base = _operand(kernel, address.base, 8)
        return Step("access", instruction, gives, (base,), predicate, offset=address.offset)
    if opcode == "bra":
        target = instruction.operands[-1]
        if not isinstance(target, Symbol) or target.name not in kernel.labels:
            return None
        at = kernel.labels[target.name]
        return Step("branch", instruction, predicate=predicate, target=at)
    if opcode in ("ret", "exit"):
        return Step("leave", instruction, predicate=predicate)
    if opcode in ("bar", "barrier"):
        return Step("barrier", instruction, predicate=predicate)
    if not gives or opcode in NOTHING:
        return Step("nothing", instruction)
    return _computed(kernel, instruction, gives, predicate)


def _computed(
    kernel: Kernel,
    instruction: Instruction,
    gives: tuple[str, ...],
    predicate: tuple[str, bool] | None,
) -> Step:
    """A step that sets registers; where it is not known what they hold then, do is ""."""
    opcode, words = instruction.opcode, instruction.modifiers
    unknown = Step("compute", instruction, gives, predicate=predicate)
    if len(gives) != 1 or not words or len(instruction.operands) < 2:
        return unknown
    if not isinstance(instruction.operands[0], Register):
        return unknown
    kind = words[-1]
    if opcode == "ld":
        address = instruction.operands[1]
        if not isinstance(address, Address) or kind not in INTEGERS:
            return unknown
        where = _parameter(kernel, address, kind)
        return unknown if where is None else _made(unknown, "mov", (where,), kind)
    if opcode == "setp":
        return _comparison(kernel, instruction, unknown)
    if kind == "pred" and opcode in ("mov", "and", "or", "not"):
        takes = tuple(_predicate(o) for o in instruction.operands[1:])
        return _made(unknown, f"{opcode}.pred", takes, "b32")
    if kind not in INTEGERS or set(words) & {"cc", "sat", "hi"}:
        return unknown
    if opcode == "cvta" and "global" not in words:
        return unknown
    if opcode == "cvt":
        return _conversion(kernel, instruction, unknown)
    size = DTYPES[kind].itemsize
    if opcode in ("mul", "mad") and "wide" not in words and "lo" not in words:
        return unknown
    if opcode in BINARY or opcode in ("mul", "mad", "mov", "cvta", "neg", "not", "selp"):
        *plain, last = instruction.operands[1:]
        wide = "wide" in words
        many = [_operand(kernel, o, size) for o in plain]
        if opcode == "selp":
            many.append(_predicate(last))
        elif opcode in ("shl", "shr"):
            many.append(_operand(kernel, last, 4))
        else:
            many.append(_operand(kernel, last, WIDE[size] if wide and opcode == "mad" else size))
        made = _made(unknown, opcode, tuple(many), kind)
        if not wide:
            return made
        return unknown if size not in WIDE else _resized(made, WIDE[size])
    return unknown


def _made(step: Step, do: str, takes: tuple[Operand, ...], kind: str) -> Step:
    size = DTYPES[kind].itemsize
    return Step(
        step.kind, step.instruction, step.gives, takes, step.predicate, do, size, kind[0] == "s"
    )


def _resized(step: Step, size: int) -> Step:
    return Step(
        step.kind,
        step.instruction,
        step.gives,
        step.takes,
        step.predicate,
        step.do,
        size,
        step.signed,
    )


def _comparison(kernel: Kernel, instruction: Instruction, unknown: Step) -> Step:
    words = instruction.modifiers
    kind = words[-1]
    if kind not in INTEGERS or len(instruction.operands) > 4 or words[0] not in COMPARISONS:
        return unknown
    combined = words[1] if len(words) == 3 else ""
    if len(words) > 3 or combined not in ("", "and", "or"):
        return unknown
    first, second, *third = instruction.operands[1:]
    size = DTYPES[kind].itemsize
    takes: tuple[Operand, ...] = (_operand(kernel, first, size), _operand(kernel, second, size))
    takes += tuple(_predicate(o) for o in third)
    made = _made(unknown, "setp", takes, kind)
    return Step(
        "compare",
        instruction,
        made.gives,
        takes,
        made.predicate,
        combined,
        size,
        made.signed,
        words=(words[0],),
    )


def _conversion(kernel: Kernel, instruction: Instruction, unknown: Step) -> Step:
    words = instruction.modifiers
    to, source = words[-2:] if len(words) > 1 else ("", "")
    if len(words) != 2 or to not in INTEGERS or source not in INTEGERS:
        return unknown
    taken = _operand(kernel, instruction.operands[1], DTYPES[source].itemsize)
    made = _made(unknown, "cvt", (taken,), to)
    return Step(
        made.kind,
        instruction,
        made.gives,
        made.takes,
        made.predicate,
        "cvt",
        made.size,
        source[0] == "s",
    )


def _operand(kernel: Kernel, operand: object, size: int) -> Operand:
    match operand:
        case Register():
            return operand.name if DTYPES[operand.type].itemsize == size else None
        case Immediate(value, 0):
            return wrapped(value, size)
        case Special(name) if name in ALONE:
            return ALONE[name]
        case Special(name) if name not in INVENTED:
            return operand if size == 4 else None
    return None


def _predicate(operand: object) -> Operand:
    """A register, `!` before its name where it is negated, or whether a literal is true."""
    match operand:
        case Register():
            return operand.name
        case Negated(register):
            return f"!{register.name}"
        case Immediate(value, 0):
            return int(value != 0)
    return None


def _parameter(kernel: Kernel, address: Address, kind: str) -> tuple[int, int, str] | None:
    """Number and byte of a parameter that is loaded, and as what."""
    if not isinstance(address.base, Symbol):
        return None
    for number, parameter in enumerate(kernel.params):
        if parameter.name == address.base.name:
            size = parameter.size or DTYPES[parameter.type].itemsize
            inside = 0 <= address.offset <= size - DTYPES[kind].itemsize
            return (number, address.offset, kind) if inside else None
    return None
