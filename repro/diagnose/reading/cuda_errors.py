"""CUDA errors as torch, Triton, FlashInfer, NCCL, ggml and C++ print them, and device asserts.

Where the error was noticed is not where it happened, unless launches were blocking: every fact
says which it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .line import Following, Found, Line, Parser, State, joined
from .patterns import lazily

# Of a longer line the rest is not looked at.
REACH = 4096
# message → fault, runtime name, code (driver_types.h)
_MESSAGES: tuple[tuple[str, str, str, int], ...] = (
    ("illegal memory access", "illegal_access", "cudaErrorIllegalAddress", 700),
    ("misaligned address", "misaligned_access", "cudaErrorMisalignedAddress", 716),
    ("illegal instruction", "illegal_instruction", "cudaErrorIllegalInstruction", 715),
    ("unspecified launch failure", "launch_failure", "cudaErrorLaunchFailure", 719),
    ("device-side assert", "device_assert", "cudaErrorAssert", 710),
    ("hardware stack error", "hardware_stack", "cudaErrorHardwareStackError", 714),
    ("invalid program counter", "invalid_pc", "cudaErrorInvalidPc", 718),
    ("global/shared address space", "invalid_pc", "cudaErrorInvalidAddressSpace", 717),
    ("launch timed out", "launch_timeout", "cudaErrorLaunchTimeout", 702),
    ("out of memory", "out_of_memory", "cudaErrorMemoryAllocation", 2),
    ("uncorrectable ECC", "ecc", "cudaErrorECCUncorrectable", 214),
    ("uncorrectable NVLink", "nvlink", "cudaErrorNvlinkUncorrectable", 220),
    (
        "Invalid access of peer GPU memory over nvlink",
        "nvlink",
        "cudaErrorNvlinkUncorrectable",
        220,
    ),
    ("ontained", "contained", "cudaErrorContained", 226),
    ("no CUDA-capable device", "no_device", "cudaErrorNoDevice", 100),
    ("driver version is insufficient", "no_device", "cudaErrorInsufficientDriver", 35),
    ("system has unsupported display driver", "no_device", "cudaErrorSystemDriverMismatch", 803),
    ("context is destroyed", "other", "cudaErrorContextIsDestroyed", 709),
    ("unknown error", "other", "cudaErrorUnknown", 999),
)
NAMES = {name: (fault, code) for _, fault, name, code in _MESSAGES}
DRIVER_NAMES = {
    "CUDA_ERROR_ILLEGAL_ADDRESS": ("illegal_access", 700),
    "CUDA_ERROR_MISALIGNED_ADDRESS": ("misaligned_access", 716),
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": ("illegal_instruction", 715),
    "CUDA_ERROR_LAUNCH_FAILED": ("launch_failure", 719),
    "CUDA_ERROR_ASSERT": ("device_assert", 710),
    "CUDA_ERROR_HARDWARE_STACK_ERROR": ("hardware_stack", 714),
    "CUDA_ERROR_INVALID_PC": ("invalid_pc", 718),
    "CUDA_ERROR_LAUNCH_TIMEOUT": ("launch_timeout", 702),
    "CUDA_ERROR_OUT_OF_MEMORY": ("out_of_memory", 2),
    "CUDA_ERROR_ECC_UNCORRECTABLE": ("ecc", 214),
    "CUDA_ERROR_UNKNOWN": ("other", 999),
}
_NAMED = lazily(r"\b(?:cudaError[A-Z]\w{1,60}|CUDA_ERROR_[A-Z_]{1,60})")
# What a shell, a catalog or a help text says about errors is none.
_NOT_AN_ERROR = lazily(
    r"^\s*(?:#|//|if |for debugging|search for `|compile with|cuda kernel errors)", re.IGNORECASE
)
_SPOKEN = lazily(
    r"(?P<by>CUDA error|Cuda error|CUDA Error|CUDA warning|CUDA failure|Triton Error \[CUDA\]|"
    r"Cuda failure|CUDA driver error|cudaError\w{0,40}|CUDA_ERROR_\w{1,40}|CUBLAS_STATUS_\w{1,40})"
    r"(?: \d{1,4})?:? ?(?P<rest>.{0,600})"
)
_CODE = lazily(r"(?:\((?:error )?(\d{1,3})\)|[Ee]rror (?:code:? ?)?(\d{1,3})\b)")
# `Cuda error file.cuh:455 'invalid argument'`, `Cuda failure 'invalid argument'`
_QUOTED = lazily(r"(?:^|\s)'[a-z][^'\n]{3,160}'")
_FLASHINFER = lazily(r"(\S{1,300}\.cuh?):? line (\d{1,7}) at function (\w{1,80})")
_ALL_REDUCE = lazily(r"custom_all_reduce\.cuh:(\d{1,7})")
_GGML = lazily(r"current device: (-?\d{1,3}), in function (\w{1,80}) at (\S{1,300})")
_SECONDARY = lazily(
    r"Worker failed with error|watchdog thread terminated|CUDA warning|function ~|"
    r"what\(\): +\[PG |Failed to destroy|Failed to CUDA calls? (?:in|during) (?:the )?destructor|"
    r"ignored exception|Exception ignored|engine core output|EngineDeadError"
)
_ASSERT = lazily(
    r"(?P<file>\S{1,300}?):(?P<file_line>\d{1,9}): (?P<function>.{1,400}?): "
    r"block: \[(?P<block>[\d, ]{1,40})\], thread: \[(?P<thread>[\d, ]{1,40})\] "
    r"Assertion [`'\"](?P<expression>.{0,400}?)[`'\"]? failed"
)


def _error(line: Line, following: Following, state: State) -> Iterator[Found]:
    text = line.text[:REACH]
    if _NOT_AN_ERROR.match(text) or state.taken("cuda", line):
        return
    found = _SPOKEN.search(text)
    plain = next((m for m in _MESSAGES if m[0] in text), None)
    if found is None and plain is None:
        return
    if plain is None:
        # the message may stand on the next line: a wrapped line, FlashInfer's, ggml's
        whole = joined(line, following, 3)
        plain = next((m for m in _MESSAGES if m[0] in whole), None)
    by = found["by"] if found else "prose"
    name, fault, code = _identity(by, text, plain)
    if fault is None and (blas := re.search(r"CUBLAS_STATUS_\w{1,40}", text)):
        name, fault = blas[0], "other"
    if fault is None and (found is None or not _is_report(by, found["rest"])):
        return
    notes, last = _notes(line, following)
    named = re.search(r"`(cudaError\w{1,60})'", notes)
    if named and named[1] in NAMES:
        name, (fault, code) = named[1], NAMES[named[1]]
    if last > line.number:
        state.take("cuda", line, last)
    printed = _CODE.search(text)
    yield Found(
        "cuda_error",
        {
            "fault": fault or "other",
            "name": name,
            "code": code
            if code is not None
            else int(printed[1] or printed[2])
            if printed
            else None,
            "message": plain[0] if plain else (found["rest"].strip()[:160] if found else None),
            "api": _api(text, notes),
            "reporter": _reporter(by, text, notes, line),
            "stack": _stack(notes, state),
            "secondary": bool(_SECONDARY.search(text)),
        },
    )


def _identity(
    by: str, text: str, plain: tuple[str, str, str, int] | None
) -> tuple[str | None, str | None, int | None]:
    for said in _NAMED.findall(text):
        known = NAMES.get(said) or DRIVER_NAMES.get(said)
        if known:
            return said, *known
    if plain:
        return plain[2], plain[1], plain[3]
    return (by if by.startswith(("cudaError", "CUDA_ERROR_")) else None), None, None


def _is_report(by: str, rest: str) -> bool:
    """Whether words that name no known error still report one: "CUDA error: operation not…"."""
    if by in ("Cuda error", "Cuda failure", "CUDA failure"):
        return _QUOTED.search(rest) is not None
    said = ("CUDA error", "Triton Error [CUDA]", "CUDA Error", "CUDA driver error")
    return by in said and len(rest.strip()) > 3


def _notes(line: Line, following: Following) -> tuple[str, int]:
    """torch's remarks behind the message, and the last line of them."""
    notes: list[str] = []
    last = line.number
    for behind, other in enumerate(following()):
        text = other.text.strip()
        # the first remark stands right behind the message, but for what a terminal wrapped
        if (behind >= 4 and not notes) or len(notes) >= 6:
            break
        if text.startswith(
            (
                "CUDA kernel errors might",
                "For debugging consider",
                "Search for `cudaError",
                "Compile with `TORCH_USE",
                "Device-side assertion tracking",
                "current device:",
                "in function",
            )
        ):
            notes.append(text[:400])
            last = other.number
        elif (notes and text) or len(text) > 400:
            break
    return "\n".join(notes), last


def _stack(notes: str, state: State) -> str:
    if state.blocking:
        return "blocking"
    return "asynchronous" if "might be asynchronously reported" in notes else "unknown"


def _api(text: str, notes: str) -> str | None:
    if found := re.search(r"on CUDA API call to (\w{1,80})", text):
        return found[1]
    if found := _FLASHINFER.search(text):
        return f"{found[3]} at {found[1].rpartition('/')[2]}:{found[2]}"
    if found := _GGML.search(notes):
        return f"{found[2]} at {found[3].rpartition('/')[2]}"
    if found := re.search(r"when calling `?(\w{1,80})", text):
        return found[1]
    if found := re.search(r"([\w.\-]{1,80}\.(?:cuh?|cpp|hpp)):(\d{1,7})", text):
        return f"{found[1]}:{found[2]}"
    return None


def _reporter(by: str, text: str, notes: str, line: Line) -> str:
    if by.startswith("Triton"):
        return "triton"
    if _ALL_REDUCE.search(text):
        return "custom_all_reduce"
    if (
        "flashinfer" in text.lower()
        or "WithPagedKVCache" in text
        or _FLASHINFER.search(text)
        or by == "CUDA Error"
    ):
        return "flashinfer"
    if "CUBLAS_STATUS_" in text:
        return "cublas"
    if "ggml" in text or _GGML.search(notes):
        return "ggml"
    if "NCCL" in text or "nccl" in (line.prefix.location or "").lower():
        return "nccl"
    if "CUDA_ERROR_" in text:
        return "driver"
    return "torch" if by in ("CUDA error", "CUDA warning") else "other"


def _assert(line: Line, following: Following, _: State) -> Iterator[Found]:
    found = _ASSERT.search(line.text[:REACH]) or _ASSERT.search(joined(line, following, 3)[:REACH])
    if found is None:
        return
    yield Found(
        "device_assert",
        {
            "file": found["file"].rpartition("/")[2],
            "file_line": int(found["file_line"]),
            "function": re.split(r"[(<]", found["function"], maxsplit=1)[0].strip()[-120:],
            "block": found["block"].replace(" ", ""),
            "thread": found["thread"].replace(" ", ""),
            "expression": found["expression"],
        },
    )


PARSERS = (
    Parser(
        (
            "CUDA error",
            "Cuda error",
            "CUDA Error",
            "CUDA warning",
            "CUDA failure",
            "Cuda failure",
            "CUDA driver error",
            "cudaError",
            "CUDA_ERROR_",
            "Triton Error",
            "CUBLAS_STATUS_",
            "illegal memory access",
            "unspecified launch failure",
            "device-side assert",
        ),
        _error,
    ),
    Parser(("Assertion `", "Assertion '"), _assert),
)
