"""What every instrument said of one fault, in a report."""

from __future__ import annotations

from typing import Any

from specrepro.repro.report.document import Document, Section
from specrepro.repro.report.html_page import html
from specrepro.repro.report.instruments import instrument_table, instruments
from specrepro.repro.report.markdown import markdown


def row(instrument: str, lane: str, agrees: bool | None, located: str, note: str = "") -> Any:
    return {
        "instrument": instrument,
        "lane": lane,
        "observed": "fault",
        "located": located,
        "agrees": agrees,
        "note": note,
    }


ROWS = [
    row("compute-sanitizer memcheck", "memcheck", False, "value_cache[0]", "<b>another</b> tensor"),
    row("Xid by kernel log", "plain", None, "page of key_cache"),
    row("Xid by kernel log", "blocking", None, "page of key_cache"),
]
CASE = {"join": {"rows": ROWS, "first_writer": "launch 3, kv_write"}}


def test_rows_that_say_the_same_are_one_and_name_their_lanes() -> None:
    assert [(one.name, one.agrees, one.said) for one in instruments(CASE)] == [
        ("compute-sanitizer memcheck", False, "value_cache[0] · <b>another</b> tensor"),
        ("Xid by kernel log (plain, blocking)", None, "page of key_cache"),
    ]


def test_a_contradiction_comes_first_and_harmless_in_markdown_and_html() -> None:
    section = Section("Evidence", list(instrument_table(CASE)))
    document = Document("run", (), "unknown", [section], "specrepro runs", "RUN", "1")
    text, page = markdown(document), html(document)
    assert text.index("memcheck") < text.index("Xid by kernel log")
    assert "**✗**" in text
    assert "kv_write" in text
    for written in (text, page):
        assert "<b>another" not in written


def test_without_a_device_there_is_no_such_table() -> None:
    assert list(instrument_table({"join": None})) == []
    assert list(instrument_table({})) == []
