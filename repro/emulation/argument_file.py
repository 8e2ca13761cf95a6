"""Reading an argument file: strict, every refusal with file, line, column and key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from ..case.source import Place, Problem, decode, failure, read_bytes
from ..case.text import Document, compose
from ..escape import quoted
from ..scenarios.declare import nearest
from .arguments import (
    MAX_BYTES,
    Argument,
    Arguments,
    BufferSpec,
    Constant,
    Fill,
    Nothing,
    Ownership,
    Scalar,
    Struct,
    Value,
    View,
)
from .element_types import ALIASES, TYPES, ElementType, element_type

EVERYBODY, NOBODY = -1, -2  # as the owners of the ops have them
OWNERS = {"everybody": EVERYBODY, "nobody": NOBODY}
BUFFER_KEYS = ("name", "dtype", "shape", "fill", "owner")
FILLS = ("zeros", "arange", "uninitialised")
FILL_KEYS = ("random", "values", "file")
FORMS = (*TYPES, "constexpr", "struct", "view", "none")
MAX_DIMENSIONS = 8
MAX_FILE = 1 << 28  # bytes of one .npy


def load_arguments(path: Path) -> tuple[Arguments, str]:
    """An argument file, checked, and its text; CaseError for the first thing wrong with it."""
    text = decode(path, read_bytes(path, "argument"), "argument")
    return read_arguments(path, text), text


def read_arguments(path: Path, text: str) -> Arguments:
    """The same for its text; `path` is for messages and for the files it names."""
    document = compose(path, text, "set of arguments")
    reader = _Reader(path, document)
    return reader.arguments(document.data)


@dataclass(slots=True)
class _Reader:
    path: Path
    document: Document
    buffers: dict[str, BufferSpec] = field(default_factory=dict)
    views: list[tuple[Place, View]] = field(default_factory=list)
    bytes: int = 0

    def refuse(self, place: Place, message: str, hint: str | None = None) -> NoReturn:
        raise failure(self.path, Problem(place, message, hint), self.document.position(place))

    def arguments(self, data: Mapping[str, Any]) -> Arguments:
        self.keys((), data, ("args", "memory", "requests"), required=("args",))
        args = tuple(
            self.argument(("args", number), item)
            for number, item in enumerate(self.list(("args",), data["args"]))
        )
        for number, item in enumerate(self.list(("memory",), data.get("memory", []))):
            place: Place = ("memory", number)
            self.buffer(place, self.mapping(place, item))
        requests = None
        if "requests" in data:
            requests = self.owners(("requests",), data["requests"])
        for place, view in self.views:
            self.target(place, view)
        for spec in self.buffers.values():
            if spec.owner is not None and requests is None:
                self.refuse(
                    (*spec.place, "owner"),
                    "says whose each unit is, but nothing says whose a block is",
                    "add `requests: […]`, the request of each block column",
                )
        return Arguments(self.path, self.document, args, tuple(self.buffers.values()), requests)

    def argument(self, place: Place, item: Any) -> Argument:
        data = self.mapping(place, item)
        if "dtype" in data or "shape" in data or "fill" in data:
            spec = self.buffer(place, data)
            return Argument(spec.name, spec, place)
        name = self.text((*place, "name"), data["name"]) if "name" in data else None
        rest = {key: value for key, value in data.items() if key != "name"}
        return Argument(name, self.value(place, rest), place)

    def value(self, place: Place, data: Mapping[str, Any]) -> Value:
        form = self.form(place, data)
        inner = (*place, form)
        if form == "constexpr":
            if not isinstance(data[form], bool | int | float | str):
                self.refuse(inner, "must be a single value")
            return Constant(data[form])
        if form == "struct":
            fields = []
            for number, item in enumerate(self.list(inner, data[form])):
                at = (*inner, number)
                one = self.value(at, self.mapping(at, item))
                if not isinstance(one, Scalar | View | Nothing):
                    self.refuse(at, "a field is a scalar, a view or `none`")
                fields.append(one)
            if not fields:
                self.refuse(inner, "a struct has at least one field")
            return Struct(tuple(fields))
        if form == "view":
            return self.view(place, data, "view")
        if form == "none":
            if data[form] is not True:
                self.refuse(inner, "must be true", "`{none: true}` is a null pointer")
            return Nothing()
        kind = TYPES[ALIASES.get(form, form)]
        return Scalar(kind.name, self.number(inner, data[form], kind))

    def form(self, place: Place, data: Mapping[str, Any]) -> str:
        """The key that says what an argument is."""
        known = (*FORMS, *ALIASES)
        found = [key for key in data if key in known]
        for key in data:
            if key not in known and not (key == "offset" and "view" in data):
                hint = nearest(key, (*FORMS, *BUFFER_KEYS))
                self.refuse((*place, key), f"unknown key; an argument is {_forms()}", hint)
        if len(found) != 1:
            self.refuse(place, f"an argument is {_forms()}")
        return found[0]

    def view(self, place: Place, data: Mapping[str, Any], key: str) -> View:
        offset = self.integer((*place, "offset"), data.get("offset", 0))
        found = View(self.text((*place, key), data[key]), offset)
        self.views.append((place, found))
        return found

    def target(self, place: Place, view: View) -> None:
        if view.buffer not in self.buffers:
            hint = nearest(view.buffer, self.buffers)
            self.refuse(place, f"there is no buffer {quoted(view.buffer)}", hint)
        if abs(view.offset) >= MAX_BYTES:
            self.refuse((*place, "offset"), f"must be less than {MAX_BYTES:,}")

    def buffer(self, place: Place, data: Mapping[str, Any]) -> BufferSpec:
        self.keys(place, data, BUFFER_KEYS, required=("name", "dtype", "shape"))
        name = self.text((*place, "name"), data["name"])
        if name in self.buffers:
            self.refuse(
                (*place, "name"),
                f"there are two buffers {quoted(name)}",
                f"`{{view: {name}}}` passes the same one again",
            )
        wanted = self.text((*place, "dtype"), data["dtype"])
        dtype = element_type(wanted)
        if dtype is None:
            hint = nearest(wanted, (*TYPES, *ALIASES))
            message = f"must be one of {', '.join(TYPES)}, not {quoted(wanted)}"
            self.refuse((*place, "dtype"), message, hint)
        shape = self.shape((*place, "shape"), data["shape"])
        size = 1
        for extent in shape:
            size *= extent
        self.bytes += size * dtype.size
        if self.bytes > MAX_BYTES:
            self.refuse((*place, "shape"), f"more than {MAX_BYTES:,} bytes of buffers")
        spec = BufferSpec(
            name,
            dtype.name,
            shape,
            self.fill((*place, "fill"), data.get("fill", "zeros"), dtype, size),
            self.owner((*place, "owner"), data["owner"], size) if "owner" in data else None,
            place,
        )
        self.buffers[name] = spec
        return spec

    def shape(self, place: Place, value: Any) -> tuple[int, ...]:
        items = value if isinstance(value, list) else [value]
        if not 1 <= len(items) <= MAX_DIMENSIONS:
            self.refuse(place, f"must have 1 to {MAX_DIMENSIONS} extents")
        for number, item in enumerate(items):
            at = (*place, number) if isinstance(value, list) else place
            if self.integer(at, item) < 0:
                self.refuse(at, "must not be negative")
        return tuple(items)

    def fill(self, place: Place, value: Any, dtype: ElementType, size: int) -> Fill:
        if isinstance(value, str) and value in FILLS:
            return Fill(value)
        if not isinstance(value, dict):
            hint = nearest(value, FILLS) if isinstance(value, str) else None
            known = ", ".join((*FILLS, *(f"{{{key}: …}}" for key in FILL_KEYS)))
            self.refuse(place, f"must be one of {known}", hint)
        self.keys(place, value, (*FILL_KEYS, "low", "high"))
        found = [key for key in FILL_KEYS if key in value]
        if len(found) != 1:
            self.refuse(place, f"must have one of {', '.join(FILL_KEYS)}")
        form = found[0]
        for key in ("low", "high"):
            if key in value and form != "random":
                self.refuse((*place, key), "is for `random` only")
        inner = (*place, form)
        if form == "random":
            seed = self.integer(inner, value[form])
            if seed < 0:
                self.refuse(inner, "must not be negative")
            low, high = (
                self.number((*place, key), value[key], dtype) if key in value else None
                for key in ("low", "high")
            )
            least, most = _limits(dtype, low, high)
            if not least < most:
                self.refuse(place, f"low {least} must be less than high {most}")
            return Fill("random", seed=seed, low=least, high=most)
        if form == "file":
            return Fill("file", file=self.file(inner, value[form]))
        values = self.values(inner, value[form], dtype)
        if len(values) != size:
            self.refuse(inner, f"has {len(values)} values, the shape {size} elements")
        return Fill("values", values=tuple(values))

    def values(self, place: Place, value: Any, dtype: ElementType) -> list[Any]:
        """The numbers and pointers of a nested list, flat."""
        flat: list[Any] = []
        for number, item in enumerate(self.list(place, value)):
            at = (*place, number)
            if isinstance(item, list):
                flat += self.values(at, item, dtype)
            elif isinstance(item, dict):
                self.keys(at, item, ("ptr", "offset"), required=("ptr",))
                if dtype.size != 8 or dtype.kind == "f":
                    self.refuse(at, f"a pointer has 64 bits, {dtype.name} is no type for it")
                flat.append(self.view(at, item, "ptr"))
            else:
                flat.append(self.number(at, item, dtype))
        return flat

    def file(self, place: Place, value: Any) -> Path:
        name = self.text(place, value)
        folder = self.path.resolve().parent
        path = folder / name
        if Path(name).is_absolute() or not path.resolve().is_relative_to(folder):
            self.refuse(place, "must lie in the folder of the argument file")
        if path.suffix != ".npy" or not path.is_file():
            self.refuse(place, f"{quoted(name)} is no .npy file in the folder of the argument file")
        if path.stat().st_size > MAX_FILE:
            self.refuse(place, f"has more than {MAX_FILE:,} bytes")
        return path.resolve()

    def owner(self, place: Place, value: Any, size: int) -> Ownership:
        data = self.mapping(place, value)
        self.keys(place, data, ("unit", "of"), required=("unit", "of"))
        unit = self.integer((*place, "unit"), data["unit"])
        of = self.owners((*place, "of"), data["of"])
        if unit < 1 or unit * len(of) < size:
            self.refuse(place, f"{len(of)} units of {unit} elements do not cover {size}")
        return Ownership(unit, of)

    def owners(self, place: Place, value: Any) -> tuple[int, ...]:
        found = []
        for number, item in enumerate(self.list(place, value)):
            at = (*place, number)
            one = OWNERS.get(item) if isinstance(item, str) else self.integer(at, item)
            if one is None or (isinstance(item, int) and not 0 <= one < 1 << 31):
                self.refuse(at, "must be a request (0, 1, …), `everybody` or `nobody`")
            found.append(one)
        return tuple(found)

    def number(self, place: Place, value: Any, dtype: ElementType) -> int | float:
        if dtype.name == "bool":
            if not isinstance(value, bool):
                self.refuse(place, "must be true or false")
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(place, f"must be a number of type {dtype.name}")
        if dtype.kind == "f":
            return float(value)
        whole = self.integer(place, value)
        low = -(1 << (8 * dtype.size - 1)) if dtype.kind == "i" else 0
        high = (1 << (8 * dtype.size - (dtype.kind == "i"))) - 1
        if not low <= whole <= high:
            self.refuse(place, f"must be in {low}..{high} for {dtype.name}")
        return whole

    def integer(self, place: Place, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            self.refuse(place, "must be a whole number")
        return value

    def text(self, place: Place, value: Any) -> str:
        if not isinstance(value, str) or not value:
            self.refuse(place, "must be text")
        return value

    def list(self, place: Place, value: Any) -> Sequence[Any]:
        if not isinstance(value, list):
            self.refuse(place, "must be a list")
        return value

    def mapping(self, place: Place, value: Any) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            self.refuse(place, "must be a mapping such as {i32: 5}")
        return value

    def keys(
        self,
        place: Place,
        data: Mapping[str, Any],
        known: Sequence[str],
        required: Sequence[str] = (),
    ) -> None:
        for key in data:
            if key not in known:
                message = f"unknown key; allowed are {', '.join(known)}"
                self.refuse((*place, key), message, nearest(key, known))
        for key in required:
            if key not in data:
                self.refuse(place, f"needs the key {key}")


def _forms() -> str:
    numbers = ", ".join(f"{{{name}: …}}" for name in ("i32", "f32"))
    others = ", ".join(f"{{{name}: …}}" for name in ("constexpr", "struct", "view", "none"))
    return f"a scalar ({numbers}…), {others}, or a buffer {{name, dtype, shape, fill}}"


def _limits(
    dtype: ElementType, low: int | float | None, high: int | float | None
) -> tuple[int | float, int | float]:
    """What `random` draws from where the file does not say."""
    if dtype.kind == "f":
        return (-1.0 if low is None else low), (1.0 if high is None else high)
    if dtype.name == "bool":
        return 0, 2
    return (0 if low is None else low), (100 if high is None else high)
