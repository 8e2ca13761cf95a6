"""Where trials were played, as the page of a run shows it."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from specrepro.repro.report.places_page import print_places


def page(**record: Any) -> str:
    out = io.StringIO()
    print_places(Console(file=out, width=60, color_system=None), record)
    return out.getvalue()


def place(node: str, *gpus: str, trials: int = 1) -> dict[str, Any]:
    kind, driver = ("NVIDIA H100 PCIe", "580.65") if gpus else (None, None)
    return {
        "node": node,
        "gpus": list(gpus),
        "gpu_type": kind,
        "driver": driver,
        "trials": trials,
    }


def test_a_run_at_home_shows_nothing_of_it() -> None:
    assert page(places=[], avoided=[]) == page() == ""


def test_each_place_is_a_line_with_its_trials_and_an_avoided_one_says_why() -> None:
    shown = page(
        places=[place("0a1b2c3d", "GPU-1", trials=12), place("4e5f6a7b")],
        avoided=[{"place": "0a1b2c3d/GPU-2", "reason": "2 results lost there"}],
    )
    assert shown.splitlines() == [
        "",
        "12 trials on 0a1b2c3d · GPU-1 · NVIDIA H100 PCIe · 580.65",
        "1 trial on 4e5f6a7b",
        "avoided: 0a1b2c3d/GPU-2: 2 results lost there",
    ]


def test_no_escape_sequence_of_a_node_reaches_the_terminal() -> None:
    assert "\x1b" not in page(places=[place("\x1b[31mred")], avoided=[])
