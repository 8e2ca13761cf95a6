"""The parts of a session: each a command of specrepro, or of its tests, and what is kept of it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands import Ended, ended
from compact import amiss, cases_of, doctor_of, tests_of, unwell, without_paths

HERE = Path(__file__).parent
SPECREPRO = [sys.executable, "-c", "from specrepro.cli import main; main()"]
LEAST = 5.0  # seconds without which nothing is begun
# One lane after the other, so that what is cut at the end is what others have shown.
LANES = (
    "plain",
    "memcheck",
    "coredump",
    "blocking",
    "racecheck",
    "initcheck",
    "synccheck",
)
TIME = "the time was over"


@dataclass(frozen=True, slots=True)
class Came:
    """What a part came to. ok: all of it came out as it must; None where that is not known. said:
    why, for a reader. cut: some of it was not begun, because the time was over."""

    ok: bool | None
    said: str = ""
    cut: bool = False


@dataclass(slots=True)
class Session:
    """Where the parts write, and until when they may run (of time.monotonic). cases: those to run;
    () for all that are shipped. rounds: of the benchmark."""

    out: Path
    scratch: Path
    until: float
    cases: tuple[str, ...] = ()
    rounds: int = 5

    def left(self, limit: float) -> float:
        return min(limit, self.until - time.monotonic())

    def write(self, name: str, record: Any) -> None:
        text = json.dumps(record, indent=1, allow_nan=False) + "\n"
        part = self.out / f".{name}.part"  # whoever ends us leaves no half a file
        part.write_text(text, encoding="utf-8")
        part.replace(self.out / f"{name}.json")

    def specrepro(self, *words: str, limit: float) -> Ended:
        """A command of specrepro with its JSON."""
        return ended([*SPECREPRO, *words, "--json"], self.left(limit))


def doctor(session: Session, limit: float) -> Came:
    """ok: False where no lane on a GPU can run, None where that was not told."""
    done = session.specrepro("doctor", limit=limit)
    record = done.json()
    if record is None:
        return Came(None, done.said)
    session.write("doctor", doctor_of(record))
    if record["gpu_lane"]:
        return Came(True)
    return Came(False, _no_lane(record))


def gone(session: Session) -> str:
    """Why no lane on a GPU can run any more; "" where one can, or nobody knows."""
    record = session.specrepro("doctor", limit=60.0).json()
    if record is None or record["gpu_lane"]:
        return ""
    return f"no lane on a GPU can run any more: {_no_lane(record)}"


def _no_lane(record: Mapping[str, Any]) -> str:
    said = next(str(c["said"]) for c in record["checks"] if c["name"] == "lanes")
    return said.rpartition("no GPU lane: ")[2]


def selftest(session: Session, limit: float) -> Came:
    within = f"{max(1.0, session.left(limit) - 5):.0f}"
    done = session.specrepro("selftest", "--within", within, limit=limit)
    record = done.json()
    if record is None:
        return Came(None, done.said)
    session.write("selftest", record)
    wrong = [f["about"] for f in record["faults"] if not all(c["ok"] for c in f["cells"])]
    absent = [i["name"] for i in record["instruments"] if not i["ran"]]
    said = [f"amiss: {', '.join(wrong)}"] if wrong else []
    said += [f"did not run: {', '.join(absent)}"] if absent else []
    return Came(bool(record["ok"]), "; ".join(said))


def tests(session: Session, limit: float) -> Came:
    report = session.scratch / "tests.xml"
    words = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", str(HERE), f"--junitxml={report}"]
    done = ended([*words, "-p", "no:cacheprovider"], session.left(limit))
    if not report.is_file():
        return Came(None, done.said)
    whole = done.status in (0, 1)  # all passed, or some failed; else it did not come to its end
    record = tests_of(report.read_bytes())
    session.write("tests", record)
    states = [one["state"] for one in record["tests"]]
    bad = [one["name"] for one in record["tests"] if one["state"] in ("failed", "error")]
    said = f"{states.count('passed')} passed, {states.count('skipped')} skipped"
    said += f"; failed: {', '.join(bad)}" if bad else ""
    ok = not bad and "passed" in states
    return Came(ok, said if whole else f"{said}; {done.said}", cut=not whole)


def cases(session: Session, limit: float) -> Came:
    """Every case in every lane that it lists, a run each; the file is there from the first on."""
    until = time.monotonic() + session.left(limit)
    listed = json.loads(ended([*SPECREPRO, "list", "--json"], session.left(60)).out)["cases"]
    runs: list[dict[str, Any]] = [
        {"case": one["id"], "lane": lane, "said": TIME, "trials": []}
        for lane in LANES
        for one in listed
        if lane in one["lanes"] and (not session.cases or one["id"] in session.cases)
    ]
    if not runs:
        return Came(None, f"no case is called {', '.join(session.cases)}")
    broken: list[dict[str, Any]] = []  # runs that ended by themselves, with no result
    for run in runs:
        session.write("cases", {"runs": runs})
        if (left := until - time.monotonic()) < LEAST:
            break
        words = ["run", run["case"], "--lane", "reference", "--lane", run["lane"]]
        words += ["--runs", str(session.scratch / "runs")]
        done = session.specrepro(*words, limit=left)
        if record := done.json():
            run |= {"said": "", **cases_of(record, run["lane"])}
            if any(unwell(trial) for trial in run["trials"]) and (why := gone(session)):
                for late in runs[runs.index(run) + 1 :]:
                    late["said"] = why
                break
            continue
        run["said"] = without_paths(done.said)
        broken += [run] if done.status is not None else []
    session.write("cases", {"runs": runs})
    ran = [one for one in runs if not one["said"]]
    wrong = [one for one in runs if one in broken or amiss(one)]
    said = f"{len(ran)} of {len(runs)} runs"
    said += f"; amiss: {_named(wrong)}" if wrong else ""
    left_out = len(ran) + len(broken) < len(runs)
    if not ran:
        return Came(None, said, cut=True)
    # a lane alone need not see what its case is about; one of them must
    shown = any(one["verdict"] == "REPRODUCED" for one in ran)
    said += "" if shown else "; no case was reproduced in any lane"
    return Came(shown and not wrong, said, cut=left_out)


def _named(runs: list[dict[str, Any]]) -> str:
    return ", ".join(f"{one['case']} in {one['lane']}" for one in runs)


def benchmark(session: Session, limit: float) -> Came:
    """What it takes to place a tensor, then what a trial takes in each lane."""
    file = session.out / "benchmark.json"
    placing = ended(
        [sys.executable, str(HERE / "placed_tensors.py"), "64"], session.left(limit / 2)
    )
    seconds = session.left(limit)
    script = HERE.parent / "benchmarks" / "gpu_lanes.py"
    words = [sys.executable, str(script), "--json", str(file), "--seconds", f"{seconds - 2:.0f}"]
    words += ["--rounds", str(session.rounds)]
    done = ended(words, seconds)
    if done.status != 0 or not file.is_file():
        return Came(None, done.said)
    record = json.loads(file.read_text(encoding="utf-8"))
    absent = record["not_measured"]
    if told := placing.json():
        record["placing"] = told
    else:
        absent["placing a tensor"] = without_paths(placing.said)
    session.write("benchmark", record)
    said = f"{record['rounds']} of {record['of_rounds']} rounds"
    return Came(True, f"{said}; not measured: {', '.join(absent)}" if absent else said)


# What matters most first: a cut costs least where it comes last.
PARTS: Mapping[str, Callable[[Session, float], Came]] = {
    "doctor": doctor,
    "selftest": selftest,
    "tests": tests,
    "cases": cases,
    "benchmark": benchmark,
}
