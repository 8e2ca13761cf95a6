"""NCCL and Gloo: mostly consequences of a fault on another rank, sometimes a hang's only sign."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..facts import Value
from .line import Following, Found, Line, Parser, State, joined
from .patterns import lazily

_TIMEOUT = lazily(
    r"Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(?P<sequence>\d{1,12}), "
    r"OpType=(?P<operation>\w{1,40})"
)
_RAN = lazily(r"ran for (\d{1,12}) milliseconds")
_ERRORS = (
    ("ncclRemoteError", "remote"),
    ("ncclSystemError", "system"),
    ("ncclUnhandledCudaError", "unhandled"),
    ("ncclInternalError", "internal"),
    ("NCCL error", "unhandled"),
)


def _values(what: str, **values: Value) -> dict[str, Value]:
    empty = dict.fromkeys(("operation", "sequence", "milliseconds", "fault"))
    return {"what": what, **empty, **values}


def _nccl(line: Line, following: Following, _: State) -> Iterator[Found]:
    text = line.text
    if found := _TIMEOUT.search(text):
        whole = text if _RAN.search(text) else joined(line, following, 3)
        ran = _RAN.search(whole)
        milliseconds = int(ran[1]) if ran else None
        seconds = milliseconds / 1000 if milliseconds is not None else None
        number, operation = int(found["sequence"]), found["operation"]
        yield Found(
            "nccl_error",
            _values("timeout", operation=operation, sequence=number, milliseconds=milliseconds),
        )
        yield Found("hang", {"sign": "collective_timeout", "seconds": seconds, "running": None})
    elif "watchdog thread terminated with exception" in text:
        fault = "illegal_access" if "illegal memory access" in text else None
        yield Found("nccl_error", _values("watchdog", fault=fault))
    else:
        what = next((what for word, what in _ERRORS if word in text), None)
        if what:
            yield Found("nccl_error", _values(what))


def _warn(line: Line, _: Following, __: State) -> Iterator[Found]:
    yield Found("nccl_error", _values("warning"))


def _version(line: Line, _: Following, __: State) -> Iterator[Found]:
    found = re.search(r"(?:NCCL version |using nccl==)(\d{1,2}(?:\.\d{1,3}){1,3})", line.text)
    if found:
        yield Found("library", {"name": "nccl", "version": found[1]})


def _gloo(line: Line, _: Following, __: State) -> Iterator[Found]:
    text = line.text
    closed = "onnection closed by peer" in text
    if "gloo" in text.lower() or closed:
        what = "connection_closed" if closed else "timeout" if "imed out" in text else "other"
        yield Found("gloo_error", {"what": what})


PARSERS = (
    Parser(
        (
            "Watchdog caught collective",
            "watchdog thread terminated",
            "ncclRemoteError",
            "ncclSystemError",
            "ncclUnhandledCudaError",
            "ncclInternalError",
            "NCCL error",
        ),
        _nccl,
    ),
    Parser(("NCCL WARN",), _warn),
    Parser(("NCCL version", "using nccl=="), _version),
    Parser(("onnection closed by peer", "gloo/transport", "[gloo"), _gloo),
)
