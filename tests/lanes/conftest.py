"""A CUDA driver made up: libcuda.so.1 compiled here, whose kernels the emulator executes."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

NOTED = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_uint),
    ctypes.POINTER(ctypes.c_void_p),
)
RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
# What a device itself ends a context with, by kind of access: the error, and a dump's exception.
ERRORS = {
    "out_of_bounds_read": (700, "WARP_ILLEGAL_ADDRESS (14)"),
    "out_of_bounds_write": (700, "WARP_ILLEGAL_ADDRESS (14)"),
    "misaligned_access": (716, "WARP_MISALIGNED_ADDRESS (6)"),
    "trap": (710, "WARP_ASSERT (12)"),
}
# Types of kernel parameters: bytes that the driver reads of each.
SCALARS = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "fp32": ctypes.c_float}


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("cuda"))


def compiled(folder: Path) -> Path:
    """The library; skips without a compiler, or without cuda-bindings."""
    pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler for the made-up libcuda.so.1")
    target = folder / "libcuda.so.1"
    source = Path(__file__).with_name("fake_cuda.c")
    options = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-Wl,-soname,libcuda.so.1"]
    words = [compiler, *options, "-o", str(target), str(source), "-ldl"]
    subprocess.run(words, check=True, timeout=60)
    return target


@pytest.fixture(scope="session")
def libcuda(library: Path) -> Any:
    """The library, loaded so that cuda-bindings finds it in this process."""
    return ctypes.CDLL(str(library))


@dataclass(frozen=True)
class Noted:
    """A launch as it was asked for. arguments: by name; of a pointer, the address."""

    op: str
    shape: tuple[int, ...]
    arguments: dict[str, Any]


@dataclass
class Card:
    """The made-up device. Its kernels are executed by the emulator on what its memory holds: what
    is mapped behind a tensor can be touched, what is not ends the context."""

    library: Any
    folder: Path | None = None  # of a trial's process, where it leaves what it saw
    wrong: list[Any] = field(default_factory=list)
    launches: list[str] = field(default_factory=list)  # in the order in which they ran
    noted: list[Noted] = field(default_factory=list)  # in the order in which they were asked for
    faulted: tuple[int, str] | None = None  # where the first access lay that ended the context
    callbacks: tuple[Any, Any] | None = None

    def reset(self) -> None:
        self.library.fake_end.restype = ctypes.c_uint64
        self.library.fake_end.argtypes = (ctypes.c_uint64,)
        self.library.fake_written.argtypes = (ctypes.c_uint64,)
        self.callbacks = NOTED(self.note), RUN(self.run)
        self.library.fake_reset(*self.callbacks)

    def note(self, entry: bytes, shape: Any, parameters: Any) -> int:
        """Read a launch's arguments, as the driver does when it is asked for one; its number."""
        kernel = kernel_of(entry.decode())
        arguments: dict[str, Any] = {}
        for place, parameter in enumerate(kernel.manifest.parameters):
            kind = SCALARS.get(parameter.type, ctypes.c_uint64)
            arguments[parameter.name] = ctypes.cast(parameters[place], ctypes.POINTER(kind))[0]
        shaped = tuple(shape[n] for n in range(7))
        self.noted.append(Noted(kernel.manifest.op, shaped, arguments))
        return len(self.noted) - 1

    def run(self, number: int) -> int:
        """Execute a launch; the error with which a device would end it, 0 for none."""
        from specrepro.repro import compiled
        from specrepro.repro.emulator.launch import Buffer, launch
        from specrepro.repro.lanes.emulator import CHECKS

        asked = self.noted[number]
        kernel = kernel_of(asked.op)
        if asked.op == "hang" or os.environ.get("FAKE_STUCK"):
            time.sleep(3600)  # the emulator would give up on the planted one, a device does not
        given: list[Any] = []
        tensors: dict[str, Any] = {}
        for parameter in kernel.manifest.parameters:
            value = asked.arguments[parameter.name]
            if parameter.type in SCALARS:
                given.append(value)
            elif not value:
                given.append(None)
            else:
                dtype = compiled.DTYPES.get(parameter.type[1:], np.dtype(np.uint16))
                tensors[parameter.name] = self.memory(value, dtype)
                memory = tensors[parameter.name]
                never = None if self.library.fake_written(value) else np.zeros(memory.nbytes, bool)
                given.append(Buffer(parameter.name, memory, initialised=never))
        report = launch(
            kernel.parsed(),
            grid=asked.shape[:3],
            block=asked.shape[3:6],
            args=given,
            shared_bytes=asked.shape[6],
            requests=None,
            checks=CHECKS,
        )
        self.launches.append(asked.op)
        bad = [one for one in report.accesses if one.kind.startswith("out_of_bounds")]
        self.wrong += bad
        if report.accesses and self.folder is not None:
            self.tell(kernel.manifest.entry, report.accesses, asked, tensors)
        error = next((ERRORS[str(o.kind)][0] for o in report.accesses if o.kind in ERRORS), 0)
        if error:
            logged(self.faulted)
        return error

    def memory(self, address: int, dtype: Any) -> Any:
        """All that is mapped from an address on, as elements of a type."""
        size = (self.library.fake_end(address) - address) // dtype.itemsize * dtype.itemsize
        if size <= 0:  # unmapped: the first access is a fault
            return np.empty(0, dtype)
        return np.frombuffer((ctypes.c_uint8 * size).from_address(address), np.uint8).view(dtype)

    def tell(self, entry: str, accesses: list[Any], asked: Noted, tensors: dict[str, Any]) -> None:
        """Leave what compute-sanitizer would see, and a core dump where one is asked for."""
        assert self.folder is not None
        widths = {name: data.itemsize for name, data in tensors.items()}
        with (self.folder / "device.ndjson").open("w") as out:
            for one in accesses:
                base, width = asked.arguments.get(one.buffer, 0), widths.get(one.buffer, 4)
                if self.faulted is None and one.kind in ERRORS and len(one.elements):
                    direction = "WRITE" if "write" in one.kind else "READ"
                    self.faulted = base + int(one.elements[0]) * width, direction
                for element in one.elements if len(one.elements) else (0,):  # a barrier has none
                    line = {
                        "kind": str(one.kind),
                        "direction": "read" if "read" in one.kind else "write",
                        "address": base + int(element) * width,
                        "width": width,
                        "entry": entry,
                        "file": one.file,
                        "line": one.line,
                        "thread": one.thread[0],
                        "block": one.block[0],
                    }
                    out.write(json.dumps(line) + "\n")
        exception = next((ERRORS[str(o.kind)][1] for o in accesses if o.kind in ERRORS), "")
        if exception and os.environ.get("CUDA_ENABLE_COREDUMP_ON_EXCEPTION") == "1":
            path = os.environ["CUDA_COREDUMP_FILE"].replace("%p", str(os.getpid()))
            Path(path).write_text("a dump")
            name = f"Detected an exception of type CUDBG_EXCEPTION_{exception}"
            words = [name, "  - Device: 0", "  - SM: 7", f"#0 0x7f00 {entry}"]
            words += [f"Writing ELF file to {path}", "All done (took 0s)"]
            for word in words:
                os.write(2, f"[10:00:00.000001] coredump: {word}\n".encode())
            logged(self.faulted)
            os.abort()


def logged(fault: tuple[int, str] | None) -> None:
    """Log the fault as the driver does. FAKE_XID: number, how often, and the kernel log.

    fault: the address, of which it tells the page, and whether it was read or written.
    """
    asked = os.environ.get("FAKE_XID")
    if not asked:
        return
    code, count, log = asked.split(" ", 2)
    said = "Ch 00000008, MMU Fault"
    if fault is not None and code == "31":
        high, low = divmod(fault[0] & ~0xFFF, 1 << 32)
        said = "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_5 faulted @ "
        said += f"0x{high:x}_{low:08x}. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_{fault[1]}"
    lines = [(code, said)] * int(count) + [("43", "Ch 00000008")]
    with Path(log).open("a") as out:
        for number, body in lines:
            out.write(
                f"[  12.345678] NVRM: Xid (PCI:0000:3b:00): {number}, pid={os.getpid()}, "
                f"name=python, {body}\n"
            )


def kernel_of(entry: str) -> Any:
    """The kernel of that name: a shipped one, or one that the selftest plants."""
    from specrepro.repro import compiled
    from specrepro.repro.selftest import device_child

    if entry in device_child.calls():
        return device_child.shipped(entry, "sm_90")
    return compiled.load(entry)


@pytest.fixture
def card(libcuda: Any) -> Iterator[Card]:
    made = Card(libcuda)
    made.reset()
    yield made
    libcuda.fake_reset(NOTED(), RUN())
