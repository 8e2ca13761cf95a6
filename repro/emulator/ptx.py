"""PTX text as records: what a module holds, before anything decides how to execute it.

PTX ISA 9.x, chapters 4 to 6 and 11. Nothing here knows what an instruction does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Register:
    """A virtual register. `name` is unique in its kernel (nested scopes are told apart)."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Special:
    """A special register such as %tid.x."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """A literal: an integer (any size), or the bits of a float of `float_bits` bits."""

    value: int
    float_bits: int = 0


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name that is no register: a variable, a parameter, a label, a function."""

    name: str


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b}`."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """`d|p`: a result and its predicate."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Negated:
    """`!p`."""

    register: Register


@dataclass(frozen=True, slots=True)
class Address:
    """`[base + offset]`; offset in bytes."""

    base: Operand
    offset: int


@dataclass(frozen=True, slots=True)
class Sink:
    """`_`: a result nobody wants."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """Operands of a form that is not read: of textures, unknown directives."""


Simple = Register | Special | Immediate | Symbol | Negated | Sink
Operand = Simple | Vector | Pair | Address | Opaque


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the source: `file` as .file says it, "" and 0 where the PTX says nothing."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. `modifiers` are what follows the opcode's dots, in order.

    line: of the PTX text, from 1. place: the innermost inlined frame in the kernel's own file.
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    predicate: Register | None
    negated: bool
    line: int
    place: Place

    @property
    def spelling(self) -> str:
        """The opcode with its modifiers."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel parameter. size: bytes of a by-value struct (`.b8 name[size]`), 0 for a scalar."""

    name: str
    type: str
    size: int = 0


@dataclass(frozen=True, slots=True)
class Relocation:
    """`size` bytes of an address, from its byte `first` on, in a variable's initial bytes.

    They lie at `offset`; the address is that of byte `addend` of `name`.
    """

    offset: int
    name: str
    addend: int
    first: int
    size: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable in memory. `space`: shared, local, global, const or param. size: bytes.

    dynamic: an `.extern .shared` array, as long as the launch says. initial: its first bytes, None
    where they are not given. addresses: which of them are addresses of variables. external: lies
    in another module.
    """

    name: str
    space: str
    size: int
    align: int
    dynamic: bool = False
    initial: bytes | None = None
    addresses: tuple[Relocation, ...] = ()
    external: bool = False


class Statics:
    """The variables of a module in global and constant memory.

    variables: by name. shared: names of its variables in shared memory, which only kernels that
    name them have. content: what whoever runs the kernels keeps between launches.
    """

    def __init__(self) -> None:
        self.variables: dict[str, Variable] = {}
        self.shared: set[str] = set()
        self.content: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Function:
    """A device function. takes, gives: its parameters and results, variables of space param.

    labels, variables: as a kernel has them. file: of its first `.loc`.
    """

    name: str
    takes: tuple[Variable, ...]
    gives: tuple[Variable, ...]
    body: tuple[Instruction, ...]
    labels: Mapping[str, int]
    variables: Mapping[str, Variable]
    file: str = ""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Kernel:
    """An entry. `labels`: name to index into `body`. `variables`: all it may name, by name.

    reqntid: the block the kernel was compiled for, None where it does not say.
    shared_bytes: static shared memory. functions: what it may call. statics: the variables of its
    module in global and constant memory, shared by the kernels of the module. file: its own, of
    its first `.loc`.
    """

    name: str
    params: tuple[Parameter, ...]
    reqntid: tuple[int, int, int] | None
    body: tuple[Instruction, ...]
    labels: Mapping[str, int]
    variables: Mapping[str, Variable]
    shared_bytes: int
    shared_offsets: Mapping[str, int]
    line: int
    functions: Mapping[str, Function] = field(default_factory=dict)
    statics: Statics = field(default_factory=Statics)
    file: str = ""


@dataclass(frozen=True, slots=True)
class Module:
    """A PTX file: its kernels by name."""

    version: str = ""
    target: str = ""
    kernels: Mapping[str, Kernel] = field(default_factory=dict)


def parse(text: str) -> Module:
    """Read PTX text; UnsupportedError (with the PTX line) on what is malformed or not known."""
    from .parser import Parser

    return Parser(text).module()
