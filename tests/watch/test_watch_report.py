"""The report of a watched command says how it ended, what was seen, and what could not be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_incidents_are_told_in_order_and_a_blind_source_is_no_clean_one(
    machine: Any, xid: Callable[..., str]
) -> None:
    machine.lines.append("fail nvmlInit_v2 9")
    machine.watched(f"echo '{xid(31, 'MMU Fault')}' >> \"$LOG\"; exit 4")
    runs = machine.folder / "runs"
    text = machine.specrepro("report", "--runs", runs).stdout
    assert "The command ended with status **4**; **1 Xid incident** meanwhile." in text
    assert "python, host pid 4211" in text
    assert "- NVML: NVML: Driver Not Loaded" in text
    [path] = [folder for folder in runs.iterdir() if not folder.is_symlink()]
    assert f"specrepro diagnose {path}/output.log {path}/kernel.log\n" in text
    page = machine.specrepro("report", "--runs", runs, "--format", "html").stdout
    assert '<ol class="timeline">' in page


def test_without_any_source_no_xid_could_have_been_seen(machine: Any) -> None:
    machine.lines.append("fail nvmlInit_v2 9")
    runs = machine.folder / "runs"
    machine.specrepro(
        "watch", "--runs", runs, "--kernel-log", machine.folder / "none", "--", "true"
    )
    assert "no Xid could have been seen" in machine.specrepro("report", "--runs", runs).stdout
