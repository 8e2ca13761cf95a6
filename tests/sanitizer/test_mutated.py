"""10,000 broken texts of compute-sanitizer, kernel log and core dumps: none raises,
and none makes a clean run of one in which something was seen."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from specrepro.repro.coredump import debugger, progress, together
from specrepro.repro.lanes.gpu_trial import with_dump, xids
from specrepro.repro.records import Seen, Status, Trial, TrialResult
from specrepro.repro.sanitizer import saved
from specrepro.repro.sanitizer.journal import Journal
from specrepro.repro.sanitizer.reading import together as read_together
from specrepro.repro.sanitizer.text import parse
from specrepro.repro.sanitizer.weigh import weigh
from specrepro.repro.watch.events import KERNEL_LOG, Event, Watched, pci
from specrepro.repro.watch.gpus import Gpu
from specrepro.repro.watch.incidents import group
from specrepro.repro.watch.watchers import Seen as Watchers
from specrepro.repro.watch.xid import read_xid

SANITIZER, KERNEL, DUMPS = 4_000, 3_000, 3_000
MOST = 6  # mutations of a text

TEXT = """========= COMPUTE-SANITIZER
loading the model
========= Invalid __global__ write of size 2 bytes
=========     at kv_write(const short *, long)+0x1f0 in /opt/x/kernels/kv_write/kernel.cu:23
=========     by thread (7,0,0) in block (2,0,0)
=========     Access to 0x7f0000001200 is out of bounds
=========     and is 1,025 bytes after the nearest allocation at 0x7f0000000c00 of size 512 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: launch in child.py:88
=========
========= Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure" on \
CUDA API call to cuCtxSynchronize.
=========     Saved host backtrace up to driver entry point at error
=========         Host Frame: wait in child.py:99
=========
========= Target application returned an error
========= ERROR SUMMARY: 2 errors
"""
FAULT = (
    "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC0 GPCCLIENT_T1_2 faulted @ "
    "0x7ec9_34000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"
)
HEAD = "[  12.345678] NVRM: Xid (PCI:0000:3b:00): 31, "
DUMP = """[10:00:00.000001] coredump: Detected an exception of type \
CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS (14)
[10:00:00.000002] coredump:   - Device: 0
[10:00:00.000003] coredump:   - SM: 7
[10:00:00.000004] coredump:   - Warp: 3
[10:00:00.000005] coredump:   - PC 0x7f00aa
[10:00:00.000006] coredump: #0 0x7f00aa kv_write
[10:00:00.000007] coredump: Writing ELF file to /x/gpu.core.41
[10:00:00.000008] coredump: All done (took 0s)
CUDA Exception: Warp Illegal Address
[Current focus set to CUDA kernel 0, grid 12, block (3,0,0), thread (32,0,0), device 1, sm 7]
"""
GARBAGE = ("\x1b[31m", "\x00", "=========", "\ufffd", "9" * 400, "((((", "0x", "\r", "é", "<<<")
GPU = Gpu(0, "H200", "GPU-aa", "0000:3b:00", "9.0", 100 << 30, 90 << 30, False, "none", ())


def cut_line(lines: list[str], draw: random.Random) -> None:
    del lines[draw.randrange(len(lines))]


def cut_end(lines: list[str], draw: random.Random) -> None:
    del lines[draw.randrange(1, len(lines) + 1) :]


def twice(lines: list[str], draw: random.Random) -> None:
    lines.insert(draw.randrange(len(lines)), draw.choice(lines))


def swapped(lines: list[str], draw: random.Random) -> None:
    one, two = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[one], lines[two] = lines[two], lines[one]


def inside(lines: list[str], draw: random.Random) -> None:
    at = draw.randrange(len(lines))
    where = draw.randrange(len(lines[at]) + 1)
    lines[at] = lines[at][:where] + draw.choice(GARBAGE) + lines[at][where:]


def shortened(lines: list[str], draw: random.Random) -> None:
    at = draw.randrange(len(lines))
    lines[at] = lines[at][: draw.randrange(len(lines[at]) + 1)]


def another_character(lines: list[str], draw: random.Random) -> None:
    at = draw.randrange(len(lines))
    if lines[at]:
        where = draw.randrange(len(lines[at]))
        lines[at] = lines[at][:where] + chr(draw.randrange(1, 0x2FF)) + lines[at][where + 1 :]


MUTATIONS: tuple[Callable[[list[str], random.Random], None], ...] = (
    cut_line,
    cut_end,
    twice,
    swapped,
    inside,
    shortened,
    another_character,
)


def mutated(text: str, seed: int) -> str:
    """A text, broken in one to six ways."""
    draw = random.Random(seed)  # noqa: S311 - no secret
    lines = text.splitlines()
    for _ in range(draw.randint(1, MOST)):
        if lines:
            draw.choice(MUTATIONS)(lines, draw)
    return "\n".join(lines)


def test_no_broken_text_of_the_tool_raises_or_is_clean() -> None:
    for seed in range(SANITIZER):
        text = mutated(TEXT, seed)
        records, outcome = parse(text)
        reading = read_together(records, outcome, saved.Saved())
        for done in (Journal(complete=True), Journal(complaint="no completion mark")):
            weighed = weigh("memcheck", "2026.4", reading, done)
            assert weighed.status in (Status.FAULT, Status.UNKNOWN), f"seed {seed}:\n{text}"
            assert weighed.reason or weighed.findings, f"seed {seed}"


def test_no_broken_message_of_the_driver_raises_or_is_lost() -> None:
    for seed in range(KERNEL):
        # where the head is whole the Xid is seen, whatever its body has become
        body = re.sub(r"[\r\n\x85\u2028\u2029]", " ", mutated(FAULT, seed))
        xid = read_xid(HEAD + body)
        assert xid is not None, f"seed {seed}: {body!r}"
        assert xid.code == 31
        event = Event(KERNEL_LOG, 1.0, xid.code, pci(xid.bus), xid)
        seen = xids(Watchers(group([event]), [Watched(KERNEL_LOG, True)]), GPU)
        assert [one.state for one in seen] == [Seen.SEEN], f"seed {seed}"
        read_xid(mutated(HEAD + FAULT, seed))  # with a broken head it may be none, and never raises


def test_no_broken_dump_raises_or_makes_a_trial_clean() -> None:
    trial = Trial("c", "faulty", "coredump", {}, Status.FAULT)
    unended = TrialResult(trial, Status.UNKNOWN, reason="ended by SIGABRT")
    for seed in range(DUMPS):
        lines = mutated(DUMP, seed).splitlines()
        dumps, said = progress(lines), debugger(lines)
        one = together(dumps[0], said) if dumps else None
        judged = with_dump(unended, one, "")
        assert judged.status in (Status.FAULT, Status.UNKNOWN), f"seed {seed}"
        if judged.status is Status.UNKNOWN:
            assert judged.evidence[-1].state is Seen.UNOBSERVABLE, f"seed {seed}"


@pytest.mark.parametrize("text", [TEXT, DUMP, HEAD + FAULT])
def test_the_texts_are_broken_in_many_ways(text: str) -> None:
    assert len({mutated(text, seed) for seed in range(1000)}) > 500
