"""GPU core dumps of a process: how one is asked for, what the driver says while it writes it, and
what cuda-gdb says of it afterwards.

A dump names kernel, block and thread also inside a replayed graph, and costs nothing until the
fault. It sees what the device itself traps: an unmapped page, a misaligned address, a trap. It does
not know tensors. Not together with compute-sanitizer, which takes the variables away.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

Value = str | int

# What stands in GPU memory is not kept: the place is wanted, and a whole dump is as large as the
# card. `skip_abort` is not among them: it can swallow the fault.
LIGHT = (
    "skip_nonrelocated_elf_images",
    "skip_global_memory",
    "skip_shared_memory",
    "skip_local_memory",
    "skip_constbank_memory",
)
PREFIX = "gpu.core."
LONGEST = 4096  # characters of a line that are looked at

# Patterns are text: `re` compiles and keeps one when a line first asks for it.
_DETECTED = r"CUDBG_EXCEPTION_(\w{1,60})(?: \((\d{1,4})\))?"
_SPOKEN = r"CUDA Exception: ([A-Z][\w ,\-]{2,80})"
_FIELD = r"- (Device|SM|Warp): (\d{1,6})|- PC (0x[0-9a-fA-F]{1,16})"
_FRAME = r"#\d{1,3} +(?:0x[0-9a-fA-F]{1,16} +)?(?P<kernel>\S.{0,300})"
_FOCUS = (
    r"Current focus set to CUDA kernel \d{1,9}, grid (?P<grid>\d{1,12})"
    r"(?:, cluster \([\d,]{1,40}\))?, block \((?P<block>[\d,]{1,40})\), "
    r"thread \((?P<thread>[\d,]{1,40})\)(?:, device (?P<device>\d{1,4}))?(?:, sm (?P<sm>\d{1,6}))?"
    r"(?:, warp (?P<warp>\d{1,6}))?"
)
_LAUNCH = (
    r"#0 +(?:0x[0-9a-fA-F]{1,16} in )?(?P<kernel>[^<]{1,400}?(?:<(?!<<).{0,600}?)?)"
    r"<<<(?P<grid>\([\d,]{1,40}\)),(?P<block>\([\d,]{1,40}\))>>>"
    r"(?:.{0,40}? at (?P<file>[^:]{1,300}):(?P<file_line>\d{1,9}))?"
)
_AT = (
    r"exception was triggered at PC 0x[0-9a-fA-F]{1,16}(?: +(?P<kernel>[^(]{1,300})?"
    r"(?:\((?P<file>[^():]{1,300}):(?P<file_line>\d{1,9})\))?)?"
)
_WRITTEN = r"Writing ELF file to (\S{1,400})"
_DONE = r"All done \(took"
_FAULTS = (
    ("ILLEGAL_ADDRESS", "illegal_access"),
    ("OUT_OF_RANGE_ADDRESS", "illegal_access"),
    ("MISALIGNED", "misaligned_access"),
    ("ILLEGAL_INSTRUCTION", "illegal_instruction"),
    ("ASSERT", "device_assert"),
    ("STACK", "hardware_stack"),
    ("INVALID_PC", "invalid_pc"),
)
_NUMBERS = ("device", "sm", "warp", "file_line")
_SPACE = 12  # lines behind a detection that may belong to it


@dataclass(frozen=True, slots=True)
class Dump:
    """One exception of a device. grid: its number, as printed; block, thread: "x,y,z".
    written: the file, finished: it was written to its end. None where nothing said it."""

    exception: str | None = None
    fault: str | None = None
    device: int | None = None
    sm: int | None = None
    warp: int | None = None
    pc: str | None = None
    kernel: str | None = None
    grid: str | None = None
    block: str | None = None
    thread: str | None = None
    file: str | None = None
    file_line: int | None = None
    written: str | None = None
    finished: bool = False


def environment(folder: Path) -> dict[str, str]:
    """The variables that have a process write a light dump into `folder` at its first exception."""
    return {
        "CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "1",
        "CUDA_COREDUMP_SHOW_PROGRESS": "1",
        "CUDA_COREDUMP_GENERATION_FLAGS": ",".join(LIGHT),
        "CUDA_COREDUMP_FILE": str(folder / f"{PREFIX}%p"),
    }


def fault_of(exception: str) -> str | None:
    """The fault that an exception's name says, in either spelling; None for one nobody knows."""
    plain = exception.upper().replace(" ", "_")
    return next((fault for word, fault in _FAULTS if word in plain), None)


def detected(text: str) -> str | None:
    """The name of the exception that a progress line says was detected."""
    found = re.search(_DETECTED, text)
    return f"CUDBG_EXCEPTION_{found[1]}" if found else None


def written(text: str) -> str | None:
    """The file that a progress line says is being written."""
    found = re.search(_WRITTEN, text)
    return found[1] if found else None


def part(text: str) -> Mapping[str, Value]:
    """What a line behind a detection adds: device, sm, warp, pc, or the kernel of a frame."""
    if found := re.search(_FIELD, text):
        return {"pc": found[3]} if found[3] else {found[1].lower(): int(found[2])}
    if found := re.search(_FRAME, text):
        return {"kernel": found["kernel"].strip()}
    return {}


def spoken(text: str) -> str | None:
    """The exception that a line of cuda-gdb names."""
    found = re.search(_SPOKEN, text)
    return found[1].strip() if found else None


def place(text: str) -> Mapping[str, Value]:
    """Where a line of cuda-gdb says it was: grid, block, thread, kernel, file…; {} for none."""
    for pattern in (_FOCUS, _LAUNCH, _AT):
        if found := re.search(pattern, text):
            return {
                name: int(value) if name in _NUMBERS else value.strip("() ")
                for name, value in found.groupdict().items()
                if value is not None and value.strip()
            }
    return {}


def progress(lines: Iterable[str]) -> list[Dump]:
    """The exceptions that the driver's progress lines tell of. Never raises on any text.

    A file belongs to every exception before it that has none: one dump holds all of a device.
    """
    dumps: list[Dump] = []
    since = _SPACE + 1
    for line in (raw[:LONGEST] for raw in lines):
        since += 1
        if name := detected(line):
            dumps.append(Dump(exception=name, fault=fault_of(name)))
            since = 0
        elif path := written(line):
            dumps = dumps or [Dump()]
            dumps = [one if one.written else replace(one, written=path) for one in dumps]
        elif re.search(_DONE, line):
            dumps = [replace(one, finished=bool(one.written)) for one in dumps]
        elif dumps and since <= _SPACE and "coredump:" in line:
            dumps[-1] = _with(dumps[-1], part(line))
    return dumps


def debugger(lines: Iterable[str]) -> Dump:
    """What cuda-gdb says of a dump, from `target cudacore` on. Never raises on any text.

    The extent of a launch is no place: of `kernel<<<(8,1,1),(128,1,1)>>>` only the kernel is kept.
    """
    dump = Dump()
    for line in (raw[:LONGEST] for raw in lines):
        if name := spoken(line):
            dump = _with(dump, {"exception": name} | _named(fault=fault_of(name)))
        where = place(line)
        if ">>>" in line:
            where = {k: v for k, v in where.items() if k not in ("grid", "block")}
        dump = _with(dump, where)
    return dump


def together(driver: Dump, gdb: Dump) -> Dump:
    """One exception as both tell of it; the name is the driver's, the place cuda-gdb's first."""
    values = {
        name: ours if (ours := getattr(gdb, name)) is not None else getattr(driver, name)
        for name in ("kernel", "grid", "block", "thread", "device", "sm", "warp", "file_line")
    }
    return replace(
        driver,
        exception=driver.exception or gdb.exception,
        fault=driver.fault or gdb.fault,
        file=gdb.file,
        **values,
    )


def _with(dump: Dump, values: Mapping[str, Value]) -> Dump:
    """A dump with what it does not know yet."""
    fresh = {name: value for name, value in values.items() if getattr(dump, name) is None}
    return replace(dump, **fresh) if fresh else dump  # type: ignore[arg-type]


def _named(**values: Value | None) -> dict[str, Value]:
    return {name: value for name, value in values.items() if value is not None}
