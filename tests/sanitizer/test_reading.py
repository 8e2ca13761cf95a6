"""XML and journal: what they say, and that no bytes make a reader raise or a run clean."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.records import Kind, Status
from specrepro.repro.sanitizer import journal
from specrepro.repro.sanitizer import saved as saved_file
from specrepro.repro.sanitizer.journal import Journal, Placed
from specrepro.repro.sanitizer.options import Files
from specrepro.repro.sanitizer.reading import read, together
from specrepro.repro.sanitizer.text import Outcome, Record, parse
from specrepro.repro.sanitizer.weigh import same_error, weigh

PRECISE = """<?xml version="1.0" encoding="utf-8"?>
<ComputeSanitizerOutput>
  <record>
    <kind>Precise</kind><level>Error</level>
    <what><text>Invalid __global__ read of size 4 bytes</text><space>__global__</space>
      <direction>Read</direction><accessSize>4</accessSize><address>0x7f0000001000</address></what>
    <who><threadIdx><x>5</x><y>0</y><z>0</z></threadIdx>
      <blockIdx><x>1</x><y>2</y><z>0</z></blockIdx></who>
    <where><func>gather</func><path>/a/kernels/gather/kernel.py</path><line>12</line>
      <offset>0x40</offset></where>
    <hostStack><saveLocation>launch</saveLocation>
      <frame><func>main</func><module>python</module></frame>
      <frame><func>run &lt;T&gt;</func><path>x.py</path><line>3</line></frame></hostStack>
    <novelty><deeper>of a later version</deeper></novelty>
  </record>
  <record><kind>Api</kind><what><text>Program hit x</text><api>cudaMalloc</api>
    <error>cudaErrorMemoryAllocation</error><message>out of memory</message><result>2</result>
  </what></record>
  <record><kind>FabricGuardrail</kind><what><text>of 2027</text></what></record>
</ComputeSanitizerOutput>
"""
CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
DONE = Journal(complete=True)


def test_the_fields_of_saved_records() -> None:
    saved = saved_file.parse(PRECISE.encode())
    access, api, other = saved.records
    assert saved.complaint == ""
    assert (access.kind, access.space, access.direction, access.bytes) == (
        "access",
        "global",
        "read",
        4,
    )
    assert (access.address, access.thread, access.block) == ("0x7f0000001000", "5,0,0", "1,2,0")
    assert (access.kernel, access.file, access.file_line, access.offset) == (
        "gather",
        "/a/kernels/gather/kernel.py",
        12,
        "0x40",
    )
    assert access.frames == ("Frame: main in python", "Frame: run <T> in x.py:3")
    assert (api.kind, api.api, api.error_code, api.message) == (
        "api",
        "cudaMalloc",
        2,
        "out of memory",
    )
    assert (other.kind, other.first) == ("other", "of 2027")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        PRECISE.encode()[:-40],
        b'<!DOCTYPE a [<!ENTITY b "c">]><ComputeSanitizerOutput>&b;</ComputeSanitizerOutput>',
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><ComputeSanitizerOutput/>',
        b"<html><body/></html>",
        b"<ComputeSanitizerOutput>" + b"<a>" * 40,
        b"\xff\xfe\x00",
    ],
)
def test_a_file_that_is_not_whole_or_not_the_tools_is_refused(content: bytes) -> None:
    assert saved_file.parse(content).complaint


@given(st.binary(max_size=200) | st.integers(0, len(PRECISE)).map(lambda n: PRECISE[:n].encode()))
def test_no_xml_raises(content: bytes) -> None:
    saved = saved_file.parse(content)
    assert saved.complaint or content.strip().endswith(b">")


@given(st.lists(st.sampled_from(PRECISE.split(">")), max_size=30))
def test_no_shuffled_xml_raises(parts: list[str]) -> None:
    saved = saved_file.parse(("<ComputeSanitizerOutput>" + ">".join(parts)).encode())
    assert all(record.kind for record in saved.records)


def test_the_xml_fills_what_the_text_left_out() -> None:
    text = CLEAN.replace(
        "========= ERROR SUMMARY: 0 errors",
        "========= Invalid __global__ read of size 4 bytes\n"
        "=========     at gather+0x40\n"
        "=========     by thread (5,0,0) in block (1,2,0)\n"
        "=========     Access to 0x7f0000001000 is out of bounds\n"
        "=========\n========= ERROR SUMMARY: 1 error",
    )
    records, outcome = parse(text)
    assert records[0].file is None
    saved = saved_file.Saved(saved_file.parse(PRECISE.encode()).records[:1])
    reading = together(records, outcome, saved)
    assert (reading.records[0].file_line, reading.records[0].reason) == (12, "out of bounds")
    assert reading.notes == ()


def test_a_clean_text_beside_an_xml_with_records_is_not_clean() -> None:
    records, outcome = parse(CLEAN)
    reading = together(records, outcome, saved_file.parse(PRECISE.encode()))
    assert reading.outcome.verdict == "unknown"
    assert weigh("memcheck", "2026.4", reading, DONE).status is Status.UNKNOWN


def test_a_clean_text_needs_no_xml_but_not_a_broken_one(tmp_path: Path) -> None:
    files = Files.of(tmp_path)
    files.log.write_text(CLEAN)
    assert weigh("memcheck", "2026.4", read(files), DONE).status is Status.CLEAN
    files.xml.write_text("<ComputeSanitizerOutput><rec")
    assert weigh("memcheck", "2026.4", read(files), DONE).status is Status.UNKNOWN


@given(st.binary(max_size=400))
def test_no_text_raises_and_none_without_header_is_clean(content: bytes) -> None:
    records, outcome = parse(content.decode(errors="replace"))
    weighed = weigh("memcheck", "2026.4", together(records, outcome, saved_file.Saved()), DONE)
    assert weighed.status is not Status.CLEAN


@given(st.lists(st.sampled_from([*CLEAN.splitlines(), "=========     by thread (1,0,0)", "x"])))
def test_clean_only_with_header_and_summary(lines: list[str]) -> None:
    records, outcome = parse("\n".join(lines))
    weighed = weigh("memcheck", "2026.4", together(records, outcome, saved_file.Saved()), DONE)
    needed = set(CLEAN.splitlines())
    assert weighed.status is not Status.CLEAN or needed <= set(lines)


def written() -> str:
    out = io.StringIO()
    writer = journal.Writer(out)
    writer.tensor("slots", 4096, 8, 8, (4096, 8191))
    writer.launch(0, "kv_write", "kv_write", None, [0, -1])
    writer.ended(0)
    writer.complete()
    return out.getvalue()


def test_a_journal_is_read_back() -> None:
    read_ = journal.parse(written().encode())
    assert read_.placed == (Placed("slots", 4096, 8, 8, (4096, 8191)),)
    assert [(one.index, one.ended, one.requests) for one in read_.launched] == [(0, True, (0, -1))]
    assert (read_.complete, read_.complaint) == (True, "")


@given(st.integers(0, len(written()) - 1))
def test_a_journal_cut_anywhere_is_not_whole(at: int) -> None:
    read_ = journal.parse(written()[:at].encode())
    assert not read_.complete
    assert read_.complaint


@pytest.mark.parametrize(
    "line",
    [
        {"complete": 3},
        {"ended": 7},
        {"launch": 0, "op": "x", "entry": "x", "step": None, "requests": []},
        {"tensor": "t", "address": -1, "elements": 1, "itemsize": 1, "reach": [0, 1]},
        {"tensor": "t", "address": 0, "elements": 1, "itemsize": 1, "reach": [0]},
        [1],
        "complete",
    ],
)
def test_a_line_that_does_not_fit_spoils_the_journal(line: Any) -> None:
    *lines, mark = written().splitlines()
    text = "\n".join([*lines, json.dumps(line), mark]) + "\n"
    assert not journal.parse(text.encode()).complete


def test_700_and_719_are_one_under_memcheck_only() -> None:
    assert same_error(700, 719, "memcheck")
    assert not same_error(700, 719, "plain")
    assert not same_error(700, 716, "memcheck")


def test_records_of_the_other_tools_are_findings() -> None:
    text = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at k(int *)+0x90 in /a/kernels/k/kernel.cu:41
=========     and Read access at k(int *)+0x100 in /a/kernels/k/kernel.cu:51 [508 hazards]
=========
========= Uninitialized __global__ memory read of size 4 bytes
=========     at k(int *)+0x70 in /a/kernels/k/kernel.cu:44
=========     by thread (31,0,0) in block (1,0,0)
=========     Address 0x10fc
=========
========= Barrier error detected. Divergent thread(s) in block.
=========     at k(int *)+0xf0 in /a/kernels/k/kernel.cu:79
=========     by thread (37,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 3 errors
"""
    records, outcome = parse(text)
    placed = (Placed("x", 0x1000, 64, 4, (0x1000, 0x10FF)),)
    reading = together(records, outcome, saved_file.Saved(complaint="none", missing=True))
    weighed = weigh("racecheck", "2026.4", reading, Journal(placed, complete=True))
    found = [(f.kind, f.tensor, f.elements, f.source and f.source.line) for f in weighed.findings]
    assert found == [
        (Kind.SHARED_RACE, None, None, 41),
        (Kind.UNINITIALISED_READ, "x", (63, 63), 44),
        (Kind.DIVERGENT_BARRIER, None, None, 79),
    ]


def test_an_outcome_of_errors_without_records_is_unknown() -> None:
    outcome = Outcome("errors", "2 reported", True, 2)
    reading = together([], outcome, saved_file.Saved(complaint="none", missing=True))
    assert weigh("memcheck", "2026.4", reading, DONE).status is Status.UNKNOWN


def test_an_address_in_nobodys_reach_is_not_charged_to_a_neighbour() -> None:
    record = Record(
        "access", "Invalid", 1, space="global", direction="read", bytes=4, address="0x9000"
    )
    outcome = Outcome("errors", "1 reported", True, 1)
    placed = (Placed("x", 0x1000, 64, 4, (0x1000, 0x10FF)),)
    reading = together([record], outcome, saved_file.Saved(complaint="none", missing=True))
    (finding,) = weigh("memcheck", "2026.4", reading, Journal(placed, complete=True)).findings
    assert (finding.kind, finding.tensor, finding.elements, finding.launch) == (
        Kind.OUT_OF_BOUNDS_READ,
        None,
        None,
        -1,
    )
