"""Every kind of fact and its values. Rules of fault classes may name these and nothing else.

Values are None where the line lacked the field. Units stand in the names or behind them. A kind in
FAILURES says that something went wrong; FIRST of them may be a first failure, the others are
consequences of an earlier one or say nothing about order.
"""

from __future__ import annotations

# What a fault can be called independently of who noticed it (value `fault` of several kinds).
FAULTS = (
    "illegal_access",  # 700, Xid 31, "illegal memory access", warp illegal address
    "misaligned_access",  # 716
    "illegal_instruction",  # 715
    "launch_failure",  # 719: under compute-sanitizer the same as illegal_access
    "device_assert",  # 710
    "hardware_stack",  # 714
    "invalid_pc",  # 718, 717 too
    "launch_timeout",  # 702
    "out_of_memory",  # 2
    "ecc",  # 214
    "nvlink",  # 220
    "contained",  # 226
    "no_device",  # 100, 35, 803, 999 at start
    "other",
)

# kind → value → what it is
KINDS: dict[str, dict[str, str]] = {
    # ---- what ran
    "engine": {
        "name": "vllm, sglang, tensorrt-llm, llama.cpp",
        "version": "as written, without a leading v; '' where only the engine is named",
        "commit": "from a local version or a build line",
        "origin": "banner, init, dump, image, collect_env, wheel, prose, frame or prefix (a form "
        "of this engine; no version)",
    },
    "image": {"name": "container image", "tag": "its tag"},
    "runner": {
        "version": "v1 or v2",
        "origin": "log (`Using V2 Model Runner`), fallback, environment, frame (a path of a stack)",
    },
    "model": {"name": "as given", "role": "target or draft"},
    "architecture": {"name": "class name", "role": "target, draft, or unknown"},
    "engine_argument": {
        "name": "long option with underscores, without dashes; fields of speculative_config and "
        "compilation_config as speculative_config.num_speculative_tokens",
        "value": "bool, number or text",
        "origin": "command (a shell line), given (non-default args), effective (config dump), "
        "prose",
    },
    "command": {"line": "the start command, one line", "engine": "whose it is"},
    "parallel": {"dimension": "tp, pp, dp, ep, pcp, dcp", "size": "number of ranks"},
    "speculation": {
        "method": "mtp, eagle, eagle3, ngram, …; as given",
        "k": "num_speculative_tokens",
        "model": "draft model",
        "enabled": "False where the config says none",
    },
    "attention_backend": {
        "name": "FLASHINFER, FLASH_ATTN, …",
        "role": "model, mla, vit, gdn, or None",
    },
    "kernel_selected": {"kernel": "class or backend name", "use": "what for"},
    "graph_mode": {
        "mode": "NONE, PIECEWISE, FULL, FULL_AND_PIECEWISE, FULL_DECODE_ONLY",
        "eager": "True with enforce_eager",
    },
    "capture_sizes": {"sizes": "at most 64 of them", "largest": "tokens", "count": "how many"},
    "graph_capture": {"phase": "text of the progress bar", "done": "captured", "total": "of"},
    "async_scheduling": {"on": "bool", "origin": "log, given, command, effective"},
    "prefix_caching": {"on": "bool", "origin": "as above"},
    "mamba_cache_mode": {"mode": "align, all, none", "origin": "log or argument"},
    "block_size": {"name": "block_size, mamba_block_size, attention", "tokens": "size"},
    "max_model_len": {
        "tokens": "length",
        "role": "target, draft, unknown: the first line of a start is the target's",
        "order": "1 for the first line of this start, 2 for the second…",
    },
    "draft_length_override": {"before": "tokens", "after": "tokens"},
    "dtype": {"what": "weights, kv_cache, quantization", "value": "as written"},
    "library": {
        "name": "torch, cuda, flashinfer, triton, nccl, driver, cudnn, transformers, python, …",
        "version": "as written",
    },
    "gpu": {
        "name": "product name",
        "index": "number",
        "capability": "12.0, sm_120",
        "count": "how many",
    },
    "host": {"name": "of the machine, from a carrier", "system": "WSL, gVisor, … where it says so"},
    "environment": {"name": "variable", "value": "text; '' where not given"},
    "kv_cache": {
        "tokens": "GPU KV cache size",
        "blocks": "number of GPU blocks",
        "concurrency": "x",
    },
    # ---- how it went
    "load": {
        "running": "requests",
        "waiting": "requests",
        "kv_usage": "per cent",
        "prefix_hit_rate": "per cent",
        "prompt_throughput": "tokens/s",
        "generation_throughput": "tokens/s",
        "preemptions": "count",
        "corrupted": "requests with NaN in logits",
    },
    "spec_metrics": {
        "mean_acceptance_length": "tokens, with the bonus token; 1.0 is nothing accepted",
        "per_position": "tuple of rates, 0 to 1",
        "accepted": "tokens",
        "drafted": "tokens",
        "acceptance_rate": "per cent",
    },
    "metrics_summary": {
        "of": "load or spec_metrics",
        "field": "value it sums up",
        "minimum": "over all lines of the source",
        "maximum": "as above",
        "first": "value",
        "last": "value",
        "lines": "how many were seen",
    },
    "request": {"id": "request id", "state": "scheduled, finished, aborted, cached, added"},
    "scheduler_dump": {
        "requests": "number in the step",
        "scheduled_tokens": "total",
        "placeholders": "True where drafts are [-1, …]; a false clue",
        "new_requests": "number",
        "longest": "most computed tokens of one request",
    },
    # ---- failures that may come first
    "cuda_error": {
        "fault": "one of FAULTS",
        "name": "cudaErrorIllegalAddress, CUDA_ERROR_…; None where only prose was printed",
        "code": "number; None where not printed",
        "message": "text of the runtime",
        "api": "call or place that noticed it",
        "reporter": "torch, triton, flashinfer, nccl, custom_all_reduce, ggml, sanitizer, cublas, "
        "driver, other",
        "stack": "asynchronous (the note about it was printed), blocking (CUDA_LAUNCH_BLOCKING=1 "
        "seen), unknown",
        "secondary": "True where it is a destructor's or watchdog's word of an earlier one",
    },
    "device_assert": {
        "file": "base name",
        "file_line": "number",
        "function": "kernel",
        "block": "x,y,z",
        "thread": "x,y,z",
        "expression": "condition that failed",
    },
    "xid": {
        "code": "number",
        "mnemonic": "of the catalog; None for unknown codes",
        "class": "application, hardware, driver, consequence, either, information, unknown",
        "fault": "one of FAULTS or None",
        "bus": "PCI address",
        "pid": "of the host",
        "process_name": "name",
        "body": "raw, printable",
        "access": "READ, WRITE, ATOMIC, PREFETCH",
        "fault_type": "PDE, PTE, PRIV_VIOLATION, …",
        "engine": "GRAPHICS, CE2, …",
        "client": "GPCCLIENT_T1_5, HUBCLIENT_…",
        "address": "hexadecimal with 0x, no underscore",
        "detail": "Out Of Range Address, Misaligned Address, ESR 0x…",
        "caused_by": "number of an earlier Xid",
        "action": "of the catalog",
    },
    "sxid": {"code": "number", "bus": "PCI address", "body": "raw"},
    "kernel_log": {"what": "bus_loss, gsp, oom_kill, watchdog, nvlink, aer, mce", "body": "raw"},
    "sanitizer_error": {
        "tool": "memcheck, racecheck, initcheck, synccheck, None",
        "record": "kind of record: access, api, race, uninitialised, barrier, leak, unused, other",
        "space": "global, shared, local, remote_shared",
        "direction": "read, write, atomic, prefetch",
        "bytes": "width",
        "kernel": "name",
        "offset": "hexadecimal",
        "file": "of the source line",
        "file_line": "number",
        "thread": "x,y,z",
        "block": "x,y,z",
        "address": "hexadecimal",
        "reason": "out of bounds, misaligned, …",
        "distance": "bytes from the nearest allocation",
        "side": "after, before, inside",
        "allocation": "its address",
        "allocation_bytes": "its size",
        "fault": "one of FAULTS or None",
    },
    "sanitizer_run": {
        "header": "bool",
        "summary": "errors counted, or None without a summary line",
        "outcome": "clean, errors, unknown",
        "reason": "why unknown",
    },
    "coredump": {
        "exception": "CUDBG_EXCEPTION_… or cuda-gdb's words",
        "fault": "one of FAULTS or None",
        "device": "number",
        "sm": "number",
        "kernel": "demangled as printed",
        "grid": "number or x,y,z",
        "block": "x,y,z",
        "thread": "x,y,z",
        "file": "of the source line",
        "file_line": "number",
        "written": "path of the dump",
    },
    "oom": {
        "where": "device, host (killed by the kernel), capture, disguised, cache (no room for "
        "the KV cache is left)",
        "wanted": "as printed",
        "fault": "out_of_memory",
    },
    "python_exception": {
        "class": "with its module where printed",
        "message": "text",
        "top": "innermost frame `file:line function`",
        "bottom": "outermost frame",
        "frames": "up to 12 innermost frames, innermost first",
        "kernel_frames": "frames of engine, torch, triton, flashinfer files among all",
        "chained": "True where another traceback led to it",
    },
    "start_failure": {
        "what": "engine core failed to start, configuration refused",
        "message": "text",
    },
    "hang": {
        "sign": "shm_broadcast, rpc_timeout, watchdog, no_progress, sample_timeout, "
        "collective_timeout, heartbeat",
        "seconds": "waited",
        "running": "requests, for no_progress",
    },
    "garbage": {"sign": "repeated_token, gibberish, nan_logits", "token": "what repeats"},
    # ---- consequences
    "nccl_error": {
        "what": "watchdog (heard of a CUDA error), timeout, remote, system, unhandled, abort",
        "operation": "ALLREDUCE, …",
        "sequence": "number",
        "milliseconds": "waited",
        "fault": "one of FAULTS or None",
    },
    "gloo_error": {"what": "connection_closed, timeout, other"},
    "engine_dead": {"what": "EngineDeadError, fatal, core_failed, worker_exception, worker_failed"},
    "worker_died": {"worker": "name", "exit_code": "number or None"},
    "exit": {"status": "number", "signal": "SIGABRT, … or None", "what": "who ended"},
    "restart": {"what": "container or process started again"},
    # ---- what misleads
    "false_clue": {
        "name": "placeholder_tokens, waiting_frame, warmup, leaked_semaphore, tokenizer_fork, "
        "resource_tracker, chat_template, deprecated, length_log, sampling_defaults, "
        "xid_in_catalog",
        "why": "one sentence",
    },
    "claim": {
        "topic": "crash, hang, garbage, low_acceptance, no_crash, works, fails; says: a sentence "
        "that a claim of the rules fits",
        "subject": "what of: a version, an option, None",
    },
}

FIRST = frozenset(
    {
        "cuda_error",
        "device_assert",
        "xid",
        "sxid",
        "kernel_log",
        "sanitizer_error",
        "coredump",
        "oom",
        "python_exception",
        "start_failure",
        "hang",
    }
)
FAILURES = FIRST | {"nccl_error", "gloo_error", "engine_dead", "worker_died", "exit", "garbage"}
