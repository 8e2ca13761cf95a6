"""What of a record is worth bringing back: small, without paths, pids and names of users. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from specrepro.repro.records import AFTERWARDS

MOST = 5  # findings of a trial
FACTS = 20  # lines of what a run did not see
LONGEST = 300  # characters of a text

KEPT_OF_A_FINDING = (
    "kind",
    "launch",
    "op",
    "tensor",
    "elements",
    "count",
    "bytes_past_end",
    "block",
    "thread",
    "threads",
    "source",
    "step",
)
UNDER_WAY = "the one that was under way when the time was over"
NOT_KEPT = ("GPU 0, others", "container")  # of doctor: they are about this machine alone


def without_paths(said: str) -> str:
    """A text with the last name alone of each path: what lies above it is about this machine."""
    return re.sub(r"(?<![\w.])(?:/[\w.+@~-]+)+/(?=[\w.])", "…/", said)[:LONGEST]


def doctor_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """State and words of each check."""
    return {
        "gpu_lane": record["gpu_lane"],
        "checks": [
            {"name": c["name"], "state": c["state"], "said": str(c["said"])[:LONGEST]}
            for c in record["checks"]
            if c["name"] not in NOT_KEPT
        ],
    }


def cases_of(record: Mapping[str, Any], lane: str) -> dict[str, Any]:
    """Verdict of the one case of a run, and its trials in `lane`."""
    (case,) = record["cases"]
    return {
        "verdict": case["verdict"],
        "reasons": [str(one)[:LONGEST] for one in case["reasons"]],
        "unobserved": [str(one)[:LONGEST] for one in case["unobserved"][:FACTS]],
        "trials": [_trial(one, case) for one in case["trials"] if one["lane"] == lane],
    }


def amiss(run: Mapping[str, Any]) -> list[str]:
    """What of a case in a lane did not come out as it must, a line a trial. Silence is no evidence
    for the judge; here it is named, because the session asks whether the lane works at all."""
    said = []
    for trial in run["trials"]:
        where = f"{run['case']}, {trial['variant']} in {run['lane']}"
        where += "".join(f", {name}={value}" for name, value in trial["point"].items())
        became = f"{where}: {trial['status']}, expected {trial['expected']}"
        if trial["status"] == "skipped":
            continue
        said += [f"{where}: the GPU was not well afterwards: {why}" for why in unwell(trial)]
        if not trial["as_expected"]:
            said.append(f"{became}; {trial['reason'] or 'see its findings'}")
        elif (trial["expected"], trial["status"]) == ("fault", "clean"):
            said.append(f"{became}; the fault did not show itself")
    if run.get("verdict") == "NOT REPRODUCED" and not said:
        said.append(f"{run['case']} in {run['lane']}: {'; '.join(run['reasons'])}")
    return said


def unwell(trial: Mapping[str, Any]) -> list[str]:
    """What was not well with the GPU behind a trial."""
    return [one["detail"] for one in trial["evidence"] if one["source"] == AFTERWARDS]


def unlooked(run: Mapping[str, Any]) -> dict[str, str]:
    """Why trials of a case in a lane were skipped: of each reason, which those are. Hypotheses are
    not meant for a device."""
    counts: dict[str, int] = {}
    for trial in run["trials"]:
        if trial["status"] == "skipped" and not trial["reason"].startswith("hypotheses "):
            counts[trial["reason"]] = counts.get(trial["reason"], 0) + 1
    trials = len(run["trials"])
    where = f"{run['case']} in {run['lane']}"
    return {why: f"{where} ({count} of {trials} trials)" for why, count in counts.items()}


def _trial(trial: Mapping[str, Any], case: Mapping[str, Any]) -> dict[str, Any]:
    named = case["named"]
    moved = {k: v for k, v in trial["point"].items() if named.get(k) != v}
    found = trial["findings"]
    return {
        "variant": trial["variant"],
        "point": moved,
        "expected": trial["expected"],
        "status": trial["status"],
        "as_expected": trial["as_expected"],
        "agrees": trial["agrees_with_reference"],
        "reason": str(trial["reason"])[:LONGEST],
        "seconds": trial["seconds"],
        "findings": [{name: one[name] for name in KEPT_OF_A_FINDING} for one in found[:MOST]],
        "more_findings": max(0, len(found) - MOST),
        "evidence": [
            {"source": e["source"], "state": e["state"], "detail": str(e["detail"])[:LONGEST]}
            for e in trial["evidence"]
            if e["state"] == "seen" or e["source"].startswith("Xid")
        ],
    }


def tests_of(report: bytes) -> dict[str, Any]:
    """Tests of a JUnit report: name, state, seconds, first line of what was wrong."""
    found = []
    for case in ElementTree.fromstring(report).iter("testcase"):  # noqa: S314 - pytest wrote it
        state, said = "passed", ""
        for kind in ("failure", "error", "skipped"):
            if (element := case.find(kind)) is not None:
                state = {"failure": "failed"}.get(kind, kind)
                said = (element.get("message") or "").splitlines()[0:1]
                said = without_paths(said[0]) if said else ""
        if case.get("name") is None:  # pytest was ended in it, and says nothing else of it
            found.append({"name": UNDER_WAY, "state": "unknown", "seconds": 0.0, "said": ""})
            continue
        name = f"{(case.get('classname') or '').rpartition('.')[2]}::{case.get('name')}"
        seconds = round(float(case.get("time") or 0), 2)
        found.append({"name": name, "state": state, "seconds": seconds, "said": said})
    return {"tests": found}
