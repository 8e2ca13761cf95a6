import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.escape import QUOTE_LENGTH, printable, quoted


@given(st.text())
def test_nothing_that_acts_on_a_terminal_is_left(text: str) -> None:
    shown = printable(text)
    shown.encode()  # no lone surrogates
    assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(st.text(st.characters(categories=("L", "N", "P", "S"))))
def test_text_without_controls_is_kept(text: str) -> None:
    assert printable(text) == text


@given(st.text(st.characters(categories=("Cc", "L", "Cs", "Cf")).filter(lambda c: c != "\\")))
def test_the_original_can_be_read_back(text: str) -> None:
    read = printable(text).encode("raw_unicode_escape").decode("unicode_escape")
    assert read == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("one\ntwo\r", "one\\ntwo\\r"),
        ("\x9b2J", "\\x9b2J"),
        ("\u202eevil", "\\u202eevil"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\udcff", "\\udcff"),
        ("größer ≤ ▶", "größer ≤ ▶"),
    ],
)
def test_examples(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text())
def test_a_quotation_is_short(text: str) -> None:
    shown = quoted(text)
    assert len(shown) <= QUOTE_LENGTH + 2
    assert (shown[0], shown[-1]) == ("`", "`")
    assert shown.isprintable()
