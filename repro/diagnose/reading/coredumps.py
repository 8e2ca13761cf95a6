"""GPU core dumps in a log; their lines are read by `repro/coredump.py`."""

from __future__ import annotations

from collections.abc import Iterator

from ...coredump import detected, fault_of, part, place, spoken, written
from ..facts import Value
from .line import Following, Found, Line, Parser, State

FIELDS = (
    "exception", "fault", "device", "sm", "kernel", "grid", "block", "thread", "file",
    "file_line", "written",
)  # fmt: skip
OF_ONE = ("thread", "device")
REACH = 12  # lines behind a detection that may belong to it


def _dump(**values: Value) -> Found:
    known = {name: value for name, value in values.items() if name in FIELDS}
    return Found("coredump", {**dict.fromkeys(FIELDS), **known})


def _progress(line: Line, following: Following, _: State) -> Iterator[Found]:
    if path := written(line.text):
        yield _dump(written=path)
    exception = detected(line.text)
    if exception is None:
        return
    values: dict[str, Value] = {"exception": exception, "fault": fault_of(exception)}
    for other in following():
        if other.number > line.number + REACH or detected(other.text):
            break
        for name, value in part(other.text).items():
            values.setdefault(name, value)
    yield _dump(**values)


def _debugger(line: Line, following: Following, state: State) -> Iterator[Found]:
    """cuda-gdb's exception with the place that the lines behind it give: one fact."""
    if state.taken("cuda-gdb", line):
        return
    values: dict[str, Value] = dict(place(line.text) or {})
    if exception := spoken(line.text):
        values |= {"exception": exception, "fault": fault_of(exception)}
    if not values:
        return
    last = line.number
    for other in following():
        if other.number > line.number + REACH or spoken(other.text):
            break
        more = place(other.text)
        if more and any(
            values.get(name, more[name]) != more[name] for name in OF_ONE if name in more
        ):
            break  # another thread in focus
        if more:
            values = {**more, **values}
            last = other.number
    state.take("cuda-gdb", line, last)
    yield _dump(**values)


PARSERS = (
    Parser(("CUDBG_EXCEPTION_", "coredump: Writing"), _progress),
    Parser(
        (
            "CUDA Exception:",
            "Current focus set to CUDA kernel",
            ">>>",
            "exception was triggered at",
        ),
        _debugger,
    ),
)
