"""An argument file: what a kernel is launched with, as data with a place for every value.

```yaml
args:                      # in the order of the kernel's parameters
  - {name: x, dtype: f32, shape: [4, 16], fill: arange}
  - {view: x, offset: 16}
  - {i32: 64}
  - {constexpr: 128}
memory: […]                # buffers that only views and pointer tables reach
requests: [0, 1]           # whose block column is whose, where a buffer has an owner
```
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..case.source import Place, Problem, failure
from ..case.text import Document
from ..errors import CaseError

MAX_BYTES = 1 << 30  # of all buffers together


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number of an element type, by value."""

    type: str
    value: int | float


@dataclass(frozen=True, slots=True)
class Constant:
    """A value compiled into a Triton kernel."""

    value: bool | int | float | str


@dataclass(frozen=True, slots=True)
class Nothing:
    """A null pointer; None to a Triton kernel."""


@dataclass(frozen=True, slots=True)
class View:
    """A pointer to element `offset` of a buffer."""

    buffer: str
    offset: int


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct by value, its fields in order, laid out with their natural alignment."""

    fields: tuple[Scalar | View | Nothing, ...]


@dataclass(frozen=True, slots=True)
class Fill:
    """What a buffer holds before the launch.

    kind: zeros, arange, uninitialised, random, values or file. random: `seed`, in [low, high).
    values: flat, numbers and pointers. file: beside the argument file, checked to lie there.
    """

    kind: str
    seed: int = 0
    low: float | None = None
    high: float | None = None
    values: tuple[bool | int | float | View, ...] = ()
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class Ownership:
    """unit: elements. of: for each unit a request, EVERYBODY (-1) or NOBODY (-2)."""

    unit: int
    of: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BufferSpec:
    """A buffer of `shape` elements of `dtype` (a name of element_types.TYPES)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    fill: Fill
    owner: Ownership | None
    place: Place

    @property
    def size(self) -> int:
        """Elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count


Value = Scalar | Constant | Nothing | View | Struct | BufferSpec


@dataclass(frozen=True, slots=True)
class Argument:
    """One entry of `args`. name: as the file gives it, None where it does not."""

    name: str | None
    value: Value
    place: Place


@dataclass(frozen=True, slots=True)
class Arguments:
    """A whole argument file. buffers: those of `args` first, then those of `memory`."""

    path: Path
    document: Document
    args: tuple[Argument, ...]
    buffers: tuple[BufferSpec, ...]
    requests: tuple[int, ...] | None

    def refusal(self, place: Place, message: str, hint: str | None = None) -> CaseError:
        """The error for what stands at `place`."""
        return failure(self.path, Problem(place, message, hint), self.document.position(place))
