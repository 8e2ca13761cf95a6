"""What is asked for and tried next: information by hand, commands that cannot act on a shell."""

from __future__ import annotations

import json
import math
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.diagnose.advise import information, missing, proposals
from specrepro.repro.diagnose.levers import Command, changed
from specrepro.repro.diagnose.match import match
from specrepro.repro.diagnose.read import read_text
from specrepro.repro.diagnose.restored import start_command
from specrepro.repro.diagnose.rules import load, outcomes
from specrepro.repro.diagnose.situation import How, Seen, Situation
from specrepro.repro.report.redact import redact

KNOWN = load()


def lever(name: str, line: str) -> str:
    return changed(Command.of(line), KNOWN.experiments[name])


def known(**values: object) -> Situation:
    return Situation({n: Seen((v,), How.OBSERVED) for n, v in values.items()})  # type: ignore[arg-type]


def test_an_outcome_that_decides_between_two_equals_tells_one_bit() -> None:
    assert information([0.5, 0.5], [{"again": 1.0}, {"clean": 1.0}]) == pytest.approx(1)
    assert information([0.5, 0.5], [{"again": 0.5, "clean": 0.5}] * 2) == pytest.approx(0)
    # by hand: H(0.5) - 0.5 * H(0.9) - 0.5 * H(0.1)
    h = -(0.9 * math.log2(0.9) + 0.1 * math.log2(0.1))
    tables = [{"again": 0.9, "clean": 0.1}, {"again": 0.1, "clean": 0.9}]
    assert information([0.5, 0.5], tables) == pytest.approx(1 - h)


@given(
    st.lists(st.floats(0.01, 1), min_size=1, max_size=6).flatmap(
        lambda weights: st.tuples(
            st.just([w / sum(weights) for w in weights]),
            st.lists(
                st.one_of(st.floats(0.01, 0.99), st.sampled_from(["merge", "state"])),
                min_size=len(weights),
                max_size=len(weights),
            ),
        )
    )
)
def test_information_is_never_negative_nor_more_than_the_candidates_hold(
    given_: tuple[list[float], list[float | str]],
) -> None:
    chances, expected = given_
    bits = information(chances, [outcomes(value) for value in expected])
    most = -sum(chance * math.log2(chance) for chance in chances)
    assert -1e-9 <= bits <= most + 1e-9


@pytest.mark.parametrize(
    ("name", "line", "wanted"),
    [
        ("seqs-3", "vllm serve M --max-num-seqs 8", "vllm serve M --max-num-seqs 3"),
        ("seqs-3", "vllm serve M --max_num_seqs=8 -tp 2", "vllm serve M -tp 2 --max-num-seqs 3"),
        (
            "mtp-off",
            'vllm serve M --speculative-config \'{"method": "mtp"}\' --port 1',
            "vllm serve M --port 1",
        ),
        ("mtp-off", "vllm serve M --speculative-config.method mtp", "vllm serve M"),
        (
            "k-2",
            'vllm serve M --speculative-config \'{"method":"mtp","num_speculative_tokens":5}\'',
            'vllm serve M --speculative-config \'{"method": "mtp", "num_speculative_tokens": 2}\'',
        ),
        (
            "runner-v1",
            "A=1 VLLM_USE_V2_MODEL_RUNNER=1 vllm serve M",
            "A=1 VLLM_USE_V2_MODEL_RUNNER=0 vllm serve M",
        ),
        (
            "runner-v1",
            "docker run --gpus all vllm/vllm-openai:v0.27 --model M",
            "docker run -e VLLM_USE_V2_MODEL_RUNNER=0 --gpus all vllm/vllm-openai:v0.27 --model M",
        ),
        ("async-off", "vllm serve M --async-scheduling", "vllm serve M --no-async-scheduling"),
        (
            "prefix-off",
            "vllm serve M --enable-prefix-caching",
            "vllm serve M --no-enable-prefix-caching",
        ),
    ],
)
def test_one_lever_changes_and_nothing_else(name: str, line: str, wanted: str) -> None:
    assert lever(name, line) == wanted


def test_a_command_that_was_not_seen_is_shown_by_its_change_alone() -> None:
    assert changed(None, KNOWN.experiments["seqs-3"]) == "… --max-num-seqs 3"
    assert changed(None, KNOWN.experiments["runner-v1"]) == "VLLM_USE_V2_MODEL_RUNNER=0 …"


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=6))
def test_the_words_of_a_strangers_command_reach_a_shell_as_words(words: list[str]) -> None:
    line = "vllm serve " + shlex.join(words)
    printed = lever("eager", line)
    command = Command.of(line)
    if command is None:  # a word that a terminal could act upon: the command is not shown
        assert printed.startswith("…")
        return
    assert "\n" not in printed
    assert printed.isprintable()
    again = shlex.split(printed)
    assert again[:2] == ["vllm", "serve"]
    assert again[-1] == "--enforce-eager"


def test_nothing_of_a_strangers_command_is_executed_by_the_shell(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    line = f"echo '$(touch {mark})' '`touch {mark}`' ';' touch {mark} '&&' '|' '>' x"
    printed = lever("eager", line)
    done = subprocess.run(["bash", "-c", printed], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0
    assert list(tmp_path.iterdir()) == []
    assert "--enforce-eager" in done.stdout


def test_secrets_of_a_command_are_not_printed() -> None:
    line = (
        "HF_TOKEN=hf_secret123 vllm serve M --api-key sk-abc --api_key=sk-def --hf-token hf_other"
    )
    printed = lever("eager", line)
    for secret in ("hf_secret123", "sk-abc", "sk-def", "hf_other"):
        assert secret not in printed
    assert printed.count("<removed>") == 4
    assert redact(printed).text == printed


@pytest.mark.parametrize(
    "word",
    [
        "--env=HF_TOKEN=s3cr3t-value",
        "-eAWS_SECRET_ACCESS_KEY=s3cr3t-value",
        "-e WANDB_API_KEY=s3cr3t-value",
        "--ssl-keyfile-password s3cr3t-value",
        '--kv-transfer-config \'{"api_key": "s3cr3t-value"}\'',
        "--otlp-traces-endpoint https://me:s3cr3t-value@host/x",
    ],
)
def test_a_secret_is_found_wherever_a_command_holds_it(word: str) -> None:
    printed = lever("eager", f"docker run {word} vllm/vllm-openai:v0.27.1 --model M")
    assert "s3cr3t" not in printed
    assert printed.endswith("vllm/vllm-openai:v0.27.1 --model M --enforce-eager")


def test_options_whose_names_only_look_secret_keep_their_values() -> None:
    line = "vllm serve M --max-num-batched-tokens 8192 --hf-overrides.a 1 --tokenizer-mode auto"
    assert lever("eager", line) == f"{line} --enforce-eager"


def test_where_nothing_is_started_anew_there_is_no_command() -> None:
    assert lever("length-pair", "vllm serve M") == ""
    assert changed(None, KNOWN.experiments["salted"]) == ""


@pytest.mark.parametrize("line", ["vllm serve 'open", "", "x" * 5000, "vllm serve \x1b[31m"])
def test_what_is_no_command_is_not_shown_as_one(line: str) -> None:
    assert Command.of(line) is None
    assert lever("eager", line) == "… --enforce-eager"


def test_a_command_is_put_together_from_the_arguments_that_the_log_has() -> None:
    text = (
        "(APIServer pid=1) INFO 09-01 10:00:00 [utils.py:233] non-default args: "
        "{'model_tag': 'O/M', 'model': 'O/M', 'max_num_seqs': 8, 'enable_prefix_caching': True, "
        "'speculative_config': {'method': 'mtp', 'num_speculative_tokens': 4}}\n"
    )
    command = start_command(read_text("a.log", text).facts)
    assert command is not None
    words = shlex.split(command)
    assert words[:3] == ["vllm", "serve", "O/M"]
    assert words[words.index("--max-num-seqs") + 1] == "8"
    assert "--enable-prefix-caching" in words
    config = json.loads(words[words.index("--speculative-config") + 1])
    assert config == {"method": "mtp", "num_speculative_tokens": 4}


def test_the_arguments_of_a_compose_file_become_a_command() -> None:
    text = (
        "    image: vllm/vllm-openai:v0.26.0\n    command:\n      - --model\n      - O/M\n"
        '      - --hf-overrides\n      - \'{"rope": {"type": "yarn", "factor": 4.0}}\'\n'
        '      - --max-num-seqs\n      - "8"\n'
    )
    command = start_command(read_text("compose.yaml", text).facts)
    assert command is not None
    words = shlex.split(command)
    assert words[:3] == ["vllm", "serve", "O/M"]
    assert words[words.index("--max-num-seqs") + 1] == "8"
    overrides = json.loads(words[words.index("--hf-overrides") + 1])
    assert overrides == {"rope": {"type": "yarn", "factor": 4.0}}


CRASH = {
    "symptom": "illegal_access", "engine": "vllm", "release": "0.27.1", "runner": "v1", "k": 4,
    "spec": "on", "hybrid": "yes", "async": "on", "prefix_caching": "on", "backend": "FLASHINFER",
    "running": 6, "eager": "no",
}  # fmt: skip


def test_the_kernel_log_is_asked_for_first() -> None:
    situation = known(**CRASH)
    ranked = match(KNOWN.classes, situation)
    asked = [a.question.id for a in missing(ranked, situation, KNOWN)]
    assert asked[0] == "kernel_log"
    assert asked.index("kernel_log") < asked.index("flashinfer")
    seen = known(**CRASH, xid=31, access="read")
    ranked = match(KNOWN.classes, seen)
    assert "kernel_log" not in [a.question.id for a in missing(ranked, seen, KNOWN)]


def test_experiments_separate_what_is_left_and_leave_out_what_was_done() -> None:
    situation = known(**CRASH)
    ranked = match(KNOWN.classes, situation)
    found = proposals(ranked, situation, KNOWN, None)
    assert found
    left = {r.fault_class.id for r in ranked if r.standing in ("likely", "possible")}
    rates = [p.bits / p.minutes for p in found]
    assert rates == sorted(rates, reverse=True)
    for proposal in found:
        assert set(proposal.separates) <= left
    limited = known(**CRASH | {"max_num_seqs": 3, "k": 2, "async": "off"})
    ranked = match(KNOWN.classes, limited)
    ids = {p.experiment.id for p in proposals(ranked, limited, KNOWN, None)}
    assert ids.isdisjoint({"seqs-3", "k-2", "async-off", "runner-v1"})


def test_a_fault_that_no_class_is_near_still_gets_what_names_its_kernel() -> None:
    situation = known(symptom="illegal_access", engine="llama.cpp")
    ranked = match(KNOWN.classes, situation)
    assert not [r for r in ranked if r.standing in ("likely", "possible")]
    ids = {p.experiment.id for p in proposals(ranked, situation, KNOWN, None)}
    assert "coredump" in ids
    assert ids.isdisjoint({"async-off", "runner-v1", "k-2"})
    named = known(symptom="illegal_access", engine="llama.cpp", kernel="mul_mat_q")
    ranked = match(KNOWN.classes, named)
    assert "coredump" not in {p.experiment.id for p in proposals(ranked, named, KNOWN, None)}


def test_what_only_one_engine_has_is_not_asked_of_another() -> None:
    for engine, wanted in (("sglang", False), ("vllm", True)):
        situation = known(symptom="illegal_access", engine=engine)
        asked = missing(match(KNOWN.classes, situation), situation, KNOWN)
        assert ("runner" in [a.question.id for a in asked]) is wanted


def test_memory_of_the_host_is_not_asked_of_the_device() -> None:
    situation = known(symptom="out_of_memory", oom_where="host", engine="vllm")
    ranked = match(KNOWN.classes, situation)
    ids = [p.experiment.id for p in proposals(ranked, situation, KNOWN, None)]
    assert ids[0] == "host-memory"
    assert "util-low" not in ids


@pytest.mark.parametrize(("ranks", "wanted"), [(2, "1,0"), (4, "3,2,1,0"), (8, "7,6,5,4,3,2,1,0")])
def test_all_gpus_of_the_rig_change_places(ranks: int, wanted: str) -> None:
    situation = known(symptom="ecc", xid_class="hardware", hardware_xid=48, tp=ranks)
    found = proposals(match(KNOWN.classes, situation), situation, KNOWN, "vllm serve M")
    commands = [p.command for p in found if p.experiment.id == "swap-gpu"]
    assert commands == [f"CUDA_VISIBLE_DEVICES={wanted} vllm serve M"]


def test_nothing_is_proposed_where_no_class_is_in_question() -> None:
    assert proposals(match(KNOWN.classes, known()), known(), KNOWN, "vllm serve M") == []
