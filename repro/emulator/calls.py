"""Device functions, put in place of their calls.

A kernel that calls becomes one that does not: each call is replaced by the instructions of its
function, with registers, labels and variables of their own, and parameters that are registers. So
threads that part inside a function meet again as they do elsewhere. A function that calls itself
is put in itself a bounded number of times; a launch that goes deeper is refused when it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn

from ..errors import UnsupportedError
from .call_memory import CallMemory
from .declarations import layout
from .ptx import (
    Address,
    Function,
    Immediate,
    Instruction,
    Kernel,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    Symbol,
    Variable,
    Vector,
)
from .rewriting import needs_rewriting, rewritten

MAX_INSTRUCTIONS = 50_000  # of a kernel with its functions
MAX_RECURSIVE = 8_000  # the same, where functions call themselves
DEPTHS = (64, 32, 16, 8, 4, 2)  # of functions that call themselves; the first that is not too long
MAX_CALLS = 100  # of functions in functions

# Functions of the device's run time, with how many parameters: instructions of their own.
BUILT_IN = {"vprintf": ("vprintf", 2), "__assertfail": ("assertfail", 5)}


class TooLongError(Exception):
    """The kernel with its functions has too many instructions."""


def expanded(kernel: Kernel) -> Kernel:
    """`kernel` without calls, and without the module's shared variables that it does not name.

    UnsupportedError on indirect calls, on functions without a body, and on kernels that are too
    long so.
    """
    if not any(each.opcode == "call" or needs_rewriting(each) for each in kernel.body):
        return _laid_out(kernel, kernel.body, kernel.labels, kernel.variables)
    for depth in DEPTHS:
        expansion = Expansion(kernel, depth)
        try:
            expansion.put(kernel.body, kernel.labels, kernel.variables, Names("", {}), None)
        except TooLongError:
            if not expansion.recursive:
                break
            continue
        return _laid_out(kernel, tuple(expansion.body), expansion.labels, expansion.variables)
    raise UnsupportedError(
        f"more than {MAX_INSTRUCTIONS} instructions with its functions", where=kernel.name
    )


def _laid_out(
    kernel: Kernel,
    body: tuple[Instruction, ...],
    labels: Mapping[str, int],
    variables: Mapping[str, Variable],
) -> Kernel:
    named = {symbol for instruction in body for symbol in _symbols(instruction.operands)}
    used = {
        name: found
        for name, found in variables.items()
        if name in named or name not in kernel.statics.shared
    }
    offsets, size = layout(found for found in used.values() if found.space == "shared")
    return replace(
        kernel,
        body=body,
        labels=labels,
        variables=used,
        shared_bytes=size,
        shared_offsets=offsets,
    )


def _symbols(operands: tuple[Operand, ...]) -> set[str]:
    found = set()
    for operand in operands:
        match operand:
            case Symbol(name):
                found.add(name)
            case Address(Symbol(name), _):
                found.add(name)
            case Vector(items):
                found |= _symbols(items)
            case _:
                continue
    return found


class Names:
    """What the names of one copy of a function stand for.

    prefix: of its registers, labels and variables. bound: its parameters and results.
    """

    def __init__(self, prefix: str, bound: dict[str, CallMemory]) -> None:
        self.prefix, self.bound = prefix, bound
        self.own: set[str] = set()

    def operand(self, operand: Operand) -> Operand:
        """`operand` with the names of this copy."""
        if not self.prefix:
            return operand
        match operand:
            case Register(name, kind):
                return Register(self.prefix + name, kind)
            case Negated(register):
                return Negated(Register(self.prefix + register.name, register.type))
            case Symbol(name):
                return Symbol(self.prefix + name) if name in self.own else operand
            case Vector(items):
                return Vector(tuple(self.operand(item) for item in items))
            case Pair(first, second):
                return Pair(self.operand(first), self.operand(second))
            case Address(base, offset):
                return Address(self.operand(base), offset)
            case _:
                return operand


class Expansion:
    """A kernel while the functions that it calls are put in."""

    def __init__(self, kernel: Kernel, depth: int) -> None:
        self.kernel, self.depth = kernel, depth
        self.body: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.variables: dict[str, Variable] = {}
        self.stack: list[str] = []
        self.recursive = False
        self.copies = 0

    def put(
        self,
        code: tuple[Instruction, ...],
        labels: Mapping[str, int],
        variables: Mapping[str, Variable],
        names: Names,
        call: Instruction | None,
    ) -> None:
        """Append one copy of a body; `call` (None: of the kernel itself) is what it replaces."""
        names.own = {*labels} | {
            name for name, found in variables.items() if found.space in ("local", "param")
        }
        for name, found in variables.items():
            if found.space == "local":
                unique = names.prefix + name
                self.variables[unique] = replace(found, name=unique)
            elif found.space != "param":
                self.variables[name] = found
        memory = dict(names.bound)
        at: dict[int, list[str]] = {}
        for label, index in labels.items():
            at.setdefault(index, []).append(names.prefix + label)
        for index, instruction in enumerate(code):
            for label in at.get(index, ()):
                self.labels[label] = len(self.body)
            self._instruction(instruction, variables, names, memory, call)
        for label in at.get(len(code), ()):
            self.labels[label] = len(self.body)

    def _instruction(
        self,
        instruction: Instruction,
        variables: Mapping[str, Variable],
        names: Names,
        memory: dict[str, CallMemory],
        call: Instruction | None,
    ) -> None:
        place = instruction.place
        if call is not None and place.file != self.kernel.file:
            place = call.place
        predicate = instruction.predicate
        if predicate is not None:
            predicate = Register(names.prefix + predicate.name, predicate.type)
        operands = tuple(names.operand(operand) for operand in instruction.operands)
        mine = replace(instruction, operands=operands, predicate=predicate, place=place)
        if instruction.opcode == "call":
            self._call(mine, instruction, variables, names, memory)
        elif (found := _parameter(instruction)) is not None and (
            (variable := variables.get(found)) is not None or found in names.bound
        ):
            if found not in memory and variable is not None:
                memory[found] = CallMemory(variable, names.prefix + found)
            for each in memory[found].access(mine):
                self._append(each)
        elif instruction.opcode == "ret" and call is not None:
            label = Symbol(f"{names.prefix}:end")
            self._append(replace(mine, opcode="bra", modifiers=(), operands=(label,)))
        else:
            self._append(mine)

    def _append(self, instruction: Instruction) -> None:
        most = MAX_RECURSIVE if self.recursive else MAX_INSTRUCTIONS
        for each in rewritten(instruction, f"{len(self.body)}"):
            if len(self.body) >= most:
                raise TooLongError
            self.body.append(each)

    def _call(
        self,
        mine: Instruction,
        original: Instruction,
        variables: Mapping[str, Variable],
        names: Names,
        memory: dict[str, CallMemory],
    ) -> None:
        results, callee, arguments = original.operands
        if not isinstance(callee, Symbol):
            _refuse(mine, "an indirect call")
        if not isinstance(results, Vector) or not isinstance(arguments, Vector):
            _refuse(mine)
        self.copies += 1
        prefix = f"{self.copies}:"
        skip = f"{prefix}skip"
        if mine.predicate is not None:
            self._append(
                replace(
                    mine,
                    opcode="bra",
                    modifiers=(),
                    operands=(Symbol(skip),),
                    negated=not mine.negated,
                )
            )
            mine = replace(mine, predicate=None, negated=False)
        bound = [
            [self._bound(mine, item, variables, names, memory) for item in side.items]
            for side in (results, arguments)
        ]
        if callee.name in BUILT_IN:
            self._built_in(mine, callee.name, *bound)
        else:
            function = self.kernel.functions.get(callee.name)
            if function is None:
                _refuse(mine, f"{callee.name} has no body here")
            self._copy(mine, function, prefix, *bound)
        self.labels[skip] = len(self.body)

    def _bound(
        self,
        call: Instruction,
        item: Operand,
        variables: Mapping[str, Variable],
        names: Names,
        memory: dict[str, CallMemory],
    ) -> CallMemory:
        """The registers of one argument or result."""
        if not isinstance(item, Symbol):
            _refuse(call, "an argument that is no variable of .param space")
        if item.name not in memory:
            if item.name not in variables:
                _refuse(call, f"{item.name} is not defined")
            memory[item.name] = CallMemory(variables[item.name], names.prefix + item.name)
        return memory[item.name]

    def _built_in(
        self, call: Instruction, name: str, results: list[CallMemory], arguments: list[CallMemory]
    ) -> None:
        opcode, count = BUILT_IN[name]
        if len(arguments) != count or len(results) > 1:
            _refuse(call, f"{name} takes {count} arguments")
        operands: list[Operand] = [memory.whole() for memory in arguments]
        if opcode == "vprintf":
            operands.insert(0, results[0].whole() if results else Sink())
        self._append(replace(call, opcode=opcode, modifiers=(), operands=tuple(operands)))

    def _copy(
        self,
        call: Instruction,
        function: Function,
        prefix: str,
        results: list[CallMemory],
        arguments: list[CallMemory],
    ) -> None:
        formals = [*function.gives, *function.takes]
        actuals = [*results, *arguments]
        if len(results) != len(function.gives) or len(arguments) != len(function.takes):
            _refuse(call, f"{len(arguments)} arguments for {function.name}")
        if any(a.size != f.size for a, f in zip(actuals, formals, strict=True)):
            _refuse(call, f"arguments of other sizes than those of {function.name}")
        if len(self.stack) >= MAX_CALLS:
            _refuse(call, f"functions called in functions more than {MAX_CALLS} deep")
        depth = self.stack.count(function.name)
        self.recursive = self.recursive or depth > 0
        if depth > self.depth:
            self._append(
                replace(call, opcode="recursion", modifiers=(), operands=(Immediate(depth),))
            )
            return
        names = Names(prefix, {f.name: a for f, a in zip(formals, actuals, strict=True)})
        self.stack.append(function.name)
        self.put(function.body, function.labels, function.variables, names, call)
        self.stack.pop()
        self.labels[f"{prefix}:end"] = len(self.body)


def _parameter(instruction: Instruction) -> str | None:
    """The name of the parameter that an ld.param or st.param touches."""
    space = instruction.modifiers[0].partition("::")[0] if instruction.modifiers else ""
    if instruction.opcode not in ("ld", "st") or space != "param":
        return None
    for operand in instruction.operands:
        if isinstance(operand, Address) and isinstance(operand.base, Symbol):
            return operand.base.name
    return None


def _refuse(call: Instruction, why: str = "") -> NoReturn:
    text = f"{call.spelling} is not supported"
    raise UnsupportedError(f"{text}: {why}" if why else text, where=f"PTX line {call.line}")
