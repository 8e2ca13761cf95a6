"""The table of lanes in a terminal: whole at every width, and short where no GPU lane ran."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from specrepro.repro.report.lane_table import LaneTable, legend

HOST = ["reference", "emulator"]
GPU = ["plain", "blocking", "memcheck", "racecheck", "initcheck", "synccheck", "coredump"]


def trial(variant: str, lane: str, status: str, reason: str = "") -> dict[str, Any]:
    return {
        "variant": variant,
        "lane": lane,
        "point": {},
        "control": None,
        "status": status,
        "reason": reason,
        "stopped": status == "fault" and lane in GPU,
        "as_expected": True,
        "agrees_with_reference": lane == "emulator",
        "evidence": [{"source": "CUDA", "state": "seen", "detail": ""}] if lane in GPU else [],
    }


def case(lanes: list[str], skipped: dict[str, str]) -> dict[str, Any]:
    trials = [
        trial(variant, lane, "skipped" if lane in skipped else status, skipped.get(lane, ""))
        for variant, status in (("faulty_routing", "fault"), ("fixed", "clean"))
        for lane in lanes
    ]
    return {"lanes": lanes, "named": {}, "trials": trials}


def printed(of: dict[str, Any], width: int) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(LaneTable(of))
        console.print(legend(of))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_lanes_of_which_none_ran_are_one_column_and_named_with_their_reason() -> None:
    lines = printed(case([*HOST, *GPU], dict.fromkeys(GPU, "no CUDA device")), 200)
    assert lines[0].split() == [*HOST, "GPU", "lanes", "Xid"]
    assert lines[1].split() == ["faulty_routing", "fault", "fault", "✓", "–", "–"]
    assert lines[-1].endswith(f"– not run: {', '.join(GPU)}: no CUDA device")


def test_reasons_that_differ_are_said_by_lane() -> None:
    skipped = dict.fromkeys(GPU, "the GPU is not well") | {"memcheck": "no tool"}
    lines = printed(case([*HOST, *GPU], skipped), 300)
    assert lines[-1].endswith("; memcheck: no tool")


def test_one_lane_that_did_not_run_keeps_its_name() -> None:
    assert "plain" in printed(case([*HOST, "plain"], {"plain": "no CUDA device"}), 100)[0]


@pytest.mark.parametrize("width", [30, 60, 80, 100, 200])
def test_every_lane_has_its_column_at_every_width(width: int) -> None:
    lanes = [*HOST, *GPU]
    lines = printed(case(lanes, {"memcheck": "no tool"}), width)
    assert max(map(len, lines)) <= width
    heads = [line.split() for line in lines if line.startswith(" " * 16) and "–" not in line]
    assert [name for head in heads for name in head if name in (*lanes, "Xid")] == [*lanes, "Xid"]
    assert sum(line.startswith("faulty_routing") for line in lines) == len(heads)
    assert (len(heads) == 1) == (width == 200)
