"""GPU core dumps: the driver's progress lines and what cuda-gdb says of a dump."""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import Value
from .line import Following, Found, Line, Parser, State
from .patterns import lazily

_DETECTED = lazily(r"CUDBG_EXCEPTION_(\w{1,60})(?: \((\d{1,4})\))?")
_SPOKEN = lazily(r"CUDA Exception: ([A-Z][\w ,\-]{2,80})")
_FIELD = lazily(r"- (Device|SM|Warp): (\d{1,6})|- PC (0x[0-9a-fA-F]{1,16})")
_FRAME = lazily(r"#\d{1,3} +(?:0x[0-9a-fA-F]{1,16} +)?(?P<kernel>\S.{0,300})")
_FOCUS = lazily(
    r"Current focus set to CUDA kernel \d{1,9}, grid (?P<grid>\d{1,12})"
    r"(?:, cluster \([\d,]{1,40}\))?, block \((?P<block>[\d,]{1,40})\), "
    r"thread \((?P<thread>[\d,]{1,40})\)(?:, device (?P<device>\d{1,4}))?(?:, sm (?P<sm>\d{1,6}))?"
)
_LAUNCH = lazily(
    r"#0 +(?:0x[0-9a-fA-F]{1,16} in )?(?P<kernel>[^<]{1,400}?(?:<(?!<<).{0,600}?)?)"
    r"<<<(?P<grid>\([\d,]{1,40}\)),(?P<block>\([\d,]{1,40}\))>>>"
    r"(?:.{0,40}? at (?P<file>[^:]{1,300}):(?P<file_line>\d{1,9}))?"
)
_AT = lazily(
    r"exception was triggered at PC 0x[0-9a-fA-F]{1,16}(?: +(?P<kernel>[^(]{1,300})?"
    r"(?:\((?P<file>[^():]{1,300}):(?P<file_line>\d{1,9})\))?)?"
)
_WRITTEN = lazily(r"Writing ELF file to (\S{1,400})")
_FAULTS = (
    ("ILLEGAL_ADDRESS", "illegal_access"),
    ("OUT_OF_RANGE_ADDRESS", "illegal_access"),
    ("MISALIGNED", "misaligned_access"),
    ("ILLEGAL_INSTRUCTION", "illegal_instruction"),
    ("ASSERT", "device_assert"),
    ("STACK", "hardware_stack"),
    ("INVALID_PC", "invalid_pc"),
)
FIELDS = (
    "exception", "fault", "device", "sm", "kernel", "grid", "block", "thread", "file",
    "file_line", "written",
)  # fmt: skip


def fault_of(exception: str) -> str | None:
    """The fault that an exception's name says, in either spelling."""
    plain = exception.upper().replace(" ", "_")
    return next((fault for word, fault in _FAULTS if word in plain), None)


def _dump(**values: Value) -> Found:
    return Found("coredump", {**dict.fromkeys(FIELDS), **values})


def _progress(line: Line, following: Following, _: State) -> Iterator[Found]:
    if found := _WRITTEN.search(line.text):
        yield _dump(written=found[1])
    found = _DETECTED.search(line.text)
    if found is None:
        return
    values: dict[str, Value] = {
        "exception": f"CUDBG_EXCEPTION_{found[1]}",
        "fault": fault_of(found[1]),
    }
    for other in following():
        if other.number > line.number + 12 or _DETECTED.search(other.text):
            break
        if part := _FIELD.search(other.text):
            name = (part[1] or "pc").lower()
            if name in FIELDS:
                values[name] = int(part[2])
        elif frame := _FRAME.search(other.text):
            values.setdefault("kernel", frame["kernel"].strip())
    yield _dump(**values)


def _debugger(line: Line, _: Following, __: State) -> Iterator[Found]:
    text = line.text
    if found := _SPOKEN.search(text):
        yield _dump(exception=found[1].strip(), fault=fault_of(found[1]))
    for pattern in (_FOCUS, _LAUNCH, _AT):
        if found := pattern.search(text):
            values: dict[str, Value] = {
                name: int(value) if name in ("device", "sm", "file_line") else value.strip("() ")
                for name, value in found.groupdict().items()
                if value is not None and value.strip()
            }
            yield _dump(**values)
            break


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
