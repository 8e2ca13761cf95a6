"""A folder of logs on a cluster: the same clusters as at home, and no log is passed over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.ray

XID = "NVRM: Xid (PCI:0000:41:00): {code}, pid=4242, name=VLLM::Worker_TP, Ch 00000010"
CRASH = """\
(EngineCore pid=77) INFO 09-0{day} 10:30:10 [core.py:93] Initializing a V1 LLM engine (v0.27.1)
(Worker_TP0 pid=301) ERROR 09-0{day} 10:46:43 [multiproc_executor.py:870] torch.AcceleratorError: \
CUDA error: an illegal memory access was encountered
"""


@pytest.fixture
def night(tmp_path: Path) -> Path:
    """Sixty logs: crashes, a page, kernel logs, quiet ones, one that nobody may read as a log."""
    folder = tmp_path / "night"
    for number in range(60):
        path = folder / f"host{number % 3}" / f"{number:02}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        kind, day = number % 4, 1 + number % 9
        if kind == 0:
            path.write_text(CRASH.format(day=day))
        elif kind == 1:
            path.write_text(f"[1{number}.7] {XID.format(code=79 if number % 8 == 1 else 31)}\n")
        elif kind == 2:
            path.with_suffix(".md").write_text(f"It broke.\n\n```\n{CRASH.format(day=day)}```\n")
        else:
            path.write_text("all is well\n")
    (folder / "cut.log.gz").write_bytes(b"\x1f\x8b\x08\x00 not a whole one")
    return folder


def body(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != "run"}


def test_logs_that_are_sent_or_read_in_place_are_counted_as_at_home(
    nodes: Any, specrepro: Any, night: Path
) -> None:
    here = specrepro("diagnose", night, "--jobs", "1").record()
    assert len(here["incidents"]) >= 3
    sent = specrepro("diagnose", night, "--ray", nodes.address).record()
    assert body(sent) == body(here)
    in_place = specrepro("diagnose", night, "--ray", nodes.address, "--in-place").record()
    assert body(in_place) == body(here)
    text = json.dumps(sent)
    assert str(night / "host0" / "00.log") in text
    assert "logs/0" not in text  # where a node had it
