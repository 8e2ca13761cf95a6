"""Failures as processes print them: CUDA errors, device asserts, Python tracebacks."""

from __future__ import annotations

import pytest

from specrepro.repro.diagnose.facts import Certainty, Fact, Value
from specrepro.repro.diagnose.read import read_text

ILLEGAL = "CUDA error: an illegal memory access was encountered"
STAMP = "08-24 10:46:43 [multiproc_executor.py:824]"
WORKERS = [f"(Worker_TP{n} pid={90 + n}) ERROR {STAMP}" for n in (0, 1)]
NOTES = [
    "Search for `cudaErrorIllegalAddress' in the manual for more information.",
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace "
    "below might be incorrect.",
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
]
PACKAGES = "/usr/lib/python3.12/site-packages"
TRACE = [
    "Traceback (most recent call last):",
    f'  File "{PACKAGES}/vllm/v1/worker/gpu_worker.py", line 12, in execute_model',
    "    output = self.model_runner.execute_model(scheduler_output)",
    "             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
    f'  File "{PACKAGES}/vllm/v1/worker/gpu_model_runner.py", line 34, in build',
    "    seq_lens = common.seq_lens_cpu",
    f"torch.AcceleratorError: {ILLEGAL}",
    *NOTES,
]


def facts(text: str, kind: str) -> list[Fact]:
    return read_text("a.log", text).of(kind)


def only(text: str, kind: str) -> Fact:
    found = facts(text, kind)
    assert len(found) == 1, found
    return found[0]


def values(fact: Fact, *names: str) -> tuple[Value, ...]:
    return tuple(fact.values[name] for name in names)


@pytest.mark.parametrize(
    ("line", "fault", "code", "reporter"),
    [
        (f"RuntimeError: {ILLEGAL}", "illegal_access", 700, "torch"),
        (f"torch.AcceleratorError: {ILLEGAL}", "illegal_access", 700, "torch"),
        ("CUDA error: misaligned address", "misaligned_access", 716, "torch"),
        ("CUDA error: an illegal instruction was encountered", "illegal_instruction", 715, "torch"),
        ("CUDA error: device-side assert triggered", "device_assert", 710, "torch"),
        ("CUDA error: unspecified launch failure", "launch_failure", 719, "torch"),
        ("CUDA error: uncorrectable ECC error encountered", "ecc", 214, "torch"),
        (
            "RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered",
            "illegal_access",
            700,
            "triton",
        ),
        (
            "x.cuh: line 9 at function cudaLaunchKernel CUDA Error: an illegal memory access was "
            "encountered (700)",
            "illegal_access",
            700,
            "flashinfer",
        ),
        (
            "Failed: Cuda error /a/csrc/custom_all_reduce.cuh:455 'an illegal memory access was "
            "encountered'",
            "illegal_access",
            700,
            "custom_all_reduce",
        ),
        (
            "RuntimeError: CUDA driver error: CUDA_ERROR_ILLEGAL_ADDRESS",
            "illegal_access",
            700,
            "driver",
        ),
        (
            "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemm(h)`",
            "other",
            None,
            "cublas",
        ),
        (
            "RuntimeError: CUDA error: operation not permitted when stream is capturing",
            "other",
            None,
            "torch",
        ),
    ],
)
def test_a_cuda_error_is_told_by_its_message_whoever_reports_it(
    line: str, fault: str, code: int | None, reporter: str
) -> None:
    fact = only(f"start\n{line}\n", "cuda_error")
    assert values(fact, "fault", "code") == (fault, code)
    assert fact.values["reporter"] == reporter
    assert (fact.line, fact.text, fact.certainty) == (2, line, Certainty.OBSERVED)


@pytest.mark.parametrize(
    "line",
    [
        *NOTES,
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        "# CUDA error handling",
        "Compile with TORCH_USE_CUDA_DSA, cudaError is checked",
    ],
)
def test_remarks_about_errors_are_no_errors(line: str) -> None:
    assert facts(line, "cuda_error") == []
    assert facts(line, "environment") == []


def test_the_note_makes_the_stack_asynchronous_and_blocking_launches_make_it_true() -> None:
    text = "\n".join([f"RuntimeError: {ILLEGAL}", *NOTES])
    assert only(text, "cuda_error").values["stack"] == "asynchronous"
    assert (
        only(f"export CUDA_LAUNCH_BLOCKING=1\n{text}", "cuda_error").values["stack"] == "blocking"
    )
    assert only(f"RuntimeError: {ILLEGAL}", "cuda_error").values["stack"] == "unknown"


def test_words_of_parents_watchdogs_and_destructors_are_secondary() -> None:
    lines = [
        f"RuntimeError: Worker failed with error '{ILLEGAL}', please check the stack trace above",
        f"[rank1]:[E0824 10:56:44.1 ProcessGroupNCCL.cpp:2057] [PG ID 2 Rank 1] Process group "
        f"watchdog thread terminated with exception: {ILLEGAL}",
        "[rank3]:[W0824 10:46:44.2 CUDAEvent.h:57] Warning: CUDA warning: an illegal memory access "
        "was encountered (function ~CUDAEvent)",
    ]
    for line in lines:
        assert only(line, "cuda_error").values["secondary"] is True
    assert only(f"RuntimeError: {ILLEGAL}", "cuda_error").values["secondary"] is False


def test_an_error_that_a_narrow_terminal_broke_is_whole() -> None:
    for broken in (
        "RuntimeError: CUDA error: an illegal memory\naccess was encountered",
        "RuntimeError: CUDA error: an\nillegal memory access was encountered",
        "RuntimeError: CUDA error:\nan illegal memory access was encountered",
    ):
        assert facts(broken, "cuda_error")[0].values["fault"] == "illegal_access"


def test_the_tracebacks_of_two_workers_that_wrote_at_once_are_two() -> None:
    lines = [f"{worker} {line}" for line in TRACE for worker in WORKERS]
    found = facts("\n".join(lines), "python_exception")
    assert [fact.rank for fact in found] == ["TP0", "TP1"]
    for fact in found:
        assert values(fact, "class", "top", "bottom") == (
            "torch.AcceleratorError",
            "vllm/v1/worker/gpu_model_runner.py:34 build",
            "vllm/v1/worker/gpu_worker.py:12 execute_model",
        )
    errors = facts("\n".join(lines), "cuda_error")
    assert [(fact.rank, fact.values["stack"]) for fact in errors] == [
        ("TP0", "asynchronous"),
        ("TP1", "asynchronous"),
    ]


def test_a_traceback_says_runner_and_waiting_code() -> None:
    reading = read_text("a.log", "\n".join(TRACE))
    assert [values(f, "version", "origin") for f in reading.of("runner")] == [("v1", "frame")]
    assert [fact.values["name"] for fact in reading.of("false_clue")] == ["waiting_frame"]
    v2 = "\n".join(TRACE).replace("worker/gpu_model_runner.py", "worker/gpu/model_runner.py")
    assert read_text("a.log", v2).of("runner")[0].values["version"] == "v2"


def test_a_traceback_without_its_beginning_or_its_end_is_kept_as_far_as_it_goes() -> None:
    headless = only("\n".join(TRACE[3:]), "python_exception")
    assert headless.values["class"] == "torch.AcceleratorError"
    assert headless.values["frames"] == ("vllm/v1/worker/gpu_model_runner.py:34 build",)
    tailless = only("\n".join(TRACE[:6]), "python_exception")
    assert tailless.values["class"] is None
    assert tailless.values["top"] == "vllm/v1/worker/gpu_model_runner.py:34 build"


def test_a_traceback_that_another_led_to_is_chained() -> None:
    text = "\n".join(
        [
            *TRACE[:7],
            "",
            "The above exception was the direct cause of the following exception:",
            "",
            "Traceback (most recent call last):",
            '  File "/usr/lib/python3.12/site-packages/vllm/v1/engine/core.py", line 5, in run',
            "    raise EngineDeadError()",
            "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack "
            "trace (above) for the root cause.",
        ]
    )
    found = facts(text, "python_exception")
    assert [values(fact, "class", "chained") for fact in found] == [
        ("torch.AcceleratorError", False),
        ("vllm.v1.engine.exceptions.EngineDeadError", True),
    ]


def test_raw_lines_of_a_traceback_are_of_the_process_that_began_it() -> None:
    text = "\n".join(
        [
            "[2026-08-24 10:02:01 TP3] Scheduler hit an exception: " + TRACE[0],
            *TRACE[1:],
            "",
            "CUDA error: misaligned address",
        ]
    )
    found = facts(text, "cuda_error")
    assert [(fact.rank, fact.time is None) for fact in found] == [("TP3", False), (None, True)]


def test_the_same_traceback_again_is_counted_not_repeated() -> None:
    once = [f"{WORKERS[0]} {line}" for line in TRACE]
    fact = only("\n".join(once * 5), "python_exception")
    assert (fact.count, fact.line, fact.last_line) == (5, 1, 1 + 4 * len(TRACE))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "/p/ATen/native/cuda/IndexKernelUtils.cu:16: vectorized_gather_kernel: block: [7,0,0], "
            'thread: [3,0,0] Assertion `ind >=0 && ind < ind_dim_size && "out of bounds"` failed.',
            ("IndexKernelUtils.cu", 16, "vectorized_gather_kernel", "7,0,0", "3,0,0"),
        ),
        (
            "/c/xy.py:25: unknown: block: [0,0,0], thread: [9,0,0] Assertion `index out of bounds: "
            "0 <= tmp6 < 2048` failed.",
            ("xy.py", 25, "unknown", "0,0,0", "9,0,0"),
        ),
    ],
)
def test_a_device_assert_says_kernel_place_and_condition(
    line: str, expected: tuple[object, ...]
) -> None:
    fact = only(line, "device_assert")
    names = ("file", "file_line", "function", "block", "thread")
    assert values(fact, *names) == expected
    assert "out of bounds" in str(fact.values["expression"])


def test_asserts_of_many_threads_are_one_fact() -> None:
    line = "/a/I.cu:15: indexSelect: block: [0,0,0], thread: [{},0,0] Assertion `x` failed."
    fact = only("\n".join(line.format(n) for n in range(1000)), "device_assert")
    assert (fact.count, fact.values["thread"]) == (1000, "0,0,0")


def test_an_exception_is_known_by_its_module_whatever_its_class_is_called() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/x/site-packages/triton/compiler/compiler.py", line 440, in _init_handles\n'
        "    raise OutOfResources(self.metadata.shared, max_shared, 'shared memory')\n"
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 147456, "
        "Hardware limit: 101376. Reducing block sizes or `num_stages` may help.\n"
    )
    [found] = read_text("a.log", text).of("python_exception")
    assert found.values["class"] == "triton.runtime.errors.OutOfResources"
    assert str(found.values["message"]).startswith("out of resource: shared memory")


def test_another_programs_line_does_not_end_a_traceback() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/x/site-packages/vllm/a.py", line 4, in f\n'
        "INFO:     Shutting down\n"
        "vllm.v1.engine.exceptions.EngineGone\n"
    )
    [found] = read_text("a.log", text).of("python_exception")
    assert found.values["class"] == "vllm.v1.engine.exceptions.EngineGone"


@pytest.mark.parametrize(
    ("line", "reporter"),
    [
        (
            "Failed: Cuda error /w/csrc/custom_all_reduce.cuh:455 'invalid argument'",
            "custom_all_reduce",
        ),
        ("node1:77:99 [0] NCCL WARN Cuda failure 'invalid argument'", "nccl"),
    ],
)
def test_a_quoted_message_that_is_not_known_is_an_error_all_the_same(
    line: str, reporter: str
) -> None:
    [found] = read_text("a.log", line + "\n").of("cuda_error")
    assert (found.values["fault"], found.values["reporter"]) == ("other", reporter)
    assert "invalid argument" in str(found.values["message"])
