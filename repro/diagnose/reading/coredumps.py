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


def _debugger(line: Line, _: Following, __: State) -> Iterator[Found]:
    if exception := spoken(line.text):
        yield _dump(exception=exception, fault=fault_of(exception))
    if where := place(line.text):
        yield _dump(**where)


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
