"""Logs of an engine with eight workers that serves for hours and then fails. Text is made up."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

ILLEGAL = "CUDA error: an illegal memory access was encountered"
API, CORE = "(APIServer pid=1) ", "(EngineCore pid=77) "
WORKERS = tuple(f"(Worker_TP{n} pid={100 + n}) " for n in range(8))


def write(path: Path, size: int, seed: int) -> None:
    """A log of about `size` bytes that ends in a failure."""
    source = random.Random(seed)  # noqa: S311
    crash = "".join(f"{line}\n" for line in failure("08-24 23:59:59"))
    with path.open("w", encoding="utf-8") as file:
        written = file.write("".join(f"{line}\n" for line in start("08-24 10:00:00")))
        for line in serving(source):
            if written + len(crash) >= size:
                break
            written += file.write(f"{line}\n")
        file.write(crash)


def start(stamp: str) -> Iterator[str]:
    """What the engine says until it serves: about 40 lines."""
    yield f"{API}INFO {stamp} [utils.py:297] vLLM API server version 0.27.1"
    yield (
        f"{API}INFO {stamp} [utils.py:233] non-default args: {{'model_tag': 'org/model', "
        "'tensor_parallel_size': 8, 'speculative_config': {'method': 'mtp', "
        "'num_speculative_tokens': 4}}"
    )
    yield f"{API}INFO {stamp} [model.py:1541] Using max model len 262144"
    yield (
        f"{CORE}INFO {stamp} [core.py:93] Initializing a V1 LLM engine (v0.27.1) with config: "
        "model='org/model', dtype=torch.bfloat16, max_seq_len=262144, tensor_parallel_size=8, "
        "enforce_eager=False, kv_cache_dtype=fp8, enable_prefix_caching=True"
    )
    for worker in WORKERS:
        yield f"{worker}INFO {stamp} [cuda.py:300] Using FLASHINFER attention backend out of: []"
        for layer in range(3):
            yield f"{worker}INFO {stamp} [loader.py:{layer}] Loading weights took {layer}.50 s"
    yield f"{CORE}INFO {stamp} [kv_cache_utils.py:1] GPU KV cache size: 500,000 tokens"


def serving(source: random.Random) -> Iterator[str]:
    """Lines of requests and steps without end, measurements every 500."""
    step = 0
    while True:
        step += 1
        second = step // 50
        stamp = f"08-24 {10 + second // 3600 % 14}:{second // 60 % 60:02}:{second % 60:02}"
        kind = source.random()
        if step % 500 == 0:
            yield (
                f"{API}INFO {stamp} [loggers.py:259] Engine 000: Avg prompt throughput: 123.4 "
                f"tokens/s, Avg generation throughput: {source.random() * 900:.1f} tokens/s, "
                f"Running: {source.randrange(9)} reqs, Waiting: 0 reqs, GPU KV cache usage: "
                f"{source.random() * 80:.1f}%, Prefix cache hit rate: 43.2%"
            )
            yield (
                f"{API}INFO {stamp} [metrics.py:100] SpecDecoding metrics: Mean acceptance length: "
                "3.16, Accepted throughput: 10.0 tokens/s, Drafted throughput: 20.0 tokens/s, "
                "Accepted: 1216 tokens, Drafted: 5630 tokens, Per-position acceptance rate: 0.844, "
                "0.600, 0.378, 0.222, Avg Draft acceptance rate: 43.2%"
            )
        elif kind < 0.3:
            port = source.randrange(10_000)
            yield f'{API}INFO:     client:{port} - "POST /v1/chat/completions HTTP/1.1" 200 OK'
        elif kind < 0.5:
            name = f"{source.getrandbits(128):032x}"
            yield (
                f"{API}INFO {stamp} [logger.py:43] Received request chatcmpl-{name}: params: "
                "SamplingParams(n=1, temperature=0.7, top_p=0.9, max_tokens=2048), lora: None."
            )
        elif kind < 0.7:
            name = f"{source.getrandbits(128):032x}"
            yield f"{API}INFO {stamp} [async_llm.py:305] Added request chatcmpl-{name}."
        else:
            worker = source.choice(WORKERS)
            tokens = source.randrange(4096)
            yield f"{worker}DEBUG {stamp} [gpu_model_runner.py:2201] step of {tokens} tokens, FULL"


def failure(stamp: str) -> Iterator[str]:
    """Tracebacks of all workers, interleaved, then what follows: about 200 lines."""
    record = f"ERROR {stamp} [multiproc_executor.py:824] "
    path = "/usr/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py"
    lines = [
        "WorkerProc hit an exception.",
        "Traceback (most recent call last):",
        *(
            text
            for frame in range(8)
            for text in (f'  File "{path}", line {frame + 100}, in step_{frame}', "    self.step()")
        ),
        f"torch.AcceleratorError: {ILLEGAL}",
        "CUDA kernel errors might be asynchronously reported at some other API call.",
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
    ]
    yield from (f"{worker}{record}{line}" for line in lines for worker in WORKERS)
    yield f"{CORE}ERROR {stamp} [core.py:1000] EngineCore encountered a fatal error."
    for rank in range(8):
        yield (
            f"[rank{rank}]:[E0825 00:10:00.1 ProcessGroupNCCL.cpp:2057] [PG ID 2 Rank {rank}] "
            f"Process group watchdog thread terminated with exception: {ILLEGAL}"
        )
