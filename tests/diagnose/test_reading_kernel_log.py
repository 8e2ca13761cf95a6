"""Xids: the driver's grammar in its ages, fields of bodies, the catalog."""

from __future__ import annotations

import pytest

from specrepro.repro.diagnose.facts import Certainty
from specrepro.repro.diagnose.read import read_text
from specrepro.repro.watch.xid import CLASSES, Xid, catalog, read_sxid, read_xid

PAGE_FAULT = (
    "MMU Fault: ENGINE GRAPHICS GPC3 GPCCLIENT_T1_5 faulted @ 0x7f12_34567000. "
    "Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"
)


def xid(message: str) -> Xid:
    found = read_xid(message)
    assert found is not None, message
    return found


@pytest.mark.parametrize(
    ("message", "code", "bus", "pid", "name", "body"),
    [
        (
            "NVRM: Xid (PCI:0000:0a:00): 43, pid=7, name=python3, Ch 00000010",
            43,
            "0000:0a:00",
            7,
            "python3",
            "Ch 00000010",
        ),
        (
            "NVRM: Xid (PCI:0000:0a:00.0): 43, pid=7, Ch 00000010",
            43,
            "0000:0a:00.0",
            7,
            None,
            "Ch 00000010",
        ),
        (
            "NVRM: Xid (PCI:0000:0a:00): 43, pid='<unknown>', name=<unknown>, Ch 00000010",
            43,
            "0000:0a:00",
            None,
            None,
            "Ch 00000010",
        ),
        (
            "NVRM: Xid (PCI:0000:0a:00 GPU-I:02 GPU-CI:01): 43, pid=7, name=a b, Ch 1",
            43,
            "0000:0a:00",
            7,
            "a b",
            "Ch 1",
        ),
        (
            "NVRM: Xid (0000:03:00): 8, Channel 00000001",
            8,
            "0000:03:00",
            None,
            None,
            "Channel 00000001",
        ),
        (
            "NVRM: Xid (PCI:00000000:0a:00): 79, GPU has fallen off the bus.",
            79,
            "00000000:0a:00",
            None,
            None,
            "GPU has fallen off the bus.",
        ),
        (
            "[12.3] NVRM: Xid (PCI:0000:0a:00): 62, 0a0b 0c0d",
            62,
            "0000:0a:00",
            None,
            None,
            "0a0b 0c0d",
        ),
        (
            "NVRM: Xid (PCI:0000:0a:00): 54321, pid=7, name=x, new",
            54321,
            "0000:0a:00",
            7,
            "x",
            "new",
        ),
        ("NVRM: Xid (PCI:0000:0a:00): 43", 43, "0000:0a:00", None, None, ""),
    ],
)
def test_the_prefix_grammar(
    message: str, code: int, bus: str, pid: int | None, name: str | None, body: str
) -> None:
    found = xid(message)
    assert (found.code, found.bus, found.pid, found.name, found.body) == (
        code,
        bus,
        pid,
        name,
        body,
    )


def test_the_body_of_a_page_fault() -> None:
    found = xid(f"NVRM: Xid (PCI:0000:0a:00): 31, pid=7, name=x, Ch 00000010, intr 0. {PAGE_FAULT}")
    assert (found.engine, found.client) == ("GRAPHICS", "GPC3 GPCCLIENT_T1_5")
    assert (found.fault_type, found.access, found.address) == ("PDE", "READ", "0x7f1234567000")
    assert found.fault == "illegal_access"
    hub = xid(
        "NVRM: Xid (PCI:0000:0a:00): 31, pid=7, name=x, channel 0x00000010, intr 00000000. MMU "
        "Fault: ENGINE CE2 HUBCLIENT_CE0 faulted @ 0x0_00000000. Fault is of type FAULT_PTE "
        "ACCESS_TYPE_VIRT_WRITE"
    )
    assert (hub.engine, hub.client, hub.access) == ("CE2", "HUBCLIENT_CE0", "WRITE")


@pytest.mark.parametrize(
    ("body", "detail", "fault"),
    [
        (
            "Graphics SM Warp Exception on (GPC 1, TPC 2, SM 1): Out Of Range Address",
            "Out Of Range Address",
            "illegal_access",
        ),
        (
            "Graphics SM Warp Exception on (GPC 1, TPC 2): Misaligned Address",
            "Misaligned Address",
            "misaligned_access",
        ),
        ("Graphics SM Warp Exception on (GPC 1, TPC 2): MMU Fault", "MMU Fault", "illegal_access"),
        (
            "Graphics SM Warp Exception on (GPC 1, TPC 2): Illegal Instruction Encoding",
            "Illegal Instruction Encoding",
            "illegal_instruction",
        ),
        ("Graphics Exception: ESR 0x404000=0x80000002", "ESR 0x404000=0x80000002", None),
        ("something else", None, None),
    ],
)
def test_the_body_of_a_graphics_exception(body: str, detail: str | None, fault: str | None) -> None:
    found = xid(f"NVRM: Xid (PCI:0000:0a:00): 13, pid=7, name=x, {body}")
    assert (found.detail, found.fault) == (detail, fault)


def test_a_removed_channel_says_what_caused_it() -> None:
    message = "NVRM: Xid (PCI:0000:0a:00): 45, pid=7, name=x, Ch 00000008 caused by previous Xid 31"
    assert xid(message).caused_by == 31


@pytest.mark.parametrize(
    "text",
    [
        "Xid 31 is a page fault",
        "| 31 | GPU memory page fault |",
        "NVRM: Xid errors are listed below",
        "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal",
        "",
    ],
)
def test_talk_of_xids_is_none(text: str) -> None:
    assert read_xid(text) is None


def test_a_switch_reports_sxids() -> None:
    line = "[1.5] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 3"
    assert read_sxid(line) == (12028, "0000:c1:00.0", "Non-fatal, Link 3")
    reading = read_text("dmesg.txt", line)
    assert [fact.values["code"] for fact in reading.of("sxid")] == [12028]
    assert reading.of("xid") == []


def test_the_catalog_is_whole_and_says_who_is_to_act() -> None:
    rows = catalog()
    assert {row.kind for row in rows.values()} <= set(CLASSES)
    assert all(row.mnemonic and row.meaning and row.action and row.source for row in rows.values())
    kinds = {31: "application", 13: "application", 45: "consequence", 43: "consequence"}
    kinds |= {48: "hardware", 79: "hardware", 94: "hardware", 119: "driver", 154: "information"}
    assert {code: rows[code].kind for code in kinds} == kinds


def test_a_row_that_was_not_checked_says_so() -> None:
    rows = catalog()
    assert {code for code, row in rows.items() if "unverified" in row.source} == {8, 11, 25, 80}
    partly = {code for code, row in rows.items() if "mnemonic was not checked" in row.source}
    assert partly == {145, 146, 147, 148, 150}
    assert rows[31].source == "NVIDIA Xid catalog"


def test_unknown_codes_are_kept_and_called_unknown() -> None:
    line = "[1.5] NVRM: Xid (PCI:0000:0a:00): 175, pid=7, name=x, body"
    fact = read_text("dmesg.txt", line).of("xid")[0]
    assert (fact.values["code"], fact.values["class"], fact.values["mnemonic"]) == (
        175,
        "unknown",
        None,
    )


def test_a_line_that_a_terminal_wrapped_is_read_whole() -> None:
    head, tail = PAGE_FAULT.split("GPCCLIENT_T1_5 ")
    text = (
        "[1.5] NVRM: Xid (PCI:0000:0a:00): 31, pid=7, name=x, Ch 1, intr 0. "
        f"{head}GPCCLIENT_T1_5\n{tail}\n[2.0] NVRM: something\n"
    )
    fact = read_text("dmesg.txt", text).of("xid")[0]
    assert (fact.values["access"], fact.values["address"]) == ("READ", "0x7f1234567000")
    assert (fact.line, fact.certainty) == (1, Certainty.OBSERVED)


def test_a_cut_line_keeps_what_it_has() -> None:
    text = "[1.5] NVRM: Xid (PCI:0000:0a:00): 31, pid=7, name=x, Ch 1, intr 0. MMU Fault: ENGINE GR"
    fact = read_text("dmesg.txt", text).of("xid")[0]
    assert (fact.values["code"], fact.values["access"], fact.values["address"]) == (31, None, None)


def test_what_the_kernel_says_besides() -> None:
    text = """[1.0] NVRM: GPU at PCI:0000:0a:00: GPU-11111111-2222-3333-4444-555555555555
[2.0] NVRM: krcWatchdog_IMPL: RC watchdog: GPU is probably locked!  Notify Timeout Seconds: 7
[3.0] NVRM: The NVIDIA GPU 0000:0a:00.0 has fallen off the bus and is not responding.
[4.0] pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received
"""
    reading = read_text("dmesg.txt", text)
    assert [fact.values["what"] for fact in reading.of("kernel_log")] == [
        "watchdog",
        "bus_loss",
        "aer",
    ]
    assert str(reading.of("gpu")[0].values["name"]).startswith("GPU-1111")
