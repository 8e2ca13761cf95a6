"""A record of the tool and a finding of the emulator are the same object, element by element."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.agreement import difference, places
from specrepro.repro.lanes.emulator import EmulatorDevice
from specrepro.repro.ops import Ops, Tensor
from specrepro.repro.records import Finding, Kind
from specrepro.repro.sanitizer.journal import Journal, Launched, Placed
from specrepro.repro.sanitizer.located import locate
from specrepro.repro.sanitizer.text import Record, parse

WIDTH, SLOTS = 16, 8
KINDS = {Kind.OUT_OF_BOUNDS_WRITE}


def emulated(slots: list[int]) -> list[Finding]:
    """What the emulator finds when kv_write is launched for these slots of caches of 8."""
    device = EmulatorDevice(1 << 30)
    ops = Ops(device)

    def tensor(name: str, *shape: int) -> Tensor:
        return device.tensor(name, np.zeros(shape, np.float16))

    ops.kv_write(
        tensor("key", len(slots), WIDTH),
        tensor("value", len(slots), WIDTH),
        tensor("key_cache", SLOTS, WIDTH),
        tensor("value_cache", SLOTS, WIDTH),
        device.tensor("slots", np.array(slots, np.int64)),
        requests=np.arange(len(slots)),
    )
    return device.findings


def sanitized(slots: list[int]) -> list[Finding]:
    """The same launch as memcheck prints it: a record a thread and access, by address."""
    bases = {"key_cache": 0x7F0000000000, "value_cache": 0x7F8000000000}
    size = SLOTS * WIDTH * 2
    lines = ["COMPUTE-SANITIZER"]
    for block, slot in enumerate(slots):
        for thread in range(WIDTH):
            for number, base in enumerate(bases.values()):
                address = base + (slot * WIDTH + thread) * 2
                if 0 <= slot < SLOTS or slot == -1:
                    continue
                lines += [
                    "Invalid __global__ write of size 2 bytes",
                    f"    at kv_write+0x40 in /opt/kernels/kv_write/kernel.cu:{23 + number}",
                    f"    by thread ({thread},0,0) in block ({block},0,0)",
                    f"    Access to {address:#x} is out of bounds",
                    f"    and is 1 bytes after the nearest allocation at {base:#x} of size {size} "
                    "bytes",
                    "",
                ]
    records, _ = parse("\n".join(f"========= {line}" for line in lines))
    reach = 1 << 30
    placed = tuple(
        Placed(name, base, SLOTS * WIDTH, 2, (base - reach, base + reach))
        for name, base in bases.items()
    )
    launched = (Launched(0, "kv_write", "kv_write", None, tuple(range(len(slots))), ended=False),)
    return list(locate(records, Journal(placed, launched)).findings)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=4))
def test_both_name_the_same_elements_of_the_same_launch(slots: list[int]) -> None:
    ours, theirs = emulated(slots), sanitized(slots)
    assert difference(places(ours, KINDS), places(theirs, KINDS)) == ""
    assert {(f.tensor, f.request, f.source and f.source.file) for f in ours} == {
        (f.tensor, f.request, f.source and f.source.file) for f in theirs
    }


def test_they_differ_where_the_elements_do() -> None:
    assert difference(places(emulated([8]), KINDS), places(sanitized([9]), KINDS))


def record(**values: object) -> Record:
    base: dict[str, object] = {"space": "global", "direction": "write", "bytes": 4, "kernel": "k"}
    return Record("access", "Invalid", 1, **{**base, **values})  # type: ignore[arg-type]


JOURNAL = Journal(
    (Placed("x", 0x1000, 16, 4, (0x0, 0xFFFF)),),
    (
        Launched(0, "k", "k", None, (), ended=True),
        Launched(1, "other", "other", None, (), ended=True),
        Launched(2, "k", "k", None, (), ended=True),
    ),
)


@pytest.mark.parametrize(
    ("values", "kind", "elements"),
    [
        ({"address": "0x1040", "bytes": 16}, Kind.OUT_OF_BOUNDS_WRITE, (16, 19)),
        ({"address": "0xffc"}, Kind.OUT_OF_BOUNDS_WRITE, (-1, -1)),
        (
            {"address": "0x1002", "reason": "misaligned", "direction": "read"},
            Kind.MISALIGNED_ACCESS,
            (0, 1),
        ),
        ({"address": "0x1040", "direction": "atomic"}, Kind.OUT_OF_BOUNDS_WRITE, (16, 16)),
        ({"address": "0x40", "space": "shared"}, Kind.SHARED_OUT_OF_BOUNDS, None),
    ],
)
def test_elements_of_an_address(
    values: dict[str, object], kind: Kind, elements: tuple[int, int] | None
) -> None:
    (finding,) = locate([record(**values)], JOURNAL).findings
    assert (finding.kind, finding.elements) == (kind, elements)


def test_of_two_launches_of_a_kernel_none_is_blamed_but_the_one_under_way() -> None:
    one = record(address="0x1040")
    assert locate([one], JOURNAL).findings[0].launch == -1
    under_way = Launched(2, "k", "k", 5, (), ended=False)
    journal = Journal(JOURNAL.placed, (*JOURNAL.launched[:2], under_way))
    (finding,) = locate([one], journal).findings
    assert (finding.launch, finding.step) == (2, 5)
    of_another = locate([record(address="0x1040", kernel="stranger")], journal).findings[0]
    assert (of_another.launch, of_another.op) == (-1, "stranger")


def test_a_record_that_was_cut_is_handed_back() -> None:
    cut = locate([record(address="0x1040", complete=False)], JOURNAL)
    assert (cut.findings, cut.unread) == ((), ("Invalid",))


def test_local_memory_and_prefetches_are_no_findings_of_ours_and_are_not_dropped() -> None:
    strange = [record(space="local"), record(direction="prefetch")]
    assert len(locate(strange, JOURNAL).unread) == 2


@pytest.mark.parametrize(
    "signature",
    [
        "k",
        "k(int *, long)",
        "void k<float, 4>(const float *)",
        "ns::k(int)",
        "inner(int *)",
    ],
)
def test_kernels_by_any_spelling(signature: str) -> None:
    frames = ("Device Frame: k(int *)+0x30 in a.cu:44",) if signature.startswith("inner") else ()
    one = record(address="0x1040", kernel=signature, frames=frames)
    journal = Journal(JOURNAL.placed, JOURNAL.launched[:1])
    assert locate([one], journal).findings[0].launch == 0
