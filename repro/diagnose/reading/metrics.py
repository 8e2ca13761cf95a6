"""Measurements that engines print while they serve: load and speculation."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..facts import Value
from .line import Following, Found, Line, Parser, State, joined, joined_to
from .patterns import lazily

# Load lines in a row without a token that are a sign of a hang.
STILL = 3
_NUMBER = r"(-?[\d.,]{1,20}|nan|inf)"
_LOAD = {
    "running": lazily(rf"Running: {_NUMBER} reqs"),
    "waiting": lazily(rf"(?:Waiting|Pending): {_NUMBER} reqs"),
    "kv_usage": lazily(rf"KV cache usage: {_NUMBER}%"),
    "prefix_hit_rate": lazily(rf", Prefix cache hit rate: (?:GPU: )?{_NUMBER}%"),
    "prompt_throughput": lazily(rf"Avg prompt throughput: {_NUMBER}"),
    "generation_throughput": lazily(rf"Avg generation throughput: {_NUMBER}"),
    "preemptions": lazily(rf"Preemptions: {_NUMBER}"),
    "corrupted": lazily(rf"Corrupted: {_NUMBER} reqs"),
}
_SGLANG_LOAD = {
    "running": lazily(rf"#running-req: {_NUMBER}"),
    "waiting": lazily(rf"#queue-req: {_NUMBER}"),
    "kv_usage": lazily(rf"token usage: {_NUMBER}"),
    "generation_throughput": lazily(rf"gen throughput \(token/s\): {_NUMBER}"),
}
_SPEC = {
    "mean_acceptance_length": lazily(rf"Mean acceptance length: {_NUMBER}"),
    "accepted": lazily(rf"Accepted: {_NUMBER} tokens"),
    "drafted": lazily(rf"Drafted: {_NUMBER} tokens"),
    # "Draft acceptance rate" up to 0.10.1, "Avg Draft acceptance rate" at the end after
    "acceptance_rate": lazily(rf"[Dd]raft acceptance rate: {_NUMBER}%?"),
}
_POSITIONS = lazily(r"Per-position acceptance rate: ([\d., ]{1,2000}|nan)")
_WHOLE = ("running", "waiting", "preemptions", "corrupted", "accepted", "drafted")


def measured(patterns: dict[str, re.Pattern[str]], text: str) -> dict[str, Value]:
    """The numbers of a line by name; None where it has none or "nan"."""
    values: dict[str, Value] = {}
    for name, pattern in patterns.items():
        found = pattern.search(text)
        values[name] = number(found[1], whole=name in _WHOLE) if found else None
    return values


def number(text: str, *, whole: bool = False) -> int | float | None:
    """A number as printed, commas between thousands allowed; None for nan and for none."""
    plain = text.replace(",", "").rstrip(".")
    try:
        value = float(plain)
    except ValueError:
        return None
    if value != value or value in (float("inf"), float("-inf")):
        return None
    return int(value) if whole and value.is_integer() else value


def _load(line: Line, following: Following, state: State) -> Iterator[Found]:
    if state.taken("load", line):
        return
    values = measured(_LOAD, line.text)
    # every field ends so; what ends otherwise was wrapped
    if not line.text.rstrip(" .").endswith(("%", "reqs")):
        text, last = joined_to(line, following, 3)
        values = measured(_LOAD, text)
        state.take("load", line, last)
    if any(value is not None for value in values.values()):
        yield Found("load", values)
        yield from _progress(line, values, state)


def _progress(line: Line, values: dict[str, Value], state: State) -> Iterator[Found]:
    """A hang, where an engine has shown requests and no token, none read either, STILL times."""
    engine = re.match(r"Engine \d{1,4}", line.text)
    key = (engine[0] if engine else "", *line.prefix.key)
    running, made, read = (
        values[name] for name in ("running", "generation_throughput", "prompt_throughput")
    )
    if not running or made != 0 or read != 0:
        state.idle.pop(key, None)
        return
    if len(state.idle) > 256:
        state.idle.clear()
    state.idle[key] = state.idle.get(key, 0) + 1
    if state.idle[key] >= STILL:
        yield Found("hang", {"sign": "no_progress", "seconds": None, "running": running})


def _spec(line: Line, following: Following, _: State) -> Iterator[Found]:
    text = line.text
    # the last field of either order must be there, or the line was wrapped
    if "acceptance rate" not in text or not _POSITIONS.search(text):
        text = joined(line, following, 4)
    values = measured(_SPEC, text)
    found = _POSITIONS.search(text)
    rates = [number(part) for part in found[1].split(",")] if found else []
    positions = tuple(rate for rate in rates if rate is not None)
    values["per_position"] = positions or None
    if "Speculative metrics" in text and isinstance(rate := values["acceptance_rate"], float):
        values["acceptance_rate"] = rate * 100  # V0 printed a fraction
    if any(value is not None for value in values.values()):
        yield Found("spec_metrics", values)


def _sglang(line: Line, _: Following, __: State) -> Iterator[Found]:
    values = {**dict.fromkeys(_LOAD), **measured(_SGLANG_LOAD, line.text)}
    if isinstance(usage := values["kv_usage"], int | float):
        values["kv_usage"] = usage * 100
    yield Found("load", values)
    if found := re.search(rf"accept len: {_NUMBER}", line.text):
        rate = re.search(rf"accept rate: {_NUMBER}", line.text)
        per_cent = number(rate[1]) if rate else None
        yield Found(
            "spec_metrics",
            {
                "mean_acceptance_length": number(found[1]),
                "per_position": None,
                "accepted": None,
                "drafted": None,
                "acceptance_rate": None if per_cent is None else per_cent * 100,
            },
        )


def _ggml(line: Line, _: Following, __: State) -> Iterator[Found]:
    found = re.search(
        r"draft acceptance(?: rate)? ?[=:] ?([\d.]{1,12}) ?\( {0,8}(\d{1,12}) accepted ?/ "
        r"{0,8}(\d{1,12}) generated",
        line.text,
    )
    if found:
        rate = number(found[1])
        yield Found(
            "spec_metrics",
            {
                "mean_acceptance_length": None,
                "per_position": None,
                "accepted": int(found[2]),
                "drafted": int(found[3]),
                "acceptance_rate": None if rate is None else rate * 100,
            },
        )


PARSERS = (
    Parser(("Avg prompt throughput", "KV cache usage:"), _load),
    Parser(("SpecDecoding metrics", "Speculative metrics:"), _spec),
    Parser(("#running-req:",), _sglang),
    Parser(("draft acceptance",), _ggml),
)
