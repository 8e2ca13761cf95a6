"""Broken logs, as many as wanted, and the rules that no reading may break.

python tests/diagnose/fuzz_reading.py [COUNT] [SEED]

The tests run 20,000 of them. The script says what broke, with the input, and how long the slowest
took; then it reads long lines of one character, behind everything that a parser looks for.
"""

from __future__ import annotations

import io
import json
import random
import sys
import time
from collections.abc import Iterator

from specrepro.repro.diagnose.facts import TEXT_LENGTH, Reading
from specrepro.repro.diagnose.read import read_streams
from specrepro.repro.diagnose.reading.registry import PARSERS
from specrepro.repro.diagnose.reading.windows import LONGEST
from specrepro.repro.diagnose.vocabulary import KINDS

_STAMP = "08-24 10:46:43 [a.py:1]"
_ILLEGAL = "CUDA error: an illegal memory access was encountered"
_CONFIG = (
    "model='m', speculative_config=SpeculativeConfig(method='mtp', model='d', num_spec_tokens=4), "
    "dtype=torch.bfloat16, max_seq_len=9, tensor_parallel_size=2, enforce_eager=False, "
    "enable_prefix_caching=True, compilation_config={'cudagraph_mode': <M.FULL: (2, 1)>, "
    "'cudagraph_capture_sizes': [1, 2]}"
)
# One for each form that is read; together they give every kind of fact but `claim`.
SEEDS: tuple[str, ...] = (
    f"(APIServer pid=1) INFO {_STAMP} vLLM API server version 0.27.1",
    f"(EngineCore pid=5) INFO {_STAMP} Initializing a V1 LLM engine (v0.27.1) with config: "
    f"{_CONFIG}",
    "non-default args: {'model_tag': 'm', 'mamba_cache_mode': 'align', 'block_size': 16, "
    "'async_scheduling': True}",
    'vllm serve m --max-model-len 256K \\\n  --speculative-config \'{"method": "mtp", '
    '"num_speculative_tokens": 3}\' \\\n  --no-async-scheduling',
    "docker run -e CUDA_LAUNCH_BLOCKING=1 -e VLLM_USE_V2_MODEL_RUNNER=1 vllm/vllm-openai:v0.27.1 "
    "--model m",
    "Using max model len 262144\nUsing max model len 131072\nOverriding draft model max model len "
    "from 262144 to 131072\nResolved architecture: Qwen3Next",
    "Selected FlashInferFP8ScaledMMLinearKernel for Fp8LinearMethod\nUsing FLASHINFER attention "
    "backend out of potential backends: []",
    "Capturing CUDA graphs (PIECEWISE):  67%|####  | 2/3\rCapturing CUDA graphs: 100%|######| 3/3",
    "GPU KV cache size: 1,234 tokens\nSetting attention block size to 1056 tokens",
    "vLLM Version : 0.27.1\nPyTorch version : 2.11.0+cu130\nGPU 0: NVIDIA H100 80GB HBM3\n"
    "Linux 6.6-microsoft-standard-WSL2",
    "Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 5.0 tokens/s, "
    "Running: 5 reqs, Waiting: 2 reqs, GPU KV cache usage: 21.4%, Prefix cache hit rate: 80.1%",
    "SpecDecoding metrics: Mean acceptance length: 3.16, Accepted: 1216 tokens, Drafted: 2815 "
    "tokens, Per-position acceptance rate: 0.844, 0.600, Avg Draft acceptance rate: 43.2%",
    "[2026-08-24 10:00:00 TP0] Decode batch. #running-req: 3, token usage: 0.25, accept len: 2.50, "
    "#queue-req: 1",
    f"(Worker_TP0 pid=9) ERROR {_STAMP} Traceback (most recent call last):\n"
    f"(Worker_TP0 pid=9) ERROR {_STAMP}   File "
    f'"/x/site-packages/vllm/v1/worker/gpu_model_runner.py"'
    ", line 12, in build\n"
    f"(Worker_TP0 pid=9) ERROR {_STAMP}     seq_lens_cpu = x\n"
    f"(Worker_TP0 pid=9) ERROR {_STAMP} torch.AcceleratorError: {_ILLEGAL}\n"
    f"(Worker_TP0 pid=9) ERROR {_STAMP} CUDA kernel errors might be asynchronously reported",
    "x.cuh: line 9 at function cudaLaunchKernel CUDA Error: an illegal memory access (700)",
    "/a/Indexing.cu:1515: indexSelect: block: [0,0,0], thread: [7,0,0] Assertion `x < y` failed.",
    "[12.5] NVRM: Xid (PCI:0000:0a:00): 31, pid=7, name=x, Ch 1, intr 0. MMU Fault: ENGINE "
    "GRAPHICS "
    "GPC3 GPCCLIENT_T1_5 faulted @ 0x7f12_34567000. Fault is of type FAULT_PDE "
    "ACCESS_TYPE_VIRT_READ",
    "Aug 24 10:00:00 box kernel: NVRM: Xid (PCI:0000:0a:00): 13, pid=7, name=x, Graphics SM Warp "
    "Exception on (GPC 1, TPC 2, SM 1): Misaligned Address",
    "[1.5] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 3",
    "[9.1] NVRM: krcWatchdog_IMPL: RC watchdog: GPU is probably locked!",
    "========= COMPUTE-SANITIZER\n========= Invalid __global__ write of size 4 "
    "bytes\n=========     "
    "at k+0x1f0 in toy.py:41\n=========     by thread (7,0,0) in block (2,0,0)\n=========     "
    "Access "
    "to 0x7f00 is out of bounds\n=========     and is 1,025 bytes after the nearest allocation at "
    "0x7e00 of size 512 bytes\n=========\n========= ERROR SUMMARY: 1 error",
    "[10:00:00.000001] coredump: Detected an exception of type "
    "CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS "
    "(14)\n[10:00:00.000002] coredump:   - Device: 0",
    "CUDA Exception: Warp Illegal Address\n[Current focus set to CUDA kernel 0, grid 12, block "
    "(3,0,0), thread (32,0,0), device 0, sm 4]\n#0  k<<<(8,1,1),(128,1,1)>>> () at a.py:88",
    "[rank0]:[E0824 10:56:44.1 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=77, OpType=ALLREDUCE, NumelIn=8, Timeout(ms)=600000) "
    "ran for "
    "600021 milliseconds before timing out.",
    f"[rank1]:[E0824 10:56:44.1 X.cpp:7] Process group watchdog thread terminated with exception: "
    f"{_ILLEGAL}",
    "[gloo/transport/tcp/pair.cc:534] Connection closed by peer",
    "EngineCore encountered a fatal error.\nEngineCore failed to start.\nWorker proc VllmWorker-1 "
    "died unexpectedly (exit code: -6), shutting down executor.\nvllm-1 exited with code 139",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "No available shared memory broadcast block found in 60 seconds.\nScheduled restart job",
    "Dumping scheduler output for model execution: SchedulerOutput(scheduled_new_reqs=[], "
    "num_scheduled_tokens={'r1': 6}, total_num_scheduled_tokens=6, scheduled_spec_decode_tokens="
    "{'r1': [-1, -1]})",
    "Mamba cache mode is set to 'align' for Qwen3Next by default\nUsing V2 Model Runner\n"
    "Asynchronous scheduling is enabled.\nEnforce eager set",
    "There appear to be 1 leaked semaphore objects to clean up",
    "!" * 40,
    "vllm-1  | 2026-08-24T10:00:00.123456789Z stderr F (RayWorkerWrapper pid=7, ip=fd00::1) "
    f"ERROR {_STAMP} RuntimeError: {_ILLEGAL} [repeated 7x across cluster]",
    json.dumps({"log": f"\x1b[31m{_ILLEGAL}\x1b[0m\n", "time": "2026-08-24T10:00:00Z"}),
    f"# Bug\nStill on v0.27.1, Xid 31\n\n```text\n{_ILLEGAL}\n```\nauthor:\tbob\n> "
    f"`--enforce-eager`",
    json.dumps([{"user": {"login": "bob"}, "body": f"hangs\n```\n{_ILLEGAL}\n```"}]),
)

_PIECES = (
    b"\x1b[31m", b"\x1b]0;", b"\x07", b"\0", b"\xff\xfe", b"\x80", b"\r", b"\n", b"\n\n", b"(",
    b"[", b"{", b"'", b'"', b"\\", b"=========", b"\xe2\x80\xae", b"\xe2\x80", b", ", b": ",
    b"(Worker_TP1 pid=8) ", b"9" * 400, b" " * 400, b"a" * 400, b"((((((((", b"[[[[[[[[", b"{{{{{{",
    b"```\n", b"> ", b'File "', b"Traceback (most recent call last):\n", b"- --", b'{"log":"',
)  # fmt: skip

_UNITS = (
    b" a", b"()", b"a=", b"a,", b"0x", b"x(", b"<<<", b": ", b"', ", b"a.", b"1 ", b"1,", b"\x1b[",
    b"{'a':", b"- --", b"--a ", b"A=1 ", b"> ", b"(A pid=1) ", b"\\'", b"a.cu:", b"VLLM_", b"sm_",
    b"0.1 ", b"1x ", b"\r", b"\xff",
)  # fmt: skip


def inputs(seed: int, count: int) -> Iterator[bytes]:
    """Broken logs: seeds cut, joined, shuffled, doubled, and pieces of noise put in."""
    source = random.Random(seed)  # noqa: S311
    seeds = [text.encode() for text in SEEDS]
    for _ in range(count):
        content = source.choice(seeds)
        for _ in range(source.randrange(1, 6)):
            content = _broken(content, seeds, source)[:4096]
        yield content


def _broken(content: bytes, seeds: list[bytes], source: random.Random) -> bytes:
    at = source.randrange(len(content) + 1)
    match source.randrange(8):
        case 0:
            return content[:at]
        case 1:
            return content[at:]
        case 2:
            return content[:at] + source.choice(_PIECES) + content[at:]
        case 3:
            return content[:at] + source.choice(seeds) + content[at:]
        case 4:
            return content + b"\n" + source.choice(seeds)
        case 5:
            lines = content.split(b"\n")
            source.shuffle(lines)
            return b"\n".join(lines)
        case 6:
            return content[:at] + bytes([source.randrange(256)]) + content[at + 1 :]
        case _:
            end = min(len(content), at + source.randrange(40))
            return content[:end] + content[at:end] * source.randrange(1, 9) + content[end:]


def _long_lines() -> Iterator[tuple[bytes, bytes, int]]:
    """1 MB of each byte; and behind each trigger each byte and unit, as long as a line is read."""
    single = [bytes([number]) for number in range(256)]
    yield from ((b"", unit, 1_000_000) for unit in single)
    triggers = sorted({trigger.encode() for parser in PARSERS for trigger in parser.triggers})
    for head in triggers:
        yield from ((head, unit, LONGEST) for unit in (*single[32:127], *_UNITS))


def broken_rules(reading: Reading) -> list[str]:
    """What a reading does that none may: unknown kinds or values, unprintable text, failed "
    "parsers."""
    found = [entry.what for entry in reading.unread if "failed" in entry.what]
    for fact in reading.facts:
        if fact.kind not in KINDS or not set(fact.values) <= set(KINDS[fact.kind]):
            found.append(f"{fact.kind} {sorted(fact.values)} is not in the vocabulary")
        if missing := set(KINDS.get(fact.kind, ())) - set(fact.values):
            found.append(f"{fact.kind} lacks {sorted(missing)}")
        strings = [fact.text, fact.rank or "", *_strings(tuple(fact.values.values()))]
        if not all(text.isprintable() for text in strings):
            found.append(f"{fact.kind} holds what is not printable")
        if len(fact.text) > TEXT_LENGTH or fact.line < 1 or fact.count < 1:
            found.append(f"{fact.kind} breaks a bound")
    return found


def _strings(values: tuple[object, ...]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple):
            yield from _strings(value)


def main(arguments: list[str]) -> int:
    count = int(arguments[0]) if arguments else 1_000_000
    seed = int(arguments[1]) if len(arguments) > 1 else 0
    slowest, failures = (0.0, b""), 0
    for content in inputs(seed, count):
        start = time.process_time()
        found = broken_rules(read_streams([("a", io.BytesIO(content))]))
        slowest = max(slowest, (time.process_time() - start, content))
        if found:
            failures += 1
            print(f"{found[:3]} of {content!r}")
    print(
        f"{count} inputs, {failures} broke a rule; slowest {slowest[0]:.3f} s: {slowest[1][:300]!r}"
    )
    worst = (0.0, b"")
    for head, unit, size in _long_lines():
        start = time.process_time()
        read_streams([("a", io.BytesIO(head + (unit * size)[:size]))])
        worst = max(worst, (time.process_time() - start, head + unit))
    print(f"long lines of one character or unit: at most {worst[0]:.3f} s: {worst[1]!r}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
