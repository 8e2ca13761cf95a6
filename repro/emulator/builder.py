"""State while a kernel is lowered: slots, typed views, results with and without a merge."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ..errors import UnsupportedError
from .clocks import CLOCKS, reading
from .closures import apply1, cast_unsigned, select, view
from .dataflow import computed_floats, exposed, homes, spans
from .declarations import layout
from .dtypes import BOOL, DTYPES, SIGNED, Array, DType, unsigned
from .program import MASK, MAX_LOCAL, MAX_SHARED, File, Make, Op
from .ptx import (
    Address,
    Immediate,
    Kernel,
    Negated,
    Operand,
    Register,
    Sink,
    Special,
    Symbol,
)
from .rounding import canonical
from .sites import Site
from .statics import parameter_address, variable_address

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
        "smid",
        "nsmid",
        "dynamic_smem_size",
        "total_smem_size",
        "lanemask_eq",
        "lanemask_le",
        "lanemask_lt",
        "lanemask_ge",
        "lanemask_gt",
    ]
}
# What a device would say is of no use here, so a value is made up.
INVENTED = CLOCKS.keys() | {"%smid", "%nsmid"}
# Of a launch without clusters, in which every block is one of its own.
ALONE = {
    **{f"%cluster_ctaid.{axis}": 0 for axis in "xyz"},
    **{f"%cluster_nctaid.{axis}": 1 for axis in "xyz"},
    "%cluster_ctarank": 0,
    "%cluster_nctarank": 1,
    "%is_explicit_cluster": 0,
}


class Builder:
    """State while one kernel (not an empty one) is lowered; what the handlers call."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.template: File = [None, None, None]
        self.homes = homes(kernel)
        self.spans = spans(kernel)
        self.exposed = exposed(kernel, self.spans)
        self.addressed: dict[int, int] = {}
        self.computed = computed_floats(kernel)
        self.specials: dict[str, int] = {}
        self.invented: set[str] = set()
        self.brought: int | None = None
        self.params: dict[tuple[int, int, DType], int] = {}
        self.typed: dict[tuple[str, DType], int] = {}
        self.constants: dict[tuple[str, bytes], int] = {}
        self.forms: dict[str, dict[DType, int]] = {}
        self.fast: list[Op] = []
        self.slow: list[Op] = []
        self.predicate: int | None = None
        self.sites: dict[int, Site] = {}
        self.grain = 4  # log2 of the bytes of the narrowest access
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
        where = f"{self.kernel.name}, PTX line {self.instruction.line}"
        file, line = self.instruction.place.file, self.instruction.place.line
        if line and not file.endswith(".ptx"):  # else it is a line of the PTX itself
            where += f", {file}:{line}"
        raise UnsupportedError(f"{text}: {why}" if why else text, where=where)

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
            source = next(iter(forms))
            slot = forms[source]
            forms[dtype] = self._typed(name, dtype)
            make = self._viewed(name, slot, source, dtype)
            self.both(make(forms[dtype]))
        return forms[dtype]

    def _viewed(self, name: str, slot: int, source: DType, dtype: DType) -> Make:
        """The bits of a register as another dtype; where they show, a NaN must be the device's."""
        if name in self.computed and source.kind == "f" and dtype.kind != "f":
            return apply1(lambda value: canonical(value).view(dtype), slot)
        return view(slot, dtype)

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
        if operand.name in ALONE:
            return self.constant(ALONE[operand.name], dtype)
        if operand.name in INVENTED:
            self.invented.add(operand.name)
        if operand.name in CLOCKS:
            home = CLOCKS[operand.name][0]
            slot = self.compute(reading(operand.name))
            if dtype.itemsize == home.itemsize:
                return self.compute(view(slot, dtype))
        else:
            found = SPECIAL_DTYPES.get(operand.name)
            if found is None:
                self.unsupported(f"{operand.name} has no meaning here")
            home = found
            if operand.name not in self.specials:
                self.specials[operand.name] = self._typed(operand.name, home)
            slot = self._form(operand.name, home, home)
            if dtype.itemsize == home.itemsize:
                return self._form(operand.name, home, dtype)
        if dtype.kind not in "iu" or dtype.itemsize < home.itemsize:
            self.unsupported(f"{operand.name} is an integer of {8 * home.itemsize} bits")
        return self.compute(cast_unsigned(slot, dtype))

    def address_of(self, name: str) -> int:
        """The address of a variable in its own space."""
        variable = self.kernel.variables.get(name)
        if variable is None:
            number = self._parameter_number(name)
            return self.addressed.setdefault(number, parameter_address(self.kernel, number))
        if variable.dynamic:
            return self.shared_static
        if variable.space == "shared":
            return self.kernel.shared_offsets[name]
        if variable.space == "local":
            return self.local_offsets[name]
        if variable.space == "param":
            self.unsupported(f"{name} is a parameter of a call")
        try:
            return variable_address(self.kernel.statics, name)
        except UnsupportedError as error:
            self.unsupported(error.message)

    def _parameter_number(self, name: str) -> int:
        for number, parameter in enumerate(self.kernel.params):
            if parameter.name == name:
                return number
        if name in self.kernel.functions:
            self.unsupported(f"{name} is a function: its address is not known here")
        return self.unsupported(f"{name} is not defined")

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
            make = self._viewed(name, slot, dtype, home)
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

    def parameter(self, address: Operand, dtype: DType, further: int = 0) -> int:
        """The slot that a launch fills with the parameter `further` bytes behind `address`."""
        if not isinstance(address, Address) or not isinstance(address.base, Symbol):
            self.unsupported("no named parameter")
        index = self._parameter_number(address.base.name)
        parameter = self.kernel.params[index]
        size = parameter.size or DTYPES[parameter.type].itemsize
        at = address.offset + further
        if at % dtype.itemsize or not 0 <= at <= size - dtype.itemsize:
            self.unsupported(f"bytes from {at} on of parameter {parameter.name}")
        key = (index, at, dtype)
        if key not in self.params:
            self.params[key] = self.slot()
        return self.params[key]
