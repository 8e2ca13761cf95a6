"""Measurements: both orders of their fields, wrapped lines, other engines; what is kept of many."""

from __future__ import annotations

import pytest

from specrepro.repro.diagnose.facts import Value
from specrepro.repro.diagnose.read import read_text
from specrepro.repro.diagnose.reading.keeper import FIRST_KEPT, LAST_KEPT

OLD = (
    "SpecDecoding metrics: Draft acceptance rate: 43.2%, Mean acceptance length: 3.16, Accepted: "
    "1216 tokens, Drafted: 2815 tokens, Per-position acceptance rate: 0.844, 0.600, 0.378"
)
NEW = (
    "SpecDecoding metrics: Mean acceptance length: 3.16, Accepted throughput: 12.30 tokens/s, "
    "Drafted throughput: 28.10 tokens/s, Accepted: 1216 tokens, Drafted: 2815 tokens, "
    "Per-position acceptance rate: 0.844, 0.600, 0.378, Avg Draft acceptance rate: 43.2%"
)
LOAD = (
    "Engine 000: Avg prompt throughput: 1,024.5 tokens/s, "
    "Avg generation throughput: 55.0 tokens/s, Running: 5 reqs, Waiting: 2 reqs, GPU KV cache "
    "usage: 21.4%, Prefix cache hit rate: 80.1%"
)


def values(text: str, kind: str) -> dict[str, Value]:
    found = read_text("a.log", text).of(kind)
    assert len(found) == 1, found
    return dict(found[0].values)


@pytest.mark.parametrize("line", [OLD, NEW])
def test_both_orders_of_the_speculation_line_say_the_same(line: str) -> None:
    assert values(line, "spec_metrics") == {
        "mean_acceptance_length": 3.16,
        "per_position": (0.844, 0.6, 0.378),
        "accepted": 1216,
        "drafted": 2815,
        "acceptance_rate": 43.2,
    }


@pytest.mark.parametrize("line", [OLD, NEW, LOAD])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_wrapped_line_of_measurements_is_whole(line: str, width: int) -> None:
    words, rows = line.split(" "), [""]
    for word in words:
        if len(rows[-1]) + len(word) > width:
            rows.append("")
        rows[-1] = f"{rows[-1]} {word}".strip()
    kind = "load" if line is LOAD else "spec_metrics"
    assert values("\n".join([*rows, ""]), kind) == values(line, kind)


def test_nothing_drafted_is_unknown_not_zero() -> None:
    line = NEW.replace("3.16", "nan").replace("43.2%", "nan%")
    found = values(line, "spec_metrics")
    assert (found["mean_acceptance_length"], found["acceptance_rate"]) == (None, None)


def test_an_acceptance_of_nothing_is_one_token_a_step() -> None:
    line = NEW.replace("3.16", "1.00").replace("0.844, 0.600, 0.378", "0.000, 0.000, 0.000")
    found = values(line, "spec_metrics")
    assert (found["mean_acceptance_length"], found["per_position"]) == (1.0, (0.0, 0.0, 0.0))


def test_the_load_line_old_and_new() -> None:
    assert values(LOAD, "load") == {
        "running": 5,
        "waiting": 2,
        "kv_usage": 21.4,
        "prefix_hit_rate": 80.1,
        "prompt_throughput": 1024.5,
        "generation_throughput": 55.0,
        "preemptions": None,
        "corrupted": None,
    }
    newer = LOAD.replace("GPU KV", "Preemptions: 7, CUDA KV").replace(
        "80.1%", "80.1%, Corrupted: 3 reqs"
    )
    found = values(newer, "load")
    assert (found["preemptions"], found["corrupted"], found["kv_usage"]) == (7, 3, 21.4)


def test_requests_without_a_token_three_times_in_a_row_are_a_hang() -> None:
    still = LOAD.replace("1,024.5", "0.0").replace("55.0", "0.0")
    reads = LOAD.replace("55.0", "0.0")
    other = still.replace("Engine 000", "Engine 001")
    empty = still.replace("Running: 5", "Running: 0")

    def hangs(*rows: str) -> list[tuple[Value, int, int]]:
        found = read_text("a.log", "\n".join(rows)).of("hang")
        return [(fact.values["running"], fact.line, fact.count) for fact in found]

    assert hangs(still, still, still, still) == [(5, 3, 2)]
    assert hangs(still, other, still, other, still) == [(5, 5, 1)]
    # prompts that are still read, a token in between, no requests at all
    assert (
        hangs(reads, reads, reads) == hangs(still, still, LOAD, still) == hangs(*[empty] * 4) == []
    )


def test_the_external_hit_rate_is_not_the_prefix_caches() -> None:
    line = LOAD.replace("Prefix cache", "External prefix cache")
    assert values(line, "load")["prefix_hit_rate"] is None


def test_sglangs_decode_line_gives_load_and_acceptance() -> None:
    line = (
        "[2026-08-24 10:00:00 TP0] Decode batch. #running-req: 3, #token: 99, token usage: 0.25, "
        "accept len: 2.50, accept rate: 0.50, gen throughput (token/s): 12.5, #queue-req: 1"
    )
    load, spec = values(line, "load"), values(line, "spec_metrics")
    assert (load["running"], load["waiting"], load["kv_usage"]) == (3, 1, 25.0)
    assert (spec["mean_acceptance_length"], spec["acceptance_rate"]) == (2.5, 50.0)


def test_llama_cpps_acceptance_line() -> None:
    line = "draft acceptance rate = 0.35800 (  358 accepted /  1000 generated)"
    found = values(line, "spec_metrics")
    assert (found["accepted"], found["drafted"]) == (358, 1000)
    assert found["acceptance_rate"] == pytest.approx(35.8)


def test_of_many_measurements_first_last_least_and_greatest_are_kept() -> None:
    count, low, high = 5000, 2000, 3000
    rows = []
    for n in range(count):
        usage = 0.5 if n == low else 99.5 if n == high else 50.0
        rows.append(LOAD.replace("21.4%", f"{usage}%"))
    reading = read_text("a.log", "\n".join(rows))
    kept = [fact.line for fact in reading.of("load")]
    assert kept[:FIRST_KEPT] == list(range(1, FIRST_KEPT + 1))
    assert kept[-LAST_KEPT:] == list(range(count - LAST_KEPT + 1, count + 1))
    assert {low + 1, high + 1} <= set(kept)
    assert reading.left_out["load"] == count - len(kept)
    summary = next(f for f in reading.of("metrics_summary") if f.values["field"] == "kv_usage")
    assert (summary.values["minimum"], summary.values["maximum"]) == (0.5, 99.5)
    assert (summary.values["lines"], summary.last_line) == (count, count)


def test_the_last_measurement_before_a_failure_is_kept_however_long_the_log_goes_on() -> None:
    crash = "RuntimeError: CUDA error: an illegal memory access was encountered"
    rows = [*[LOAD] * 1000, crash, *[LOAD] * 1000]
    reading = read_text("a.log", "\n".join(rows))
    assert 1000 in [fact.line for fact in reading.of("load")]


def test_the_summary_of_a_hundred_thousand_different_failures_is_bounded() -> None:
    rows = (f"ValueError: request {n} was refused" for n in range(20_000))
    reading = read_text("a.log", "\n".join(rows))
    assert len(reading.of("python_exception")) == FIRST_KEPT + LAST_KEPT
    assert reading.left_out["python_exception"] == 20_000 - FIRST_KEPT - LAST_KEPT
