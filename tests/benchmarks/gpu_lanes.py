"""What a trial takes in each lane on a GPU, relative to `plain`, on the same kernels.

python tests/benchmarks/gpu_lanes.py [--json FILE] [--seconds N] [--rounds N]

The faulty and the fixed variant of one case, all lanes in every round, the median of the rounds.
`plain, one arena` puts the tensors beside each other, which is what memory costs where an overrun
is no fault; `plain` maps each apart. Exit status 125 where no lane on a GPU can run.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

SPECREPRO = [sys.executable, "-c", "from specrepro.cli import main; main()"]
CASE = "mtp-tail-overflow"
# A point of its own, so that no other faces are run, and the same work in all rows.
APART = ("--set", "seq_len=63")
ARENA = (*APART, "--set", "placement=neighbour")
VARIANTS = ("faulty", "fixed")
PLAIN, BESIDE = "plain", "plain, one arena"
NO_GPU = 125
UNTIMED = "the driver ends the process once it has written the dump"
SAID = (
    "Seconds that the trial's process worked, its start and the tool's not counted: the fault ends "
    "the faulty one early, so the fixed one says what a lane costs."
)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run said of one variant. seconds: None where the trial did not come to a result, or
    its process was ended before it could say how long it had worked."""

    status: str
    seconds: float | None
    reason: str


def asked() -> dict[str, list[str]]:
    """The words of each row."""
    lanes = (PLAIN, "blocking", "memcheck", "coredump")
    rows = {lane: ["--lane", lane, *APART] for lane in lanes}
    return rows | {BESIDE: ["--lane", PLAIN, *ARENA]}


def measured(words: list[str], runs: Path, limit: float) -> dict[str, Measured]:
    """One run, by variant; {} where it did not end within `limit` seconds."""
    command = [*SPECREPRO, "run", CASE, *words, "--json", "--runs", str(runs)]
    command += [word for name in VARIANTS for word in ("--variant", name)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        try:
            out, err = run.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGINT)  # it ends its trial, and the tool that runs it
            run.communicate()
            return {}
    if run.returncode not in (0, 1, 125):
        raise ValueError(f"{' '.join(words)}: status {run.returncode}: {err[-300:]}")
    (case,) = json.loads(out)["cases"]
    found: dict[str, Measured] = {}
    for trial in case["trials"]:
        decided = trial["status"] in ("fault", "clean")
        seconds = float(trial["seconds"]) or None if decided else None
        reason = str(trial["reason"])
        if decided and seconds is None:
            reason = UNTIMED
        found[trial["variant"]] = Measured(trial["status"], seconds, reason)
    return found


def table(found: Mapping[tuple[str, str], list[Measured]]) -> list[dict[str, Any]]:
    """A row a lane and variant that came to results. ratio: to `plain`, None where that has none.

    A row of which one trial ended otherwise than the others is of none: they are not the same work.
    """
    rows: list[dict[str, Any]] = []
    middle: dict[tuple[str, str], float] = {}
    for (lane, variant), all_ in found.items():
        times = [one.seconds for one in all_ if one.seconds is not None]
        if times and len({one.status for one in all_}) == 1:
            middle[lane, variant] = median(times)
            rows.append(
                {
                    "lane": lane,
                    "variant": variant,
                    "status": all_[0].status,
                    "trials": len(times),
                    "seconds": round(middle[lane, variant], 3),
                    "ratio": None,
                }
            )
    for row in rows:
        base = middle.get((PLAIN, row["variant"]))
        row["ratio"] = round(middle[row["lane"], row["variant"]] / base, 3) if base else None
    return rows


def why_not(found: Mapping[tuple[str, str], list[Measured]]) -> dict[str, str]:
    """Rows of which nothing is told, with the reason."""
    reasons: dict[str, str] = {}
    for (lane, variant), all_ in found.items():
        states = sorted({one.status for one in all_})
        name = f"{lane}, {variant}"
        if not any(one.seconds is not None for one in all_):
            reasons[name] = next((one.reason for one in all_ if one.reason), "no result")
        elif len(states) > 1:
            reasons[name] = f"its trials ended differently: {', '.join(states)}"
    absent = [lane for lane in asked() if all(key[0] != lane for key in found)]
    return reasons | dict.fromkeys(absent, "it came to no end within the time")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    until = time.monotonic() + options.seconds
    found: dict[tuple[str, str], list[Measured]] = defaultdict(list)
    rounds = 0
    longest = 0.0  # seconds of a round
    with tempfile.TemporaryDirectory() as runs:
        while rounds < options.rounds and time.monotonic() + longest < until:
            began = time.monotonic()
            for lane, words in asked().items():
                one_run = measured(words, Path(runs), max(1.0, until - time.monotonic()))
                for variant, one in one_run.items():
                    found[lane, variant].append(one)
            rounds += 1
            longest = max(longest, time.monotonic() - began)
            record = {
                "rows": table(found),
                "not_measured": why_not(found),
                "rounds": rounds,
                "of_rounds": options.rounds,
                "said": SAID,
            }
            if options.json is not None:  # after each round: whoever ends us leaves the others
                options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    rows = table(found)
    for row in rows:
        ratio = "–" if row["ratio"] is None else f"{row['ratio']:.2f}"
        print(f"{row['lane']:18} {row['variant']:8} {row['seconds']:8.3f} s  {ratio}")
    for lane, reason in why_not(found).items():
        print(f"{lane:18} not measured: {reason}", file=sys.stderr)
    return 0 if any(row["lane"] == PLAIN for row in rows) else NO_GPU


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
