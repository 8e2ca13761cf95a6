"""The text of compute-sanitizer: every wording, cut ends, and never clean without proof."""

from __future__ import annotations

import pytest

from specrepro.repro.diagnose.read import read_text
from specrepro.repro.sanitizer.text import Outcome, Record, parse

HEADER = "========= COMPUTE-SANITIZER\n"
CLEAN = f"{HEADER}========= ERROR SUMMARY: 0 errors\n"

NEW = """========= Invalid __global__ write of size 4 bytes
=========     at _scatter_kernel+0x1f0 in toy.py:41
=========     by thread (7,0,0) in block (2,0,0)
=========     Access to 0x7f0000001200 is out of bounds
=========     and is 1,025 bytes after the nearest allocation at 0x7f0000000c00 of size 512 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: launch in toy.py:88
=========
"""
OLD = """========= Invalid __global__ read of size 8 bytes
=========     at 0x90 in toy.cu:12:k(int*)
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f0000000010 is misaligned
=========
"""


def one(text: str) -> Record:
    records, _ = parse(text)
    assert len(records) == 1, records
    return records[0]


def outcome(text: str) -> Outcome:
    return parse(text)[1]


def test_a_record_of_a_new_tool() -> None:
    record = one(NEW)
    assert (record.kind, record.space, record.direction, record.bytes) == (
        "access",
        "global",
        "write",
        4,
    )
    assert (record.kernel, record.offset) == ("_scatter_kernel", "0x1f0")
    assert (record.file, record.file_line) == ("toy.py", 41)
    assert (record.thread, record.block) == ("7,0,0", "2,0,0")
    assert (record.address, record.reason) == ("0x7f0000001200", "out of bounds")
    assert (record.distance, record.side) == (1025, "after")
    assert (record.allocation, record.allocation_bytes) == ("0x7f0000000c00", 512)
    assert record.frames == ("Host Frame: launch in toy.py:88",)
    assert (record.line, record.complete, record.dropped, record.rest) == (1, True, 0, ())


def test_a_record_of_an_old_tool() -> None:
    record = one(OLD)
    assert (record.kernel, record.offset) == ("k(int*)", "0x90")
    assert (record.file, record.file_line) == ("toy.cu", 12)
    assert (record.address, record.reason) == ("0x7f0000000010", "misaligned")
    unplaced = one(OLD.replace(" in toy.cu:12:k(int*)", " in k<float>(int*, long)"))
    assert (unplaced.kernel, unplaced.file) == ("k<float>(int*, long)", None)


@pytest.mark.parametrize("wording", ["Address", "Access at", "Access to"])
def test_the_three_wordings_of_an_address_say_the_same(wording: str) -> None:
    record = one(NEW.replace("Access to", wording))
    assert (record.address, record.reason) == ("0x7f0000001200", "out of bounds")


def test_where_an_access_lies() -> None:
    before = one(NEW.replace("1,025 bytes after", "1 byte before"))
    assert (before.distance, before.side) == (1, "before")
    inside = one(NEW.replace("1,025 bytes after the", "inside the"))
    assert (inside.side, inside.distance) == ("inside", None)
    heap = one(
        NEW.replace("1,025 bytes after the nearest allocation", "located in the device heap")
    )
    assert heap.side == "device heap"


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        ("Invalid __shared__ atomic of size 4 bytes", "access"),
        ("Error: Race reported between Write access at k+0x10 in a.cu:3", "race"),
        ("Warning: Race reported between Read access at k(int*)+0x10", "race"),
        ("Error: Potential RAW hazard detected at __shared__ 0x10 in block (1,0,0) :", "race"),
        (
            "Warning: (Warp Level Programming) Potential WAR hazard detected at __shared__ 0x10",
            "race",
        ),
        ("Uninitialized __global__ memory read of size 4 bytes", "uninitialised"),
        ("Host API uninitialized memory access", "uninitialised"),
        ("Unused __global__ memory in allocation 0x7f00 of size 4,096 bytes", "unused"),
        ("Unused memory in allocation 0x7f00", "unused"),
        ("Barrier error detected. Divergent thread(s) in warp", "barrier"),
        ("Warpgroup MMA sequence error detected", "barrier"),
        ("Leaked 1,024 bytes at 0x7f00", "leak"),
        ("Malloc/Free error encountered : Double free", "heap"),
        (
            'Program hit cudaErrorIllegalAddress (error 700) due to "x" on CUDA API call to f.',
            "api",
        ),
        ("Program hit an illegal memory access (error 700) on CUDA API call to cudaFree.", "api"),
        ("Tensor memory guardrail was touched", "other"),
    ],
)
def test_every_first_line_is_a_record_and_unknown_ones_are_kept(first: str, kind: str) -> None:
    record = one(
        f"========= {first}\n=========     by thread (1,0,0) in block (0,0,0)\n=========\n"
    )
    assert (record.kind, record.first, record.thread) == (kind, first, "1,0,0")


def test_an_api_record_says_call_and_error() -> None:
    record = one(
        '========= Program hit cudaErrorIllegalAddress (error 700) due to "an illegal memory '
        'access was encountered" on CUDA API call to cudaStreamSynchronize.\n'
    )
    assert (record.error, record.error_code, record.api) == (
        "cudaErrorIllegalAddress",
        700,
        "cudaStreamSynchronize",
    )
    assert record.message == "an illegal memory access was encountered"


def test_output_of_the_program_between_the_lines_is_passed_over() -> None:
    mixed = "".join(f"loading {n}\n{line}\n" for n, line in enumerate(NEW.splitlines()))
    record = one(mixed)
    assert (record.kernel, record.side, record.line) == ("_scatter_kernel", "after", 2)


def test_colours_another_prefix_and_lost_indentation() -> None:
    coloured = "\n".join(f"\x1b[1;31m{line}\x1b[0m" for line in NEW.splitlines())
    assert one(coloured).kernel == "_scatter_kernel"
    records, _ = parse(NEW.replace("=========", "##"), prefix="##")
    assert records[0].kernel == "_scatter_kernel"
    squeezed = "\n".join(" ".join(line.split()) for line in NEW.splitlines())
    assert one(squeezed).distance == 1025


def test_a_record_that_the_end_cut_is_incomplete() -> None:
    record = one(NEW[: NEW.index("Access to") + 12])
    assert (record.complete, record.kernel, record.address) == (False, "_scatter_kernel", None)


def test_clean_needs_header_summary_and_a_good_end() -> None:
    assert outcome(CLEAN).verdict == "clean"
    broken = {
        "no text at all": "",
        "no header": CLEAN.removeprefix(HEADER),
        "no summary": HEADER,
        "the tool failed": f"{HEADER}========= Error: process didn't terminate successfully\n"
        "========= ERROR SUMMARY: 0 errors\n",
        "the target failed": f"{HEADER}========= Target application returned an error\n"
        "========= ERROR SUMMARY: 0 errors\n",
        "an internal error": f"{HEADER}========= Internal Sanitizer Error: x\n"
        "========= ERROR SUMMARY: 0 errors\n",
        "records skipped": f"{HEADER}========= 3 errors were skipped (error buffer overflow).\n"
        "========= ERROR SUMMARY: 0 errors\n",
        "a summary nobody knows": f"{HEADER}========= ERROR SUMMARY: many\n",
    }
    assert {name: outcome(text).verdict for name, text in broken.items()} == dict.fromkeys(
        broken, "unknown"
    )


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        (f"{HEADER}{NEW}========= ERROR SUMMARY: 1 error\n", 1),
        (f"{HEADER}========= ERROR SUMMARY: 1,024 errors\n", 1024),
        (f"{HEADER}{NEW}", None),
        (
            f"{CLEAN}{HEADER}========= ERROR SUMMARY: 2 errors\n",
            2,
        ),
        (f"{HEADER}========= RACECHECK SUMMARY: 3 hazards displayed (3 errors, 0 warnings)\n", 3),
        (f"{HEADER}========= LEAK SUMMARY: 512 bytes leaked in 1 allocations\n", 1),
    ],
)
def test_errors_are_errors_with_or_without_a_summary(text: str, summary: int | None) -> None:
    found = outcome(text)
    assert (found.verdict, found.summary) == ("errors", summary)


def test_what_was_not_printed_is_counted() -> None:
    found = outcome(
        f"{HEADER}{NEW}========= 1,900 errors were not printed. Use --print-limit option\n"
        "========= ERROR SUMMARY: 2000 errors\n"
    )
    assert (found.not_printed, found.skipped, found.summary) == (1900, 0, 2000)


def test_in_a_log_records_are_facts_and_the_run_has_an_outcome() -> None:
    reading = read_text("a.log", f"{HEADER}{NEW}{OLD}========= ERROR SUMMARY: 2 errors\n")
    found = reading.of("sanitizer_error")
    assert [(f.line, f.values["tool"], f.values["fault"]) for f in found] == [
        (2, "memcheck", "illegal_access"),
        (10, "memcheck", "misaligned_access"),
    ]
    run = reading.of("sanitizer_run")
    assert [(f.values["outcome"], f.values["summary"]) for f in run] == [("errors", 2)]
    quiet = read_text("a.log", f"{HEADER}the program's own output\n").of("sanitizer_run")
    assert [fact.values["outcome"] for fact in quiet] == ["unknown"]
    assert read_text("a.log", "===========\nsome table\n===========\n").of("sanitizer_run") == []
