"""How processes end: core dumps, dead engines and workers, hangs, the scheduler's dump."""

from __future__ import annotations

import pytest

from specrepro.repro.diagnose.facts import Fact, Value
from specrepro.repro.diagnose.read import read_text

ILLEGAL = "CUDA error: an illegal memory access was encountered"
STAMP = "08-24 10:46:43 [multiproc_executor.py:824]"


def facts(text: str, kind: str) -> list[Fact]:
    return read_text("a.log", text).of(kind)


def only(text: str, kind: str) -> Fact:
    found = facts(text, kind)
    assert len(found) == 1, found
    return found[0]


def values(fact: Fact, *names: str) -> tuple[Value, ...]:
    return tuple(fact.values[name] for name in names)


def test_a_core_dump_names_exception_and_kernel() -> None:
    text = "\n".join(
        f"[10:00:00.00000{n}] coredump: {line}"
        for n, line in enumerate(
            [
                "Detected an exception of type CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS (14)",
                "  - Device: 1",
                "  - SM: 7",
                "  - Warp: 3",
                "  - PC 0x7f00aa",
                "#0 0x7f00aa _Z6kernelPi",
                "Writing ELF file to core.7",
            ]
        )
    )
    found = facts(text, "coredump")
    assert values(found[0], "exception", "fault", "device", "sm", "kernel") == (
        "CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS", "illegal_access", 1, 7, "_Z6kernelPi",
    )  # fmt: skip
    assert found[-1].values["written"] == "core.7"


def test_cuda_gdb_names_kernel_block_and_thread() -> None:
    text = """CUDA Exception: Warp Illegal Address
The exception was triggered at PC 0x7f00aa  precopy_mamba_align_fused_kernel (mamba_utils.py:88)
[Current focus set to CUDA kernel 0, grid 12, block (3,0,0), thread (32,0,0), device 0, sm 4]
#0  precopy_mamba_align_fused_kernel<<<(8,1,1),(128,1,1)>>> () at mamba_utils.py:88
"""
    found = facts(text, "coredump")
    assert values(found[0], "exception", "fault") == ("Warp Illegal Address", "illegal_access")
    kernels = {fact.values["kernel"] for fact in found if fact.values["kernel"]}
    assert kernels == {"precopy_mamba_align_fused_kernel"}
    focus = next(fact for fact in found if fact.values["thread"])
    assert values(focus, "grid", "block", "thread", "device", "sm") == (
        "12",
        "3,0,0",
        "32,0,0",
        0,
        4,
    )
    assert {fact.values["file_line"] for fact in found} == {88}


@pytest.mark.parametrize(
    ("line", "kind", "expected"),
    [
        ("EngineCore encountered a fatal error.", "engine_dead", {"what": "fatal"}),
        (
            "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.",
            "engine_dead",
            {"what": "EngineDeadError"},
        ),
        (
            "Worker proc VllmWorker-1 died unexpectedly, shutting down executor.",
            "worker_died",
            {"worker": "VllmWorker-1", "exit_code": None},
        ),
        (
            "Worker proc VllmWorker-1 died unexpectedly (exit code: -6), shutting down executor.",
            "worker_died",
            {"worker": "VllmWorker-1", "exit_code": -6},
        ),
        (
            "No available shared memory broadcast block found in 60 seconds.",
            "hang",
            {"sign": "shm_broadcast", "seconds": 60.0},
        ),
        ("TimeoutError: RPC call to sample_tokens timed out.", "hang", {"sign": "sample_timeout"}),
        ("RPC call to execute_model timed out.", "hang", {"sign": "rpc_timeout"}),
        (
            "Watchdog timeout (self.watchdog_timeout=300)",
            "hang",
            {"sign": "watchdog", "seconds": 300.0},
        ),
        ("vllm-1 exited with code 139", "exit", {"status": 139, "signal": "SIGSEGV"}),
        (
            "Main process exited, code=killed, status=9/KILL",
            "exit",
            {"status": 9, "signal": "SIGKILL"},
        ),
        ("vllm-1 exited with code 0", "exit", {"status": 0, "signal": None}),
        ("Aborted (core dumped)", "exit", {"status": None, "signal": "SIGABRT"}),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has",
            "oom",
            {"where": "device", "wanted": "2.00 GiB"},
        ),
        (
            'RuntimeError: torch_call_dispatcher( "aten::new_empty", "") API call failed at a.h',
            "oom",
            {"where": "disguised"},
        ),
        (
            "[99.1] Out of memory: Killed process 77 (VLLM::EngineCor) total-vm:1kB",
            "oom",
            {"where": "host", "wanted": "VLLM::EngineCor"},
        ),
        (
            "[rank1]: ncclRemoteError: A call failed possibly due to a network error",
            "nccl_error",
            {"what": "remote"},
        ),
        (
            "[gloo/transport/tcp/pair.cc:534] Connection closed by peer",
            "gloo_error",
            {"what": "connection_closed"},
        ),
        (
            "Engine core initialization failed. See root cause above.",
            "start_failure",
            {"what": "engine core failed to start"},
        ),
    ],
)
def test_how_processes_end(line: str, kind: str, expected: dict[str, Value]) -> None:
    found = facts(f"x\n{line}\n", kind)
    assert len(found) == 1, found
    assert {name: found[0].values[name] for name in expected} == expected
    assert found[0].line == 2


def test_a_collective_timeout_is_a_hang_with_its_operation() -> None:
    line = (
        "[rank0]:[E0824 10:56:44.1 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=77, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, "
        "Timeout(ms)=600000) ran for 600021 milliseconds before timing out."
    )
    fact = only(line, "nccl_error")
    assert values(fact, "what", "operation", "sequence", "milliseconds") == (
        "timeout", "ALLREDUCE", 77, 600021,
    )  # fmt: skip
    assert values(only(line, "hang"), "sign", "seconds") == ("collective_timeout", 600.021)


def test_the_dump_of_the_scheduler_counts_and_marks_placeholders() -> None:
    line = (
        f"(EngineCore pid=5) ERROR {STAMP} Dumping scheduler output for model execution: "
        "SchedulerOutput(scheduled_new_reqs=[NewRequestData(req_id='r9', num_computed_tokens=0)], "
        "scheduled_cached_reqs=CachedRequestData(req_ids=['r1', 'r2'], num_computed_tokens=[120, "
        "33021]), num_scheduled_tokens={'r1': 6, 'r2': 6, 'r9': 18}, "
        "total_num_scheduled_tokens=30, "
        "scheduled_spec_decode_tokens={'r1': [-1, -1, -1, -1, -1]})"
    )
    fact = only(line, "scheduler_dump")
    names = ("requests", "scheduled_tokens", "placeholders", "new_requests", "longest")
    assert values(fact, *names) == (3, 30, True, 1, 33021)
    assert only(line, "false_clue").values["name"] == "placeholder_tokens"
    assert [f.values["id"] for f in facts(line, "request")] == ["r1", "r2", "r9"]


def test_failures_of_one_life_of_an_engine_are_one_incident_and_a_restart_begins_another() -> None:
    start = "(APIServer pid=1) INFO 08-24 {}:00:00 [utils.py:9] vLLM API server version 0.27.1"
    fail = "(Worker_TP0 pid=9) ERROR 08-24 {}:30:00 [a.py:1] RuntimeError: " + ILLEGAL
    dead = "(EngineCore pid=5) ERROR 08-24 {}:30:01 [a.py:1] EngineCore encountered a fatal error."
    lines = [line.format(hour) for hour in ("10", "12") for line in (start, fail, dead)]
    reading = read_text("a.log", "\n".join(lines))
    assert [(i.session, i.first_line, i.last_line) for i in reading.incidents] == [
        (0, 2, 3),
        (1, 5, 6),
    ]
    for incident in reading.incidents:
        kinds = [reading.facts[index].kind for index in incident.facts]
        assert kinds == ["cuda_error", "python_exception", "engine_dead"]


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: No available memory for the cache blocks. Try increasing it.",
        "ValueError: (16.00 GiB KV cache is needed, which is larger than the available KV cache "
        "memory (9.12 GiB).",
    ],
)
def test_a_cache_that_has_no_room_is_no_allocation_that_failed(line: str) -> None:
    [found] = facts(line + "\n", "oom")
    assert found.values["where"] == "cache"
