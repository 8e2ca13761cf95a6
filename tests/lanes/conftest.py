"""A CUDA driver made up: libcuda.so.1 compiled here, whose kernels the emulator executes."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

LAUNCHED = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_uint),
    ctypes.POINTER(ctypes.c_void_p),
)
ILLEGAL_ADDRESS = 700


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library; skips without a compiler, or without cuda-bindings."""
    pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler for the made-up libcuda.so.1")
    target = tmp_path_factory.mktemp("cuda") / "libcuda.so.1"
    source = Path(__file__).with_name("fake_cuda.c")
    options = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-Wl,-soname,libcuda.so.1"]
    words = [compiler, *options, "-o", str(target), str(source), "-ldl"]
    subprocess.run(words, check=True, timeout=60)
    return target


@pytest.fixture(scope="session")
def libcuda(library: Path) -> Any:
    """The library, loaded so that cuda-bindings finds it in this process."""
    return ctypes.CDLL(str(library))


@dataclass
class Card:
    """The made-up device. Its kernels are executed by the emulator on what its memory holds.

    device: the one whose launches these are; found among all objects where a test set none.
    """

    library: Any
    folder: Path | None = None  # of a trial's process, where it leaves what it saw
    wrong: list[Any] = field(default_factory=list)
    launches: list[str] = field(default_factory=list)
    device: Any = None
    callback: Any = None

    def reset(self) -> None:
        self.callback = LAUNCHED(self.launched)
        self.library.fake_reset(self.callback)

    def launched(self, entry: bytes, shape: Any, parameters: Any) -> int:
        """Execute a launch; 700 where it touched what is not mapped."""
        from specrepro.repro import compiled
        from specrepro.repro.emulator.launch import Buffer, launch
        from specrepro.repro.lanes.emulator import CHECKS
        from specrepro.repro.ops import Tensor

        device = self.device or next(one for one in gc.get_objects() if _is_device(one))
        current = device.under_way[-1]
        kernel = compiled.load(current.op)
        assert kernel.manifest.entry == entry.decode()
        arguments: list[Any] = []
        for place, parameter in enumerate(kernel.manifest.parameters):
            raw = parameters[place]
            given = current.args.get(parameter.name)
            if isinstance(given, Tensor):
                address = ctypes.cast(raw, ctypes.POINTER(ctypes.c_uint64))[0]
                size = given.data.nbytes
                memory = (ctypes.c_uint8 * max(1, size)).from_address(address)
                data = np.frombuffer(memory, np.uint8, size).view(given.dtype)
                arguments.append(Buffer(given.name, data, given.owners, given.behind))
            elif parameter.type == "fp32":
                arguments.append(ctypes.cast(raw, ctypes.POINTER(ctypes.c_float))[0])
            elif parameter.type == "i32":
                arguments.append(ctypes.cast(raw, ctypes.POINTER(ctypes.c_int32))[0])
            else:
                pointer = ctypes.cast(raw, ctypes.POINTER(ctypes.c_uint64))[0]
                assert pointer == 0
                arguments.append(None)
        report = launch(
            kernel.parsed(),
            grid=tuple(shape[n] for n in range(3)),
            block=tuple(shape[n] for n in range(3, 6)),
            args=arguments,
            shared_bytes=shape[6],
            requests=current.requests,
            checks=CHECKS,
        )
        self.launches.append(current.op)
        bad = [one for one in report.accesses if one.kind.startswith("out_of_bounds")]
        self.wrong += bad
        unstated = [one for one in bad if "stated" not in (one.lands_in or "")]
        if unstated and self.folder is not None:
            self.tell(kernel.manifest.entry, unstated, device, current)
        return ILLEGAL_ADDRESS if unstated else 0

    def tell(self, entry: str, accesses: list[Any], device: Any, current: Any) -> None:
        """Leave what compute-sanitizer would see, and a core dump where one is asked for."""
        assert self.folder is not None
        tensors = {value.name: value for value in current.args.values() if hasattr(value, "name")}
        with (self.folder / "device.ndjson").open("w") as out:
            for one in accesses:
                tensor = tensors[one.buffer]
                base = device._memory.address(tensor)
                for element in one.elements:
                    line = {
                        "direction": "read" if "read" in one.kind else "write",
                        "address": base + int(element) * tensor.dtype.itemsize,
                        "width": tensor.dtype.itemsize,
                        "entry": entry,
                        "file": one.file,
                        "line": one.line,
                        "thread": one.thread[0],
                        "block": one.block[0],
                    }
                    out.write(json.dumps(line) + "\n")
        if os.environ.get("CUDA_ENABLE_COREDUMP_ON_EXCEPTION") == "1":
            path = os.environ["CUDA_COREDUMP_FILE"].replace("%p", str(os.getpid()))
            Path(path).write_text("a dump")
            name = "Detected an exception of type CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS (14)"
            words = [name, "  - Device: 0", "  - SM: 7", f"#0 0x7f00 {entry}"]
            words += [f"Writing ELF file to {path}", "All done (took 0s)"]
            for word in words:
                os.write(2, f"[10:00:00.000001] coredump: {word}\n".encode())
            os.abort()


def _is_device(one: object) -> bool:
    return type(one).__name__ == "CudaDevice" and hasattr(one, "under_way")


@pytest.fixture
def card(libcuda: Any) -> Iterator[Card]:
    made = Card(libcuda)
    made.reset()
    yield made
    libcuda.fake_reset(LAUNCHED())
