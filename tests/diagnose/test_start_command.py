"""The command an engine was started with: found in logs, sentences, compose files and manifests."""

from __future__ import annotations

import shlex

import pytest

from specrepro.repro.diagnose.read import read_text
from specrepro.repro.diagnose.restored import start_command

LOG = "\n\n```\n(EngineCore pid=1) ERROR 09-01 10:00:00 [core.py:9] ValueError: x\n```\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "After a wake-up Qwen (`vllm serve O/M --enable-sleep-mode -tp 2`) talks nonsense."
            + LOG,
            "vllm serve O/M --enable-sleep-mode -tp 2",
        ),
        (
            "```\n$ A=1 VLLM_X='b c' vllm serve O/M \\\n  --max-num-seqs 8\n```\n",
            "A=1 VLLM_X='b c' vllm serve O/M --max-num-seqs 8",
        ),
        (
            "```\nExecStart=/opt/venv/bin/vllm serve O/M --max-num-seqs 8\n```\n",
            "/opt/venv/bin/vllm serve O/M --max-num-seqs 8",
        ),
    ],
)
def test_the_command_is_taken_out_of_what_stands_around_it(text: str, wanted: str) -> None:
    command = start_command(read_text("page.md", text).facts)
    assert command is not None
    assert shlex.split(command) == shlex.split(wanted)


def test_a_sentence_that_speaks_of_a_command_is_none() -> None:
    text = "I tried vllm serve with --max-num-seqs 8 and without, both crash." + LOG
    command = start_command(read_text("page.md", text).facts)
    assert command is None or command.startswith("vllm serve")
    assert "crash" not in (command or "")


def test_variables_of_a_manifest_are_read_with_the_value_below_their_name() -> None:
    text = (
        "```yaml\n      args:\n        - --model=O/M\n        - --max-num-seqs=8\n      env:\n"
        '        - name: VLLM_USE_V2_MODEL_RUNNER\n          value: "1"\n'
        "        - name: VLLM_API_KEY\n          value: s3cr3t\n```\n"
    )
    reading = read_text("page.md", text)
    assert [f.values["version"] for f in reading.of("runner")] == ["v2"]
    command = start_command(reading.facts)
    assert command == "VLLM_USE_V2_MODEL_RUNNER=1 vllm serve O/M --max-num-seqs 8"


def test_a_variable_that_a_sentence_names_says_nothing_of_the_crash() -> None:
    text = (
        "With CUDA_LAUNCH_BLOCKING=1 it never crashes.\n"
        "It says torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n\n"
        "```\nnothing\n```\n"
    )
    errors = read_text("page.md", text).of("cuda_error")
    assert errors
    assert all(fact.values["stack"] == "unknown" for fact in errors)
