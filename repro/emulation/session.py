"""`with emulate() as run:` — the Triton launches of this process, emulated on its own arrays."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from ..emulator.findings import findings
from ..emulator.launch import Buffer, LaunchReport, launch
from ..emulator.ptx import Kernel, parse
from ..errors import Exit, SpecreproError, UnsupportedError, UsageError
from ..records import Finding
from .accesses import MOST_RANGES, Warned, chosen, warnings
from .element_types import TYPES, element_type
from .made_empty import told_of_empty
from .memory import aligned, encode
from .numpy_pointer import Region, Storages, region
from .triton_device import TritonLaunch, installed
from .unwritten import Unwritten
from .wording import located

T = TypeVar("T")
MAX_FINDINGS = 1000  # kept of one session; the rest is counted
SHOWN = 10  # findings in the text of an exception
NOWHERE = "no tensor"  # where an address lands that is none of an argument
# What counts as an address of this process, and how far behind it what it points to may reach.
LEAST_ADDRESS, REACH = 1 << 32, 1 << 30


class FindingsError(SpecreproError):
    """A launch did something wrong. `findings` has the records, the text says each with its place.

    Raised right after the launch, whose outputs are written.
    """

    exit_status = Exit.FAULT

    def __init__(self, found: list[Finding], tensors: dict[str, str]) -> None:
        self.findings = found
        lines = [located(one, tensors.get(one.tensor or "")) for one in found[:SHOWN]]
        more = len(found) - SHOWN
        if more > 0:
            lines.append(f"and {more} more")
        super().__init__("\n".join(lines))


@dataclass(frozen=True, slots=True)
class LaunchSummary:
    """One launch of a session. found: how many findings. instructions: executed, once for all
    threads each. refused: why it was not executed to its end, "" where it was. invented: special
    registers that it read and whose values say nothing, such as clocks.
    """

    number: int
    kernel: str
    grid: tuple[int, int, int]
    threads: int
    found: int
    instructions: int
    refused: str = ""
    invented: tuple[str, ...] = ()


@dataclass(slots=True)
class Emulation:
    """The launches of a session so far.

    checks: those that are on, besides that of bounds. findings: in order of launch, at most
    MAX_FINDINGS. unkept: how many more there were. warnings: races between blocks, as many at most.
    tensors: name → dtype and shape of what the findings name.
    """

    raise_on_finding: bool
    checks: frozenset[str]
    findings: list[Finding] = field(default_factory=list)
    warnings: list[Warned] = field(default_factory=list)
    launches: list[LaunchSummary] = field(default_factory=list)
    tensors: dict[str, str] = field(default_factory=dict)
    unkept: int = 0
    _unwritten: Unwritten = field(default_factory=Unwritten)

    def uninitialised(self, array: T) -> T:
        """`array`, of which nobody has written anything: `out = run.uninitialised(np.empty(100))`.

        Without this every array counts as written. It is filled with bytes 0xAA. From then on to
        read an element that no kernel has stored is a finding, unless the program itself has put
        something else there. UsageError where it is no writable numpy array or CPU tensor without
        gaps.
        """
        self._unwritten.declare(array)
        return array

    def made_empty(self, array: Any) -> None:
        """Note an array that was just made and that nobody has written; nothing where no launch
        could take it. It is filled with bytes drawn by lot.
        """
        self._unwritten.made(array)

    def report(self) -> str:
        """A line a finding; "" where there is none."""
        return "\n".join(located(one, self.tensors.get(one.tensor or "")) for one in self.findings)

    def launched(self, asked: TritonLaunch) -> None:
        """Execute a launch; FindingsError for what it did wrong, if that is wanted."""
        if min(asked.grid) <= 0:
            return  # as a device's launcher does: nothing to start
        number = len(self.launches)
        summary = LaunchSummary(number, asked.name, asked.grid, 32 * asked.warps, 0, 0)
        try:
            found, report, tensors = _executed(asked, number, self.checks, self._unwritten)
        except SpecreproError as error:
            self.launches.append(replace(summary, refused=str(error)))
            raise
        self.launches.append(
            replace(
                summary,
                found=len(found),
                instructions=report.instructions,
                invented=report.invented,
            )
        )
        if report.printed:
            print(report.printed, end="", flush=True)
        room = max(0, MAX_FINDINGS - len(self.warnings))
        self.warnings += warnings(report, asked.name, number)[:room]
        room = max(0, MAX_FINDINGS - len(self.findings))
        self.findings += found[:room]
        self.unkept += len(found[room:])
        self.tensors.update(tensors)
        if found and self.raise_on_finding:
            raise FindingsError(found, tensors)


@contextmanager
def emulate(
    *, raise_on_finding: bool = True, skip: Collection[str] = (), empty: bool = False
) -> Iterator[Emulation]:
    """Run Triton launches in the emulator while the context is open.

    Kernels take numpy arrays and CPU torch tensors and write them in place. A pointer may touch its
    array from its first to its last element. The first configuration of an autotuned kernel is
    taken. raise_on_finding: FindingsError at the launch that did it; else see `findings` later.
    skip: checks that are not made (repro/emulator/checks.py has the names). Arrays count as written
    but for those given to `Emulation.uninitialised` and, with empty=True, those that numpy's and
    torch's `empty` and its like make meanwhile. What kernels print goes to stdout.
    UnsupportedError for what the emulator does not execute.
    """
    run = Emulation(raise_on_finding, chosen(skip))
    with told_of_empty(run.made_empty) if empty else nullcontext(), installed(run.launched):
        yield run


@lru_cache(maxsize=64)
def kernel_of(ptx: str, name: str) -> Kernel:
    """The entry `name` of a PTX text, parsed once."""
    return parse(ptx).kernels[name]


def _executed(
    asked: TritonLaunch, number: int, checks: frozenset[str], unwritten: Unwritten
) -> tuple[list[Finding], LaunchReport, dict[str, str]]:
    unwritten.look()
    storages: Storages = {}
    regions: dict[tuple[int, int], tuple[Buffer, Region]] = {}
    values: list[Buffer | int | float | None] = []
    for name, kind, value in asked.arguments:
        if not kind.startswith("*"):
            values.append(_scalar(name, kind, value))
        elif value is None:
            values.append(None)
        elif isinstance(value, int):
            raise UsageError(f"argument {name} is an address, which is none of a tensor")
        else:
            memory = region(name, value, storages)
            key = memory.address, memory.data.nbytes
            if key not in regions or not memory.data.nbytes:
                marks = unwritten.marks(memory)
                regions[key] = Buffer(name, memory.data, initialised=marks), memory
            values.append(regions[key][0])
    blocks = asked.grid[0] * asked.grid[1] * asked.grid[2]
    for name, size in (("global", asked.global_scratch), ("profile", asked.profile_scratch)):
        memory_ = aligned(size * blocks, np.dtype(np.uint8))
        values.append(Buffer(f"{name} scratch", memory_) if size else None)
    before = [(memory, memory.data.copy()) for _, memory in regions.values() if memory.copy]
    report = launch(
        kernel_of(asked.ptx, asked.name),
        grid=asked.grid,
        block=(32 * asked.warps, 1, 1),
        args=values,
        shared_bytes=asked.shared_bytes,
        checks=checks,
        copies=True,
    )
    for memory, old in before:
        if not np.array_equal(memory.data.view(np.uint8), old.view(np.uint8)):
            raise UsageError(f"{asked.name} writes to {memory.shown}, which is read-only")
    for buffer, _ in regions.values():
        _no_table(buffer, report)
    named = {buffer.name: (buffer, memory) for buffer, memory in regions.values()}
    sizes = {name: (b.data.size, b.data.itemsize) for name, (b, _) in named.items()}
    found = findings(report, asked.name, number, sizes, most=MOST_RANGES)
    tensors = {name: f"{name} {memory.shown}" for name, (_, memory) in named.items()}
    return found, report, tensors


def _no_table(buffer: Buffer, report: LaunchReport) -> None:
    """UnsupportedError where what a kernel reached is behind an address of the program itself that
    it took out of `buffer`: whether anything is wrong with that cannot be told.
    """
    if buffer.data.dtype.kind not in "iu" or buffer.data.itemsize != 8:
        return
    numbers = buffer.data.view(np.int64)
    for access in report.accesses:
        if access.lands_in != NOWHERE:
            continue
        address = access.elements[0]
        near = (numbers >= LEAST_ADDRESS) & (numbers <= address)
        if near.any() and address - numbers[near].max() < REACH:
            raise UnsupportedError(
                f"{buffer.name} holds addresses of the program itself, whose memory is not known",
                where=f"{access.file}:{access.line}",
                hint="an argument file of `specrepro emulate` may have tables of pointers",
            )


def _scalar(name: str, kind: str, value: Any) -> int | float:
    if hasattr(value, "value"):
        value = value.value  # a constexpr given for a parameter that is none
    dtype = element_type(kind)
    if dtype is None:
        raise UsageError(f"argument {name} is of type {kind}, which no launch can pass")
    if dtype.kind != "f":
        return int(value)
    if dtype.raw:
        return int(encode(np.array([float(value)]), TYPES[dtype.name])[0])
    return float(value)
