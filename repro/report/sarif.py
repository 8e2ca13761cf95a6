"""A stored run as SARIF 2.1.0: findings with their place in a source, which code scanning shows.

Places of a run are in specrepro's own kernels, those of a check in the engine's tree. Format: OASIS
"Static Analysis Results Interchange Format" 2.1.0; what GitHub asks beyond it: a rule for each
result, and a fingerprint that stays when lines move.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from ..errors import UsageError
from ..escape import printable
from .run_page import what

Record = Mapping[str, Any]

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MOST = 5_000  # results; GitHub takes so many of one run
LONGEST = 1_000  # characters of a message


def sarif(record: Record) -> str:
    """The JSON text; UsageError for a kind of run without places in a source."""
    match record["schema"]:
        case "specrepro/run@1":
            results = list(_of_run(record))
        case "specrepro/check@1":
            results = list(_of_check(record))
        case "specrepro/cut@1":
            results = []
        case schema:
            raise UsageError(f"there are no places in a source in {schema}", hint="--format json")
    # nothing found by a run that was cut off is not the same as nothing there
    whole = record["schema"] != "specrepro/cut@1"
    notice = {"level": "error", "message": {"text": "the run has no result: it was cut off"}}
    results = list({_key(result): result for result in results}.values())
    rules = {result["ruleId"]: _rule(result["ruleId"]) for result in results}
    order = {name: number for number, name in enumerate(rules)}
    for result in results:
        result["ruleIndex"] = order[result["ruleId"]]
    run = {
        "tool": {
            "driver": {
                "name": "specrepro",
                "semanticVersion": str(record["run"]["version"]),
                "rules": list(rules.values()),
            }
        },
        "automationDetails": {"id": f"specrepro/{record['run']['command']}/"},
        "invocations": [
            {
                "executionSuccessful": whole,
                **({} if whole else {"toolExecutionNotifications": [notice]}),
                "startTimeUtc": str(record["run"]["started"]),
                "properties": {"run": str(record["run"]["id"]), "left_out": len(results[MOST:])},
            }
        ],
        "columnKind": "unicodeCodePoints",
        "results": results[:MOST],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _of_run(record: Record) -> Iterator[dict[str, Any]]:
    for case in record["cases"]:
        for trial in case["trials"]:
            for finding in trial["findings"]:
                source = finding["source"]
                if not source:
                    continue
                said = f"{case['id']}, variant {trial['variant']}: {what(finding, None)}"
                # a fault that its case expects is what was to be shown, not news
                level = "note" if trial["as_expected"] else "error"
                yield _result(
                    str(finding["kind"]), level, said, str(source["file"]), int(source["line"])
                )


def _of_check(record: Record) -> Iterator[dict[str, Any]]:
    for build in record["builds"]:
        present = {
            str(d["defect"]): str(d["reason"])
            for d in build["defects"]
            if d["state"] == "present" and d["counted"]
        }
        for row in build["evidence"]:
            path, _, line = str(row["where"] or "").rpartition(":")
            if row["defect"] not in present or not path or not line.isdigit():
                continue
            said = f"vllm {build['version']}: {present[row['defect']]} ({row['probe']})"
            yield _result(f"{record['case']}/{row['defect']}", "warning", said, path, int(line))


def _result(rule: str, level: str, said: str, path: str, line: int) -> dict[str, Any]:
    uri = quote(path.replace("\\", "/").lstrip("/"))
    stable = hashlib.sha256(f"{rule}\0{path}\0{said}".encode()).hexdigest()
    return {
        "ruleId": _id(rule),
        "level": level,
        "message": {"text": printable(said)[:LONGEST]},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": uri, "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": max(1, line)},
                }
            }
        ],
        "partialFingerprints": {"specrepro/1": stable[:32]},
    }


def _key(result: Mapping[str, Any]) -> tuple[str, str]:
    """Two of the same place and words are one: lanes that agree say everything twice."""
    place = json.dumps(result["locations"])
    return place, str(result["message"]["text"])


def _rule(name: str) -> dict[str, Any]:
    words = name.rpartition("/")[2].replace("_", " ").replace("-", " ")
    return {"id": name, "name": name, "shortDescription": {"text": words}}


def _id(rule: str) -> str:
    return "".join(c if c.isalnum() or c in "-_/." else "_" for c in rule)[:200]
