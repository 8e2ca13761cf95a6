"""What loads, stores and atomics share: their modifiers, and which lanes touch what."""

from __future__ import annotations

import numpy as np

from .builder import Builder
from .closures import apply1
from .dtypes import DTYPES, SIGNED, Array, DType
from .memory import GENERIC, LOCAL, SHARED
from .program import MASK, File
from .ptx import Address, Instruction, Operand, Register, Symbol
from .sites import Site

# Order and caching of accesses: in an emulated launch each is done when it is executed.
IGNORED = frozenset(
    [
        "weak",
        "volatile",
        "sys",
        "gpu",
        "cta",
        "cluster",
        "nc",
        "ca",
        "cg",
        "cs",
        "lu",
        "cv",
        "wb",
        "wt",
        "unified",
        "cta",
    ]
)
# Accesses that are no race with each other (memory consistency model of PTX, strong operations).
STRONG = frozenset(["relaxed", "acquire", "release", "acq_rel"])
HINTS = ("L1::", "L2::")
SPACES = {
    "global": GENERIC,
    "shared": SHARED,
    "shared::cta": SHARED,
    "local": LOCAL,
    "const": GENERIC,
    "param": GENERIC,
}
VECTORS = {"v2": 2, "v4": 4, "v8": 8}
MAX_WIDTH = 32  # bytes of one access

Lanes = Array | None


class Form:
    """The modifiers of a memory instruction, taken apart. Every one must be known."""

    def __init__(self, builder: Builder, instruction: Instruction) -> None:
        *rest, self.kind = instruction.modifiers or ("",)
        if self.kind not in DTYPES or self.kind == "pred":
            builder.unsupported()
        self.space = GENERIC
        self.elements = 1
        self.policy = False
        self.parameter = False
        self.strong = False
        self.words = []
        for word in rest:
            if word in ("param", "param::entry", "param::func"):
                self.parameter = True
            elif word in SPACES:
                self.space = SPACES[word]
            elif word in VECTORS:
                self.elements = VECTORS[word]
            elif word.startswith(HINTS):
                self.policy = self.policy or word == "L2::cache_hint"
            elif word in STRONG:
                self.strong = True
            elif word not in IGNORED:
                self.words.append(word)


class Access:
    """What loads, stores and atomics share: which lanes touch which addresses."""

    def __init__(
        self,
        builder: Builder,
        address: Operand,
        form: Form,
        dtype: DType,
        *,
        writes: bool,
        updates: bool = False,
        keeps: bool = False,
    ) -> None:
        if not isinstance(address, Address):
            builder.unsupported("no address")
        width = dtype.itemsize * form.elements
        if width > MAX_WIDTH:
            builder.unsupported(f"{width} bytes at once")
        base = address.base
        if isinstance(base, Symbol):
            variable = builder.kernel.variables.get(base.name)
            if variable is None or variable.space == "param":
                builder.unsupported(f"{base.name} is no variable")
            if SPACES.get(variable.space) != form.space:
                builder.unsupported(f"{base.name} lies in another space")
        eight = isinstance(base, Register) and DTYPES[base.type].itemsize == 8
        if form.space == GENERIC and not (eight or not isinstance(base, Register)):
            builder.unsupported("an address of less than 64 bits")
        self.slot = builder.read(base, SIGNED[8 if eight or not isinstance(base, Register) else 4])
        if isinstance(base, Register) and not eight:
            self.slot = builder.compute(apply1(_widen, self.slot))
        self.offset = address.offset
        if not -(1 << 31) <= self.offset < 1 << 31:
            builder.unsupported("an offset of more than 32 bits")
        self.predicate = builder.predicate
        builder.predicate = None
        self.site = Site(
            builder.instruction.place,
            form.space,
            (dtype, form.elements),
            width,
            writes,
            atomic=updates or form.strong,
            updates=updates,
            keeps=keeps,
        )
        builder.sites[id(builder.instruction)] = self.site
        builder.grain = min(builder.grain, width.bit_length() - 1)

    def lanes(self, file: File) -> tuple[Array, Lanes] | None:
        """Addresses and the lanes they belong to (None: all); None where no lane is active.

        One address may stand for all lanes.
        """
        addresses = file[self.slot]
        mask = file[MASK]
        if self.predicate is not None:
            predicate = file[self.predicate]
            if predicate.size == 1 and mask is not None:
                mask = mask if predicate[0] else predicate
            else:
                mask = predicate if mask is None else mask & predicate
        if self.offset:
            addresses = addresses + self.offset
        if mask is None:
            return addresses, None
        if mask.size == 1:  # a predicate that is the same for all; there are 32 lanes and more
            return (addresses, None) if mask[0] else None
        lanes = mask.nonzero()[0]
        if not lanes.size:
            return None
        return (addresses if addresses.size == 1 else addresses[lanes]), lanes


def _widen(address: Array) -> Array:
    return address.astype(np.int64)
