"""GPU core dumps: the driver's lines, cuda-gdb's, and the files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.coredump import (
    Dump,
    debugger,
    environment,
    fault_of,
    progress,
    together,
)
from specrepro.repro.cuda_gdb import files, find, inspect, remove

DRIVER = [
    "Detected an exception of type CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS (14)",
    "  - Device: 1",
    "  - SM: 7",
    "  - Warp: 3",
    "  - PC 0x7f00aa",
    "#0 0x7f00aa kv_write",
    "Writing ELF file to /runs/x/gpu.core.41",
    "All done (took 0s)",
]
LINES = [f"[10:00:00.00000{n}] coredump: {line}" for n, line in enumerate(DRIVER)]
GDB = [
    "Opening GPU coredump: gpu.core.41",
    "",
    "CUDA Exception: Warp Illegal Address",
    "The exception was triggered at PC 0x7f00aa  kv_write(short const*, long) (kernel.cu:23)",
    "[Current focus set to CUDA kernel 0, grid 12, block (3,0,0), thread (32,0,0), device 1, "
    "sm 7, warp 3, lane 0]",
    "#0  0x7f00aa in kv_write<<<(8,1,1),(64,1,1)>>> (x=0x7f) at /k/kernel.cu:23",
]


def test_the_drivers_lines_name_exception_place_and_file() -> None:
    assert progress(["loading", *LINES, "Aborted"]) == [
        Dump(
            exception="CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS",
            fault="illegal_access",
            device=1,
            sm=7,
            warp=3,
            pc="0x7f00aa",
            kernel="kv_write",
            written="/runs/x/gpu.core.41",
            finished=True,
        )
    ]


def test_a_dump_that_was_cut_is_not_finished() -> None:
    assert not progress(LINES[:-1])[0].finished
    assert progress(LINES[:6])[0].written is None
    assert progress(LINES[6:]) == [Dump(written="/runs/x/gpu.core.41", finished=True)]
    assert progress(["nothing of the kind"]) == []


def test_two_exceptions_keep_their_own_places_and_share_the_file() -> None:
    second = [line.replace("SM: 7", "SM: 9").replace("(14)", "(14)") for line in LINES[:6]]
    found = progress([*LINES[:6], *second, *LINES[6:]])
    assert [(one.sm, one.written) for one in found] == [
        (7, "/runs/x/gpu.core.41"),
        (9, "/runs/x/gpu.core.41"),
    ]


def test_cuda_gdb_names_block_and_thread_and_no_extent_for_a_place() -> None:
    dump = debugger(GDB)
    assert (dump.exception, dump.fault) == ("Warp Illegal Address", "illegal_access")
    assert (dump.kernel, dump.grid, dump.block, dump.thread) == (
        "kv_write",
        "12",
        "3,0,0",
        "32,0,0",
    )
    assert (dump.device, dump.sm, dump.warp) == (1, 7, 3)
    assert debugger(GDB[5:]).block is None


def test_both_together() -> None:
    dump = together(progress(LINES)[0], debugger(GDB))
    assert (dump.exception, dump.kernel, dump.block, dump.written) == (
        "CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS",
        "kv_write",
        "3,0,0",
        "/runs/x/gpu.core.41",
    )
    assert together(progress(LINES)[0], Dump()) == progress(LINES)[0]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("CUDBG_EXCEPTION_WARP_MISALIGNED_ADDRESS", "misaligned_access"),
        ("Warp Assert", "device_assert"),
        ("CUDBG_EXCEPTION_OF_2030", None),
    ],
)
def test_faults_by_name(name: str, fault: str | None) -> None:
    assert fault_of(name) == fault


@given(st.lists(st.sampled_from([*LINES, *GDB]) | st.text(max_size=60), max_size=30))
def test_no_text_raises(lines: list[str]) -> None:
    assert all(one.exception or one.written for one in progress(lines))
    debugger(lines)


def test_what_is_asked_of_the_driver(tmp_path: Path) -> None:
    asked = environment(tmp_path)
    assert asked["CUDA_ENABLE_COREDUMP_ON_EXCEPTION"] == "1"
    assert asked["CUDA_COREDUMP_FILE"] == str(tmp_path / "gpu.core.%p")
    assert "skip_global_memory" in asked["CUDA_COREDUMP_GENERATION_FLAGS"].split(",")
    assert "skip_abort" not in asked["CUDA_COREDUMP_GENERATION_FLAGS"]


def fake(path: Path, body: str) -> dict[str, str]:
    """A cuda-gdb that does `body`, and an environment in which it is found."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\nimport os, sys, time\n{body}\n")
    path.chmod(0o755)
    return {"PATH": str(path.parent)}


SPEAKS = f"""
commands = [b for a, b in zip(sys.argv, sys.argv[1:]) if a == "-ex"]
name = next(c for c in commands if c.startswith("target cudacore ")).split(" ", 2)[2]
assert "-nx" in sys.argv and "--batch" in sys.argv
content = open(name).read()
print("\\n".join({GDB!r}) if content == "a dump" else f"{{name}}: not in core format")
"""


def test_cuda_gdb_is_asked_about_the_file_in_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a folder; echo $(x)"
    folder.mkdir()
    dump = folder / "gpu.core.41"
    dump.write_text("a dump")
    environ = fake(tmp_path / "bin" / "cuda-gdb", SPEAKS)
    assert inspect(dump, environ).dump == debugger(GDB)
    assert inspect(dump, environ).complaint == ""
    home = {"PATH": "", "CUDA_HOME": str(tmp_path)}
    assert find(home) == str(tmp_path / "bin" / "cuda-gdb")


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (SPEAKS, "not in core format"),
        ("time.sleep(30)", "did not end within"),
        ("sys.exit(1)", "nothing"),
        ("print('\\x1b[31mred')", "\\x1b[31mred"),
    ],
)
def test_what_cuda_gdb_cannot_say_is_said(tmp_path: Path, body: str, complaint: str) -> None:
    dump = tmp_path / "gpu.core.1"
    dump.write_text("cut")
    said = inspect(dump, fake(tmp_path / "bin" / "cuda-gdb", body), patience=3)
    assert said.dump == Dump()
    assert complaint in said.complaint


def test_without_cuda_gdb_block_and_thread_are_unknown(tmp_path: Path) -> None:
    assert "block and thread are unknown" in inspect(tmp_path / "gpu.core.1", {}).complaint


def test_dumps_are_found_and_removed_and_nothing_else_is(tmp_path: Path) -> None:
    for number, name in enumerate(("gpu.core.9", "gpu.core.8", "result.ndjson")):
        (tmp_path / name).write_bytes(b"x" * 10)
        os.utime(tmp_path / name, (number, number))
    (tmp_path / "gpu.core.link").symlink_to(tmp_path / "result.ndjson")
    assert [path.name for path in files(tmp_path)] == ["gpu.core.9", "gpu.core.8"]
    assert remove(tmp_path) == 20
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gpu.core.link", "result.ndjson"]
    assert (files(tmp_path / "none"), remove(tmp_path / "none")) == ([], 0)
