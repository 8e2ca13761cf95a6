"""Facts are what the vocabulary says, printable, short, without secrets; nothing grows with "
"a log."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from pathlib import Path

import pytest

from specrepro.repro.diagnose.facts import TEXT_LENGTH, Certainty
from specrepro.repro.diagnose.read import read, read_text
from specrepro.repro.diagnose.reading.registry import PARSERS, literals, parsers_of, search
from specrepro.repro.diagnose.vocabulary import FAILURES, FAULTS, FIRST, KINDS

_SPEC = importlib.util.spec_from_file_location(
    "fuzz_reading", Path(__file__).with_name("fuzz_reading.py")
)
assert _SPEC
assert _SPEC.loader
fuzz = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(fuzz)
SEEDS: tuple[str, ...] = fuzz.SEEDS


def test_every_seed_gives_facts_of_the_vocabulary() -> None:
    seen: set[str] = set()
    for seed in SEEDS:
        reading = read_text("a.log", seed)
        assert fuzz.broken_rules(reading) == []
        assert reading.facts, seed
        seen |= {fact.kind for fact in reading.facts}
    # claims need prose
    seen |= {fact.kind for fact in read_text("a.md", "# Bug\nIt hangs\n").facts}
    assert set(KINDS) - seen == set()


def test_failure_kinds_are_kinds() -> None:
    assert set(KINDS) > FAILURES > FIRST


def test_faults_in_facts_are_the_named_ones() -> None:
    for seed in SEEDS:
        for fact in read_text("a.log", seed).facts:
            assert fact.values.get("fault") in {None, *FAULTS}


@pytest.mark.parametrize(
    "secret",
    [
        "vllm serve m --api-key abcdef123456 --max-num-seqs 4",
        "docker run -e HF_TOKEN=hf_abcdef123456 vllm/vllm-openai:v0.27.1 --model m",
        "docker run -e VLLM_API_KEY=abcdef123456 vllm/vllm-openai:v0.27.1 --model m",
        "non-default args: {'api_key': ['abcdef123456'], 'max_num_seqs': 4}",
        "Authorization: Bearer abcdef123456 CUDA error: an illegal memory access was encountered",
    ],
)
def test_no_secret_gets_into_a_fact(secret: str) -> None:
    reading = read_text("a.log", secret)
    assert reading.facts
    assert "abcdef123456" not in str(reading)


def test_words_about_tokens_are_no_secrets() -> None:
    text = "CUDA error: misaligned address, token throughput, num_tokens: 123456789, secretary"
    assert read_text("a.log", text).of("cuda_error")[0].text == text


def test_control_characters_of_the_log_get_into_no_text() -> None:
    reading = read_text(
        "a.log", "CUDA error: an illegal \x1b]0;x\x07 memory access\x9b31m \u202e\n"
    )
    fact = reading.of("cuda_error")[0]
    assert fact.text.isprintable()
    assert "\\u202e" in fact.text


def test_a_long_line_is_cut_with_an_ellipsis() -> None:
    fact = read_text("a.log", "CUDA error: misaligned address " + "x" * 5000).of("cuda_error")[0]
    assert (len(fact.text), fact.text[-1]) == (TEXT_LENGTH, "…")


def test_every_trigger_is_found_by_the_search() -> None:
    for parser in PARSERS:
        for trigger in parser.triggers:
            assert any(literal in trigger.encode() for literal in literals()), trigger


def test_both_ways_of_finding_a_lines_parsers_find_the_same() -> None:
    for content in fuzz.inputs(seed=2, count=300):
        for line in content.decode("utf-8", "replace").split("\n"):
            plain = {n for n, p in enumerate(PARSERS) if any(t in line for t in p.triggers)}
            assert parsers_of(pure=True)(line) == parsers_of()(line) == plain


def test_without_the_fast_search_a_log_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n".join(SEEDS)
    fast = read_text("a.log", text)
    # None in sys.modules is how Python itself says that a module cannot be imported
    monkeypatch.setitem(sys.modules, "ahocorasick_rs", None)
    for cached in (search, parsers_of):
        cached.cache_clear()
    try:
        assert read_text("a.log", text) == fast
    finally:
        for cached in (search, parsers_of):
            cached.cache_clear()


def test_several_files_keep_their_facts_apart(tmp_path: Path) -> None:
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text("CUDA error: misaligned address\n", encoding="utf-8")
    reading = read([tmp_path / "a.log", tmp_path / "b.log"])
    assert [fact.source for fact in reading.of("cuda_error")] == [0, 1]
    assert [Path(source.name).name for source in reading.sources] == ["a.log", "b.log"]
    assert [incident.source for incident in reading.incidents] == [0, 1]


def test_facts_come_in_the_order_of_their_lines() -> None:
    text = "\n".join(SEEDS)
    lines = [f.line for f in read_text("a.log", text).facts if f.kind != "metrics_summary"]
    assert lines == sorted(lines)


def test_records_are_frozen() -> None:
    fact = read_text("a.log", "CUDA error: misaligned address").facts[0]
    assert fact.certainty is Certainty.OBSERVED
    with pytest.raises(dataclasses.FrozenInstanceError):
        fact.line = 2  # type: ignore[misc]


def test_twenty_thousand_broken_inputs_break_no_rule() -> None:
    failures = [
        (content, found)
        for content in fuzz.inputs(seed=1, count=20_000)
        if (found := fuzz.broken_rules(read_text("a", content.decode("utf-8", "surrogateescape"))))
    ]
    assert failures == []
