"""The form of vLLM's bug template: its environment is the tested one, or the form says why not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.report.markdown import LIMIT
from specrepro.repro.report.redact import redact_record
from specrepro.repro.report.vllm_bug import vllm_bug

SECRET = "hf_" + "Qw9Lm2Xv7Bn4" * 3
OUTPUT = "Collecting environment information...\nvLLM Version : 0.28.0\nCUDA : 13.0.88"


def said(output: str = OUTPUT, reason: str = "") -> dict[str, Any]:
    return {"by": "vllm.collect_env", "output": output, "left_out": 0, "reason": reason}


def watched(collected: Any) -> dict[str, Any]:
    """The record of a command without a GPU to watch."""
    return {
        "schema": "specrepro/watch@1",
        "run": {"id": "1-watch-a", "version": "1", "started": "now", "seconds": 1.0},
        "environment": {},
        "words": ["vllm", "serve", "m"],
        "status": 1,
        "incidents": [],
        "watched": [],
        "gpus": {"after": {"gpus": [], "reason": "no driver", "driver": None, "cuda": None}},
        "variables": {},
        "log": {"path": "/runs/1/output.log"},
        "collect_env": collected,
    }


def test_the_output_stands_as_the_form_wants_it_and_once() -> None:
    text = vllm_bug(watched(said()), {})
    head, description = text.split("### 🐛 Describe the bug")
    assert head.startswith("### Your current environment\n\n<details>\n<summary>The output of ")
    assert f"```text\n{OUTPUT}\n```\n\n</details>" in head
    assert "vLLM Version" not in description
    assert "status **1**" in description


def test_why_there_is_none_is_said() -> None:
    assert "Not known: no end within 120 s." in vllm_bug(
        watched(said("", "no end within 120 s")), {}
    )
    old = watched(None)
    del old["collect_env"]
    assert "Not known: it is not stored with this run" in vllm_bug(old, {})


@pytest.mark.parametrize(
    "output",
    [
        "```\n</details>\n\n# heading @team #123 <script>alert(1)</script>",
        "\x1b[31mred\u202e",
        "~" * 50_000,
        "\n".join(["line"] * 50_000),
    ],
)
def test_a_hostile_output_stays_in_its_fence_and_the_form_in_its_limit(output: str) -> None:
    text = vllm_bug(watched(said(output)), {})
    assert len(text) <= LIMIT
    assert "\x1b" not in text
    assert "\u202e" not in text
    lines = text.split("\n")
    [opened] = [at for at, line in enumerate(lines) if line.startswith("`") and "text" in line][:1]
    fence = lines[opened].removesuffix("text")
    closed = lines.index(fence, opened + 1)
    assert lines[closed + 1 : closed + 3] == ["", "</details>"]
    assert "status **1**" in text


def test_a_long_output_is_cut_and_says_so() -> None:
    text = vllm_bug(watched(said("\n".join(f"line {n}" for n in range(10_000)))), {})
    assert "lines cut; the run has them …" in text


def test_what_the_output_tells_of_a_machine_is_removed() -> None:
    output = f"HF_TOKEN={SECRET}\nMASTER_ADDR=10.1.2.3\nVLLM_CACHE_ROOT=/home/carol/x\nGPU: H200"
    record, removed = redact_record(watched(said(output)))
    text = vllm_bug(record, removed)
    for secret in (SECRET, "10.1.2.3", "carol"):
        assert secret not in text
    assert "GPU: H200" in text


def test_of_several_builds_each_has_its_own(command: Any, tmp_path: Path) -> None:
    build = {
        "file": "f",
        "sha256": None,
        "commit": None,
        "origin": "environment",
        "verdict": "AFFECTED",
        "exposure": [],
        "evidence": [],
        "reasons": [],
        "defects": [],
        "isolation": {"holds": [], "fails": []},
        "notes": [],
    }
    run = {"id": "1-check-a", "path": "p", "command": "check", "version": "1"}
    record = {
        "schema": "specrepro/check@1",
        "run": run | {"started": "now", "seconds": 1.0},
        "environment": {"python": "3", "system": "s", "packages": {}},
        "case": "c",
        "title": "t",
        "report": "https://github.com/o/r/issues/1",
        "cause": "confirmed",
        "depth": "engine",
        "question": {"defects": [], "with": {}, "default_only": False},
        "builds": [
            build | {"version": "0.28.0", "collect_env": said("of the first")},
            build | {"version": "0.29.0", "collect_env": said("", "exit status 1")},
        ],
    }
    folder = tmp_path / "1-check-a"
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(record))
    (folder / "request.json").write_text('{"command": "check", "started": "now"}')
    form = command("report", folder.name, "--template", "vllm-bug", "--runs", tmp_path).stdout
    assert "vllm 0.28.0:\n\n<details>" in form
    assert "of the first" in form
    assert "Not known of vllm 0.29.0: exit status 1." in form
    plain = command("report", folder.name, "--runs", tmp_path).stdout
    assert "<summary>Environment of the engine, by vllm.collect_env</summary>" in plain
    assert "- vllm 0.29.0: the engine's environment (collect\\_env): exit status 1" in plain
