"""The kernel that a probe is about: where it is, and what each of its parameters is given.

Parameters are known by name and role, never by position: kernels gain and lose parameters, and
move them, between releases. Pure; standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..probing.probe import Lift

SUFFIX = "_ptr"


class SignatureChangedError(Exception):
    """A parameter that no role of the probe stands for, or stands for in another way."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """A tensor. dtype: of its elements, in Triton's words (`i32`, `i64`, `fp32`, `u8`). size,
    fill: of the tensor that is passed where the probe passes none. also: other names that the
    parameter goes by."""

    dtype: str
    size: int = 64
    fill: int | float = 0
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number; compiled in where the kernel wants a constant."""

    value: int | float | bool
    dtype: str = "i32"
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Nothing:
    """None, as the engine passes it for what is optional."""

    also: tuple[str, ...] = ()


Role = Pointer | Scalar | Nothing


@dataclass(frozen=True, slots=True)
class Subject:
    """files, names, helpers, needs: see Lift. roles: name of a parameter, without `_ptr`, → what it
    is. warps: of a block, as the engine launches it."""

    files: tuple[str, ...]
    names: tuple[str, ...]
    roles: Mapping[str, Role]
    helpers: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    warps: int = 4

    def lift(self, id: str) -> Lift:
        """What is asked of the child that lifts."""
        return Lift(id, self.files, self.names, self.helpers, self.needs)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a lifted kernel. literal: of a default that is a plain number."""

    name: str
    annotation: str
    optional: bool
    literal: int | float | bool | None = None

    @property
    def constant(self) -> bool:
        return "constexpr" in self.annotation


@dataclass(frozen=True, slots=True)
class Binding:
    """types: parameter → its type in Triton's signature, `constexpr` for constants; in order.
    constants: parameter → value. order: the roles of those left at run time, in order."""

    types: Mapping[str, str]
    constants: Mapping[str, int | float | bool | None]
    order: tuple[str, ...] = field(default=())


def bind(subject: Subject, parameters: Sequence[Parameter]) -> Binding:
    """Give every parameter its role; SignatureChangedError names the first that has none."""
    types: dict[str, str] = {}
    constants: dict[str, int | float | bool | None] = {}
    order: list[str] = []
    for parameter in parameters:
        name = _role(subject, parameter.name)
        role = subject.roles.get(name)
        if role is None:
            if not parameter.optional or parameter.literal is None:
                raise SignatureChangedError(f"signature changed: {parameter.name} is not known")
            types[parameter.name] = "constexpr"
            constants[parameter.name] = parameter.literal
        elif isinstance(role, Pointer):
            if parameter.constant:
                raise SignatureChangedError(f"signature changed: {parameter.name} is a constant")
            types[parameter.name] = f"*{role.dtype}"
            order.append(name)
        elif isinstance(role, Nothing) or parameter.constant or isinstance(role.value, bool):
            types[parameter.name] = "constexpr"
            constants[parameter.name] = None if isinstance(role, Nothing) else role.value
        else:
            types[parameter.name] = _annotated(parameter.annotation) or role.dtype
            order.append(name)
    return Binding(types, constants, tuple(order))


def _role(subject: Subject, parameter: str) -> str:
    plain = parameter.removesuffix(SUFFIX)
    for name, role in subject.roles.items():
        if plain == name or plain in role.also:
            return name
    return plain


def _annotated(note: str) -> str:
    """The type of `tl.int64`; "" for what is no integer type of a width, as Python's `int`."""
    last = note.rpartition(".")[2]
    name = last.rstrip("0123456789")
    kind, width = {"int": "i", "uint": "u"}.get(name, ""), last.removeprefix(name)
    return f"{kind}{width}" if kind and width else ""
