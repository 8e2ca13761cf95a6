"""What ran: versions, settings from commands and dumps, speculation, libraries, devices."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.diagnose.facts import Reading, Value
from specrepro.repro.diagnose.read import read_text
from specrepro.repro.diagnose.reading.reprs import keywords, value_of

CONFIG = (
    "model='Qwen/Q', speculative_config=SpeculativeConfig(method='mtp', model='Qwen/D', "
    "num_spec_tokens=4), tokenizer='Qwen/Q', dtype=torch.bfloat16, max_seq_len=262144, "
    "tensor_parallel_size=2, pipeline_parallel_size=3, quantization=fp8, enforce_eager=False, "
    "kv_cache_dtype=fp8_e4m3, enable_prefix_caching=True, compilation_config={'level': 3, "
    "'cudagraph_mode': <CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>, "
    "'cudagraph_capture_sizes': [1, 2, 4, 8], 'max_cudagraph_capture_size': 16}"
)


def read(text: str) -> Reading:
    return read_text("a.log", text)


def arguments(reading: Reading, origin: str) -> dict[str, Value]:
    return {
        str(fact.values["name"]): fact.values["value"]
        for fact in reading.of("engine_argument")
        if fact.values["origin"] == origin
    }


@pytest.mark.parametrize(
    ("line", "name", "version", "origin"),
    [
        (
            "INFO 08-24 10:00:00 [api_server.py:9] vLLM API server version 0.19.1",
            "vllm",
            "0.19.1",
            "banner",
        ),
        (
            "INFO 08-24 10:00:00 [utils.py:9]   █     █  ▄█ version 0.27.1rc1.dev3+g8e685d198",
            "vllm",
            "0.27.1rc1.dev3+g8e685d198",
            "banner",
        ),
        (f"Initializing a V1 LLM engine (v0.11.0) with config: {CONFIG}", "vllm", "0.11.0", "init"),
        (f"Initializing an LLM engine (v0.8.2) with config: {CONFIG}", "vllm", "0.8.2", "init"),
        (
            f"Dumping input data for V1 LLM engine (v0.20.2) with config: {CONFIG},",
            "vllm",
            "0.20.2",
            "dump",
        ),
        ("image: vllm/vllm-openai:v0.26.0-cu130", "vllm", "0.26.0", "image"),
        (
            "docker run -it registry.example/mirror/vllm-openai:v0.25.1 --model x",
            "vllm",
            "0.25.1",
            "image",
        ),
        ("vLLM Version                 : 0.28.0", "vllm", "0.28.0", "collect_env"),
        ("vLLM Version: 0.1.dev20073+g8e685d198", "vllm", "0.1.dev20073+g8e685d198", "collect_env"),
        (
            "Successfully installed vllm-0.22.1rc1.dev392 in a venv: vllm==0.22.1rc1.dev392",
            "vllm",
            "0.22.1rc1.dev392",
            "wheel",
        ),
        (
            "Using cached vllm-0.27.1+cu129-cp38-abi3-manylinux1_x86_64.whl",
            "vllm",
            "0.27.1+cu129",
            "wheel",
        ),
        ("build: 6123 (abcdef1) with cc for x86_64", "llama.cpp", "b6123", "banner"),
        ("[TensorRT-LLM] TensorRT-LLM version: 1.2.0", "tensorrt-llm", "1.2.0", "banner"),
        ("lmsysorg/sglang:v0.5.6-cu130", "sglang", "0.5.6", "image"),
    ],
)
def test_the_version_wherever_it_stands(line: str, name: str, version: str, origin: str) -> None:
    found = [
        (fact.values["name"], fact.values["version"], fact.values["origin"])
        for fact in read(line).of("engine")
        if fact.values["version"]
    ]
    assert (name, version, origin) in found
    assert {(n, v) for n, v, _ in found} == {(name, version)}


def test_a_local_version_gives_the_commit() -> None:
    line = "vLLM API server version 0.1.dev20073+g8e685d198"
    assert read(line).of("engine")[0].values["commit"] == "8e685d198"


@pytest.mark.parametrize(
    "line", ["the API version 2 is used", "HTTP version 1.1", "version 12 of x"]
)
def test_other_versions_are_not_the_engines(line: str) -> None:
    assert read(line).of("engine") == []


def test_the_config_dump_is_read_into_settings_and_what_they_mean() -> None:
    reading = read(f"Initializing a V1 LLM engine (v0.27.1) with config: {CONFIG}")
    effective = arguments(reading, "effective")
    assert effective["tensor_parallel_size"] == 2
    assert effective["dtype"] == "torch.bfloat16"
    assert effective["enforce_eager"] is False
    assert effective["compilation_config.cudagraph_mode"] == "FULL_AND_PIECEWISE"
    assert effective["compilation_config.cudagraph_capture_sizes"] == (1, 2, 4, 8)
    sizes = {f.values["dimension"]: f.values["size"] for f in reading.of("parallel")}
    assert sizes == {"tp": 2, "pp": 3}
    spec = reading.of("speculation")[0].values
    assert spec == {"method": "mtp", "k": 4, "model": "Qwen/D", "enabled": True}
    capture = reading.of("capture_sizes")[0].values
    assert capture == {"sizes": (1, 2, 4, 8), "largest": 16, "count": 4}
    dtypes = {fact.values["what"]: fact.values["value"] for fact in reading.of("dtype")}
    assert dtypes["kv_cache"] == "fp8_e4m3"
    models = {fact.values["role"]: fact.values["name"] for fact in reading.of("model")}
    assert models == {"target": "Qwen/Q", "draft": "Qwen/D"}
    assert {fact.values["eager"] for fact in reading.of("graph_mode")} == {False, None}


@pytest.mark.parametrize(
    ("printed", "mode"),
    [
        ("<CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>", "FULL_AND_PIECEWISE"),
        ("[2,1]", "FULL_AND_PIECEWISE"),
        ("[2, 0]", "FULL_DECODE_ONLY"),
        ("1", "PIECEWISE"),
        ("'CUDAGraphMode.NONE'", "NONE"),
    ],
)
def test_the_graph_mode_however_a_release_prints_it(printed: str, mode: str) -> None:
    config = f'model=1, compilation_config={{"cudagraph_mode":{printed}}}'
    found = read(f"Initializing a V1 LLM engine (v0.11.0) with config: {config}").of("graph_mode")
    assert [fact.values["mode"] for fact in found] == [mode]


def test_no_speculation_is_said_too() -> None:
    reading = read(
        "Initializing a V1 LLM engine (v0.27.1) with config: model='x', speculative_config=None"
    )
    assert [fact.values["enabled"] for fact in reading.of("speculation")] == [False]


def test_the_arguments_given_are_told_from_the_effective_ones() -> None:
    line = (
        "non-default args: {'model_tag': 'x', 'max_num_seqs': 5, 'enable_prefix_caching': False, "
        "'async_scheduling': False, 'speculative_config': {'method': 'eagle3', "
        "'num_speculative_tokens': 3}, 'api_key': ['very-secret-key']}"
    )
    reading = read(line)
    given = arguments(reading, "given")
    assert given["max_num_seqs"] == 5
    assert given["speculative_config.num_speculative_tokens"] == 3
    assert reading.of("speculation")[0].values["k"] == 3
    assert [f.values["on"] for f in reading.of("async_scheduling")] == [False]
    assert [f.values["on"] for f in reading.of("prefix_caching")] == [False]
    assert "very-secret-key" not in str(reading)


def test_a_dump_that_is_cut_or_wrapped_gives_what_is_whole() -> None:
    line = f"Initializing a V1 LLM engine (v0.27.1) with config: {CONFIG}"
    cut = arguments(read(line[: line.index("quantization") + 8]), "effective")
    assert cut["pipeline_parallel_size"] == 3
    assert "enforce_eager" not in cut
    at = line.index("pipeline_parallel_size")
    wrapped = arguments(read(f"{line[:at]}\n{line[at:]}"), "effective")
    assert wrapped["pipeline_parallel_size"] == 3


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve org/m --max-model-len 1048576 --tensor-parallel-size 2 --no-async-scheduling "
        "--speculative-config '{\"method\": \"mtp\", \"num_speculative_tokens\": 3}'",
        "vllm serve org/m \\\n  --max-model-len=1048576 \\\n  -tp 2 --no-async-scheduling \\\n"
        "  --speculative-config.method mtp --speculative-config.num_speculative_tokens 3",
        "python -m vllm.entrypoints.openai.api_server --model org/m --max-model-len 1024K -tp=2 "
        "--no-async-scheduling -sc.method mtp -sc.num_speculative_tokens 3",
        "services:\n  llm:\n    image: vllm/vllm-openai:v0.27.1\n    command:\n      - --model\n"
        "      - org/m\n      - --max-model-len\n      - \"1048576\"\n"
        "      - --tensor-parallel-size\n"
        "      - '2'\n      - --no-async-scheduling\n      - --speculative-config\n"
        "      - '{\"method\":\"mtp\",\"num_speculative_tokens\":3}'\n    ports: x",
    ],
)  # fmt: skip
def test_a_start_command_in_any_of_its_forms(text: str) -> None:
    reading = read(text)
    given = arguments(reading, "command")
    assert given["model"] == "org/m"
    assert given["max_model_len"] == 1048576
    assert given["tensor_parallel_size"] == 2
    assert given["async_scheduling"] is False
    assert given["speculative_config.method"] == "mtp"
    assert given["speculative_config.num_speculative_tokens"] == 3
    assert reading.of("speculation")[0].values["k"] == 3


def test_a_folded_command_of_a_compose_file_begins_at_its_first_option() -> None:
    text = (
        "    image: vllm/vllm-openai:v0.10.2\n    command: >\n      --model org/m\n      --port 1\n"
    )
    reading = read(text)
    assert arguments(reading, "command") == {"model": "org/m", "port": 1}
    assert [fact.line for fact in reading.of("command")] == [3]


def test_a_command_whose_quotation_is_cut_keeps_its_plain_options() -> None:
    given = arguments(
        read('vllm serve m --max-num-seqs 4 --speculative-config \'{"method": '), "command"
    )
    assert given["max_num_seqs"] == 4


def test_sglangs_options_have_the_names_of_the_rules() -> None:
    line = (
        "python -m sglang.launch_server --model-path org/m --tp 4 --speculative-algorithm EAGLE "
        "--speculative-num-steps 3 --disable-cuda-graph"
    )
    given = arguments(read(line), "command")
    assert (given["model"], given["tensor_parallel_size"]) == ("org/m", 4)
    assert given["speculative_config.method"] == "EAGLE"
    assert given["speculative_config.num_speculative_tokens"] == 3
    assert given["enforce_eager"] is True


def test_variables_are_read_where_they_are_set_and_not_where_they_are_advised() -> None:
    text = """export CUDA_LAUNCH_BLOCKING=1
docker run -e VLLM_USE_V2_MODEL_RUNNER=1 -e VLLM_API_KEY=secret vllm/vllm-openai:v0.28.0 --model x
    - NCCL_DEBUG=INFO
Consider passing PYTORCH_ALLOC_CONF=x or set VLLM_USE_TRITON=1 to avoid this
"""
    reading = read(text)
    found = {fact.values["name"]: fact.values["value"] for fact in reading.of("environment")}
    assert found == {
        "CUDA_LAUNCH_BLOCKING": "1",
        "VLLM_USE_V2_MODEL_RUNNER": "1",
        "VLLM_API_KEY": "***",
        "NCCL_DEBUG": "INFO",
    }
    runner = reading.of("runner")[0].values
    assert (runner["version"], runner["origin"]) == ("v2", "environment")


def test_lengths_of_target_and_draft_in_their_order_for_each_start() -> None:
    start = [
        "(APIServer pid=1) INFO 08-24 10:00:00 [u.py:1] vLLM API server version 0.27.1",
        "(APIServer pid=1) INFO 08-24 10:00:01 [model.py:9] Using max model len 1048576",
        "(APIServer pid=1) INFO 08-24 10:00:01 [model.py:9] Using max model len 262144",
    ]
    found = [
        (f.session, f.values["role"], f.values["tokens"], f.values["order"])
        for f in read("\n".join(start * 2)).of("max_model_len")
    ]
    once = [("target", 1048576, 1), ("draft", 262144, 2)]
    assert found == [(session, *each) for session in (0, 1) for each in once]


@pytest.mark.parametrize(
    ("line", "kind", "expected"),
    [
        (
            "Overriding draft model max model len from 262144 to 131072",
            "draft_length_override",
            {"before": 262144, "after": 131072},
        ),
        ("Resolved architecture: Qwen3NextMTP", "architecture", {"name": "Qwen3NextMTP"}),
        ("Asynchronous scheduling is enabled.", "async_scheduling", {"on": True, "origin": "log"}),
        ("Asynchronous scheduling is disabled.", "async_scheduling", {"on": False}),
        ("Using V2 Model Runner", "runner", {"version": "v2", "origin": "log"}),
        (
            "Model Runner V2 does not yet support ngram; using the V1 model runner instead.",
            "runner",
            {"version": "v1", "origin": "fallback"},
        ),
        (
            "Mamba cache mode is set to 'align' for Qwen3Next by default when prefix",
            "mamba_cache_mode",
            {"mode": "align"},
        ),
        (
            "Selected FlashInferFP8ScaledMMLinearKernel for Fp8LinearMethod",
            "kernel_selected",
            {"kernel": "FlashInferFP8ScaledMMLinearKernel", "use": "Fp8LinearMethod"},
        ),
        (
            "Using FLASHINFER attention backend out of potential backends: ['FLASHINFER']",
            "attention_backend",
            {"name": "FLASHINFER"},
        ),
        (
            "Using Flash Attention backend on V1 engine.",
            "attention_backend",
            {"name": "FLASH_ATTN"},
        ),
        (
            "Using AttentionBackendEnum.TRITON_ATTN backend.",
            "attention_backend",
            {"name": "TRITON_ATTN"},
        ),
        ("Setting attention block size to 1,056 tokens", "block_size", {}),
        (
            "Setting attention block size to 1056 tokens to ensure that",
            "block_size",
            {"name": "attention", "tokens": 1056},
        ),
        ("GPU KV cache size: 1,234,567 tokens", "kv_cache", {"tokens": 1234567}),
        ("# GPU blocks: 4321, # CPU blocks: 0", "kv_cache", {"blocks": 4321}),
        (
            "Maximum concurrency for 262,144 tokens per request: 4.71x",
            "kv_cache",
            {"concurrency": 4.71},
        ),
        (
            "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  67%|####  | 2/3 [00:01]",
            "graph_capture",
            {"phase": "mixed prefill-decode, PIECEWISE", "done": 2, "total": 3},
        ),
        (
            "Enforce eager set, overriding optimization level to -O0",
            "graph_mode",
            {"mode": "NONE", "eager": True},
        ),
        (
            "GPU 0: NVIDIA GeForce RTX 5090 (UUID: GPU-1)",
            "gpu",
            {"name": "NVIDIA GeForce RTX 5090", "index": 0},
        ),
        ("GPU 3: NVIDIA H100 80GB HBM3", "gpu", {"name": "NVIDIA H100 80GB HBM3", "index": 3}),
        ("GPU 0: NVIDIA GB10", "gpu", {"name": "NVIDIA GB10"}),
        ("Device 0: NVIDIA A40, compute capability 8.6, VMM: yes", "gpu", {"capability": "sm_86"}),
        ("PyTorch version: 2.11.0+cu130", "library", {"name": "torch", "version": "2.11.0+cu130"}),
        (
            "Nvidia driver version        : 580.65.06",
            "library",
            {"name": "driver", "version": "580.65.06"},
        ),
        (
            "| NVIDIA-SMI 580.65.06    Driver Version: 580.65.06    CUDA Version: 13.0 |",
            "library",
            {"name": "driver", "version": "580.65.06"},
        ),
        (
            "[pip3] flashinfer-python==0.6.8.post1",
            "library",
            {"name": "flashinfer", "version": "0.6.8.post1"},
        ),
        (
            "flashinfer-python            0.6.8",
            "library",
            {"name": "flashinfer", "version": "0.6.8"},
        ),
        ("[rank0] vLLM is using nccl==2.27.5", "library", {"name": "nccl", "version": "2.27.5"}),
        ("Linux box 6.6.87-microsoft-standard-WSL2 x86_64", "host", {"system": "WSL"}),
    ],
)
def test_what_the_engine_says_while_it_starts(
    line: str, kind: str, expected: dict[str, Value]
) -> None:
    found = read(line).of(kind)
    if not expected:
        assert found == []
        return
    assert any(all(f.values[n] == v for n, v in expected.items()) for f in found), found


@given(st.text(alphabet="a=,:'\"()[]{}<> \\1.é\n", max_size=200))
def test_any_text_is_taken_for_a_value_without_an_error(text: str) -> None:
    assert isinstance(keywords(text), dict)
    value_of(text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text("ab' \"c", max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("xyz", min_size=1, max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)  # fmt: skip


@given(VALUES)
def test_what_repr_writes_is_read_back(value: object) -> None:
    assert value_of(repr(value)) == value


def test_nesting_without_end_is_not_followed() -> None:
    assert keywords(f"a=1, b={'[' * 100_000}")["a"] == 1
