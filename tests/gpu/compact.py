"""What of a record is worth bringing back: small, without paths, pids and names of users. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

MOST = 5  # findings of a trial
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
NOT_KEPT = ("GPU 0, others", "container")  # of doctor: they are about this machine alone


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
        "trials": [_trial(one, case) for one in case["trials"] if one["lane"] == lane],
    }


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
                said = said[0][:LONGEST] if said else ""
        name = f"{(case.get('classname') or '').rpartition('.')[2]}::{case.get('name')}"
        seconds = round(float(case.get("time") or 0), 2)
        found.append({"name": name, "state": state, "seconds": seconds, "said": said})
    return {"tests": found}
