"""What every instrument of a made-up machine with a GPU says of one fault, joined."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.lanes.gpu_trial import xids
from specrepro.repro.records import Place
from specrepro.repro.sanitizer.journal import Placed
from specrepro.repro.watch.events import KERNEL_LOG, NVML, Event, Watched
from specrepro.repro.watch.gpus import Gpu
from specrepro.repro.watch.incidents import group
from specrepro.repro.watch.watchers import Seen
from specrepro.repro.watch.xid import read_xid

BUS = "0000:3b:00"
GPU = Gpu(0, "H200", None, BUS, "9.0", None, None, False, "none", ())


@pytest.fixture
def box(made_up_gpu: Any, tmp_path: Path) -> Any:
    return made_up_gpu(tmp_path)


def test_launch_error_record_dump_and_kernel_log_are_one_access(box: Any) -> None:
    box.xid(31)
    box.more["COLUMNS"] = "120"
    words = ("mtp-tail-overflow", "--variant", "faulty", "--set", "seq_len=63")
    lanes = [
        word
        for lane in ("reference", "emulator", "plain", "blocking", "memcheck", "coredump")
        for word in ("--lane", lane)
    ]
    record = box.run(*words, *lanes)
    (case,) = record["cases"]
    assert case["verdict"] == "REPRODUCED", case["reasons"]
    rows = {(row["instrument"], row["lane"]): row for row in case["join"]["rows"]}
    wanted = {
        ("emulator", "emulator"): "launch 44 kv_write write of key_cache elements 1024..1039",
        ("launch error", "plain"): "one of launches 42 to 45",
        ("launch error", "blocking"): "launch 44 kv_write",
        ("core dump", "coredump"): "kv_write",
        ("Xid by kernel log", "plain"): "write of key_cache (this process)",
        ("Xid by kernel log", "coredump"): "write of key_cache",
    }
    assert {key: rows[key]["located"] for key in wanted} == wanted
    (tool,) = (row for (name, _), row in rows.items() if name.startswith("compute-sanitizer"))
    assert tool["located"] == "launch 44 kv_write write of key_cache elements 1024..1039"
    assert all(rows[key]["agrees"] for key in wanted)
    assert tool["agrees"]
    assert rows["Xid by NVML", "plain"]["agrees"] is None
    assert case["join"]["first_writer"].endswith("elements 1024..1039, for request 0")
    page = box.specrepro("runs", "show", record["run"]["id"], "--runs", str(box.folder / "runs"))
    assert "Xid by kernel log (plain, blocking, memcheck)" in " ".join(page.stdout.split())


def seen(body: str, pid: int = 7) -> Seen:
    message = f"NVRM: Xid (PCI:{BUS}): 31, pid={pid}, name=python3, {body}"
    event = Event(KERNEL_LOG, 10.0, 31, BUS, read_xid(message))
    return Seen(group([event]), [Watched(KERNEL_LOG, True), Watched(NVML, True)])


FAULT = (
    "Ch 00000010, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_5 faulted @ {}. "
    "Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_{}"
)


@pytest.mark.parametrize(
    ("address", "tensors"),
    [
        ("0x7f00_00200000", ("a",)),  # right behind what is mapped of it
        ("0x7f00_00100000", ("a",)),  # its first page
        ("0x7f00_40000000", ("b", "c")),  # neighbours within one page
        ("0x7f11_00000000", ()),
    ],
)
def test_an_address_of_the_kernel_log_is_whose_range_its_page_touches(
    address: str, tensors: tuple[str, ...]
) -> None:
    placed = [
        Placed("a", 0x7F00_001F_FF00, 16, 2, (0x7F00_0010_0800, 0x7F00_0030_0000)),
        Placed("b", 0x7F00_4000_0000, 16, 2, (0x7F00_4000_0000, 0x7F00_4000_01FF)),
        Placed("c", 0x7F00_4000_0200, 16, 2, (0x7F00_4000_0200, 0x7F00_4000_03FF)),
    ]
    told = xids(seen(FAULT.format(address, "READ")), GPU, placed)
    assert told[0].place == Place(tensors=tensors, access="read", pid=7)
    assert told[1].place is None


def test_a_body_without_an_address_names_the_process_alone() -> None:
    assert xids(seen("Ch 00000008"), GPU, [])[0].place == Place(pid=7)
