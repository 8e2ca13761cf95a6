"""All that is done once a GPU is at hand, within one limit of time; run.sh starts it.

python tests/gpu/session.py --out DIR --seconds N --scratch DIR

Writes DIR/session.json and one small JSON file a part. A part ends at its own limit or at that of
all; what did not fit is said there, and nothing is taken for granted of it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from commands import Ended, ended
from compact import cases_of, doctor_of, tests_of

HERE = Path(__file__).parent
SPECREPRO = [sys.executable, "-c", "from specrepro.cli import main; main()"]
SCHEMA = "specrepro/gpu-session@1"
# Of each part, seconds at most, where all are run. The last has what the others left.
LIMITS = {"doctor": 20.0, "selftest": 125.0, "benchmark": 60.0, "tests": 100.0, "cases": 400.0}
LEAST = 5.0  # seconds without which a part is not begun
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
PACKAGES = ("numpy", "triton", "cuda-bindings", "nvidia-ml-py", "nvidia-cuda-sanitizer-api")
NO_GPU = 125


@dataclass(frozen=True, slots=True)
class Part:
    """What became of a part. state: done, cut (its time was over), failed or left out. ok: all of
    it came out as it must; None where that is not known. said: why, for a reader."""

    name: str
    state: str
    ok: bool | None
    seconds: float
    limit: float
    said: str = ""


@dataclass(slots=True)
class Session:
    """Where the parts write, and until when they may run (of time.monotonic)."""

    out: Path
    scratch: Path
    until: float

    def left(self, limit: float) -> float:
        return min(limit, self.until - time.monotonic())

    def write(self, name: str, record: Any) -> None:
        text = json.dumps(record, indent=1, allow_nan=False) + "\n"
        (self.out / f"{name}.json").write_text(text, encoding="utf-8")

    def specrepro(self, *words: str, limit: float) -> Ended:
        """A command of specrepro with its JSON."""
        return ended([*SPECREPRO, *words, "--json"], self.left(limit))


def doctor(session: Session, limit: float) -> tuple[bool | None, str]:
    done = session.specrepro("doctor", limit=limit)
    record = done.json()
    if record is None:
        return None, done.said
    session.write("doctor", doctor_of(record))
    why = [c["said"] for c in record["checks"] if c["name"] in ("driver", "lanes")]
    return bool(record["gpu_lane"]), "" if record["gpu_lane"] else "; ".join(why)


def selftest(session: Session, limit: float) -> tuple[bool | None, str]:
    within = f"{max(1.0, session.left(limit) - 5):.0f}"
    done = session.specrepro("selftest", "--within", within, limit=limit)
    record = done.json()
    if record is None:
        return None, done.said
    session.write("selftest", record)
    amiss = [f["about"] for f in record["faults"] if not all(c["ok"] for c in f["cells"])]
    return bool(record["ok"]), f"amiss: {', '.join(amiss)}" if amiss else ""


def tests(session: Session, limit: float) -> tuple[bool | None, str]:
    report = session.scratch / "tests.xml"
    words = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", str(HERE), f"--junitxml={report}"]
    done = ended([*words, "-p", "no:cacheprovider"], session.left(limit))
    if not report.is_file():
        return None, done.said
    record = tests_of(report.read_bytes())
    session.write("tests", record)
    bad = [one["name"] for one in record["tests"] if one["state"] in ("failed", "error")]
    ran = [one for one in record["tests"] if one["state"] != "skipped"]
    return bool(ran) and not bad, f"failed: {', '.join(bad)}" if bad else f"{len(ran)} ran"


def benchmark(session: Session, limit: float) -> tuple[bool | None, str]:
    file = session.out / "benchmark.json"
    seconds = session.left(limit)
    script = HERE.parent / "benchmarks" / "gpu_lanes.py"
    words = [sys.executable, str(script), "--json", str(file), "--seconds", f"{seconds - 5:.0f}"]
    done = ended(words, seconds)
    return (True, "") if done.status == 0 and file.is_file() else (None, done.said)


def cases(session: Session, limit: float) -> tuple[bool | None, str]:
    """Every shipped case in every lane that it lists, a run each; the file grows as they end."""
    listed = json.loads(ended([*SPECREPRO, "list", "--json"], session.left(60)).out)["cases"]
    wanted = [(one["id"], lane) for lane in LANES for one in listed if lane in one["lanes"]]
    until = time.monotonic() + session.left(limit)
    runs: list[dict[str, Any]] = []
    for case, lane in wanted:
        record, said = None, "the time was over"
        if (left := until - time.monotonic()) >= LEAST:
            words = ["run", case, "--lane", "reference", "--lane", lane]
            words += ["--runs", str(session.scratch / "runs")]
            done = session.specrepro(*words, limit=left)
            record, said = done.json(), done.said
        runs.append(
            {"case": case, "lane": lane, "said": "", **cases_of(record, lane)}
            if record
            else {"case": case, "lane": lane, "said": said, "trials": []}
        )
        session.write("cases", {"runs": runs})
    cut = [f"{one['case']} in {one['lane']}" for one in runs if one["said"]]
    verdicts = [one["verdict"] for one in runs if not one["said"]]
    # a lane alone need not see what its case is about; it must not speak against it
    ok = "REPRODUCED" in verdicts and "NOT REPRODUCED" not in verdicts
    said = f"not run: {', '.join(cut)}" if cut else ""
    return (ok if verdicts else None), said


PARTS: Mapping[str, Callable[[Session, float], tuple[bool | None, str]]] = {
    "doctor": doctor,
    "selftest": selftest,
    "benchmark": benchmark,
    "tests": tests,
    "cases": cases,
}


def played(session: Session, name: str, limit: float) -> Part:
    """One part, whatever becomes of it."""
    left = session.left(limit)
    if left < LEAST:
        return Part(name, "left out", None, 0.0, limit, "the time was over")
    began = time.monotonic()
    try:
        ok, said = PARTS[name](session, limit)
    except (OSError, ValueError, KeyError, TypeError) as error:  # a part must not end the others
        ok, said = None, f"{type(error).__name__}: {error}"
    seconds = round(time.monotonic() - began, 1)
    state = "done" if ok is not None else "failed"
    if seconds >= left - 0.5 or said.startswith("not run: "):
        state = "cut"
    return Part(name, state, ok, seconds, limit, said)


def machine(out: Path) -> dict[str, Any]:
    """What the results are of; the device is as doctor says."""
    installed = {}
    for name in ("specrepro", *PACKAGES):
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            installed[name] = None
    told = json.loads((out / "doctor.json").read_text(encoding="utf-8"))
    said = {check["name"]: check["said"] for check in told["checks"]}
    return {
        "device": str(said.get("GPU 0", "unknown")).split(",")[0],
        "driver": said.get("driver"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "packages": installed,
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--only", action="append", choices=[*PARTS], metavar="PART")
    asked = parser.parse_args(arguments)
    started = datetime.now(UTC)
    session = Session(asked.out, asked.scratch, time.monotonic() + asked.seconds)
    parts: list[Part] = []
    for name in PARTS:
        if name != "doctor" and asked.only and name not in asked.only:
            continue
        parts.append(played(session, name, asked.seconds if asked.only else LIMITS[name]))
        part = parts[-1]
        print(f"{name}: {part.state}, {part.seconds:.0f} s. {part.said}", file=sys.stderr)
        if name == "doctor" and part.ok is not True:
            print(f"no lane on a GPU can run here: {part.said}", file=sys.stderr)
            return NO_GPU
    session.write(
        "session",
        {
            "schema": SCHEMA,
            "started": f"{started:%Y-%m-%dT%H:%M:%SZ}",
            "limit": asked.seconds,
            "machine": machine(asked.out),
            "parts": [asdict(part) for part in parts],
        },
    )
    return 0 if all(part.ok and part.state == "done" for part in parts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
