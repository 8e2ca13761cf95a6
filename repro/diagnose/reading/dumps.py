"""What vLLM dumps when a step fails: the scheduler's output and its stats."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..facts import Value
from .line import Following, Found, Line, Parser, State, joined
from .patterns import lazily

# Requests that are named; the rest is a number.
NAMED = 8
_TOTAL = lazily(r"total_num_scheduled_tokens=(\d{1,12})")
_SCHEDULED = lazily(r"\bnum_scheduled_tokens=\{([^}]{0,60000})\}")
_DRAFTS = lazily(r"scheduled_spec_decode_tokens=\{([^}]{0,60000})\}")
_COMPUTED = lazily(r"num_computed_tokens=\[?([\d, ]{1,20000})")
_NAME = lazily(r"'([^']{1,80})': ?(\d{1,9})")
_STATS = {
    "running": lazily(r"num_running_reqs=(\d{1,9})"),
    "waiting": lazily(r"num_waiting_reqs=(\d{1,9})"),
    "kv_usage": lazily(r"kv_cache_usage=([\d.e\-]{1,30})"),
}


def _output(line: Line, following: Following, _: State) -> Iterator[Found]:
    text = joined(line, following, 12)
    scheduled = _SCHEDULED.search(text)
    requests = _NAME.findall(scheduled[1]) if scheduled else []
    drafts = _DRAFTS.search(text)
    computed = [
        int(part)
        for found in _COMPUTED.finditer(text)
        for part in found[1].split(",")
        if part.strip().isdecimal()
    ]
    total = _TOTAL.search(text)
    placeholders = bool(drafts and re.search(r"\[-1\b", drafts[1]))
    new = "scheduled_new_reqs=" in text
    yield Found(
        "scheduler_dump",
        {
            "requests": len(requests) if scheduled else None,
            "scheduled_tokens": int(total[1]) if total else None,
            "placeholders": placeholders if drafts else None,
            "new_requests": text.count("NewRequestData(") if new else None,
            "longest": max(computed, default=None),
        },
    )
    for name, _tokens in requests[:NAMED]:
        yield Found("request", {"id": name, "state": "scheduled"}, text="")
    if placeholders:
        why = "[-1, …] stands for drafts in every asynchronous step"
        yield Found("false_clue", {"name": "placeholder_tokens", "why": why}, text="")


def _stats(line: Line, following: Following, _: State) -> Iterator[Found]:
    text = joined(line, following, 6)
    numbers = {name: pattern.search(text) for name, pattern in _STATS.items()}
    values: dict[str, Value] = {
        name: _number(name, found[1]) if found else None for name, found in numbers.items()
    }
    rest = (
        "prefix_hit_rate",
        "prompt_throughput",
        "generation_throughput",
        "preemptions",
        "corrupted",
    )
    if any(value is not None for value in values.values()):
        yield Found("load", {**values, **dict.fromkeys(rest)})


def _number(name: str, text: str) -> int | float | None:
    try:
        # usage is a fraction here
        return round(float(text) * 100, 3) if name == "kv_usage" else int(text)
    except ValueError:
        return None


PARSERS = (
    Parser(("SchedulerOutput(",), _output),
    Parser(("SchedulerStats(",), _stats),
)
