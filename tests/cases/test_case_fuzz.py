"""No text can make the loader fail otherwise than by a CaseError that is fit to print."""

from __future__ import annotations

from pathlib import Path

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specrepro.repro.case import load_case
from specrepro.repro.errors import CaseError

FUZZ = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
WORDS = "a b: - [ ] { } , ? : & * ! | > ' % @ ` # --- ... << = ~ no 1 .inf &a *a !!str %YAML %TAG"
MARKS = (" ", "\n", "\n  ", "\t", "\r", '"', "\\", "\\x", "\\U", "\x85", "\u2028", "\ufeff", "é")
TOKENS = st.sampled_from((*WORDS.split(), *MARKS))
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


def explained(path: Path, scenarios) -> None:
    """Loads, or is refused with an error that is fit to print; anything else escapes."""
    try:
        load_case(path, scenarios)
    except CaseError as error:
        told = error
    else:
        return
    assert all(text.isprintable() for text in (str(told), told.key or "", told.hint or ""))
    assert len(told.message) < 1500


@FUZZ
@given(content=st.binary(max_size=200))
def test_bytes(content: bytes, write, scenarios) -> None:
    explained(write(content), scenarios)


@FUZZ
@given(text=st.lists(TOKENS, max_size=30).map("".join) | st.text(max_size=60))
def test_text_made_of_yaml_tokens(text: str, write, scenarios) -> None:
    explained(write(text.encode("utf-8", "surrogatepass")), scenarios)


@FUZZ
@given(data=st.data())
def test_a_good_case_with_one_value_replaced(data, good, write, scenarios) -> None:
    case = yaml.safe_load(good)
    at = case
    while True:
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if not isinstance(at[key], (dict, list)) or data.draw(st.booleans()):
            break
        at = at[key]
    at[key] = data.draw(PLAIN)
    explained(write(yaml.safe_dump(case, allow_unicode=True)), scenarios)


@FUZZ
@given(data=st.data())
def test_a_good_case_with_a_piece_of_text_replaced(data, good, write, scenarios) -> None:
    start = data.draw(st.integers(0, len(good)))
    end = data.draw(st.integers(start, min(len(good), start + 12)))
    piece = data.draw(st.lists(TOKENS, max_size=4).map("".join) | st.text(max_size=6))
    text = good[:start] + piece + good[end:]
    explained(write(text.encode("utf-8", "surrogatepass")), scenarios)
