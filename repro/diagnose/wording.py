"""Facts in a few words, for pages and signatures. Pure; the text is printable as facts are."""

from __future__ import annotations

import re

from .facts import Fact
from .values import text_of, texts_of

NAMES = {"vllm": "vLLM", "sglang": "SGLang", "tensorrt-llm": "TensorRT-LLM"}
FAULTS = {
    "illegal_access": "an illegal memory access",
    "misaligned_access": "a misaligned access",
    "illegal_instruction": "an illegal instruction",
    "launch_failure": "a failed launch",
    "device_assert": "an assertion in device code",
    "hardware_stack": "an error of the hardware stack",
    "invalid_pc": "an invalid program counter",
    "launch_timeout": "a launch that timed out",
    "out_of_memory": "out of memory",
    "ecc": "an uncorrectable ECC error",
    "nvlink": "an uncorrectable NVLink error",
    "contained": "a contained memory error",
    "no_device": "no usable device",
    "hang": "a standstill",
    "garbage": "damaged output",
    "acceptance_loss": "lost acceptance of drafts",
    "hardware": "a fault of the hardware or driver",
    "start_failure": "a failed start",
    "exception": "an exception of the engine",
    "consequence": "consequences of an earlier fault",
    "other": "another CUDA error",
}
LONGEST = 110
NUMBER = re.compile(r"0x[0-9a-fA-F_]+|\d+(\.\d+)?")


def told(fact: Fact) -> str:
    """A failure in a few words: `Xid 31 READ at 0x7f… (GPU 0000:41:00)`."""
    return cut(_told(fact))


def _told(fact: Fact) -> str:
    match fact.kind:
        case "xid":
            fields = ("access", "fault_type", "detail")
            words = [f"Xid {fact.get('code')}", *texts_of(fact, *fields)]
            words += [f"at {address}" for address in texts_of(fact, "address")]
            return " ".join(words + [f"(GPU {bus})" for bus in texts_of(fact, "bus")])
        case "cuda_error":
            message = text_of(fact.get("message")) or FAULTS.get(str(fact.get("fault")), "")
            return f"CUDA error: {message}"
        case "device_assert":
            where = f"{fact.get('file')}:{fact.get('file_line')}"
            return f"device assert at {where}: {fact.get('expression') or fact.get('function')}"
        case "python_exception":
            said = text_of(fact.get("message"))
            name = text_of(fact.get("class"))
            if name is None:
                return "a traceback that is cut, or ends in a line that was not recognised"
            return f"{name}: {said}" if said else name
        case "sanitizer_error":
            what = f"{fact.get('tool') or 'compute-sanitizer'}: {fact.get('record')}"
            side = f" {fact.get('direction')} of {fact.get('bytes')} bytes"
            kernel = f" in {fact.get('kernel')}" if fact.get("kernel") else ""
            return what + (side if fact.get("direction") else "") + kernel
        case "coredump":
            kernel = f" in {fact.get('kernel')}" if fact.get("kernel") else ""
            return f"core dump: {fact.get('exception') or 'a fault'}{kernel}"
        case "oom":
            return f"out of memory ({fact.get('where')})"
        case "hang":
            return f"standstill: {str(fact.get('sign')).replace('_', ' ')}"
        case "engine_dead":
            return "engine dead"
        case "worker_died":
            code = fact.get("exit_code")
            return "a worker died" + (f" (exit code {code})" if code is not None else "")
        case "nccl_error":
            return f"NCCL {fact.get('what')}"
        case "gloo_error":
            return f"Gloo {str(fact.get('what')).replace('_', ' ')}"
        case "exit":
            return f"exit {fact.get('signal') or fact.get('status')}"
        case "sxid":
            return f"SXid {fact.get('code')} of the NVLink switch"
        case "kernel_log":
            return f"kernel log: {str(fact.get('what')).replace('_', ' ')}"
        case "start_failure":
            return str(fact.get("what"))
        case "garbage":
            return f"damaged output: {str(fact.get('sign')).replace('_', ' ')}"
    return fact.text


def repeated(fact: Fact) -> str:
    """What a failure is called where many are told in one line."""
    return cut(re.sub(r" (at 0x\w+|\(.*\))", "", told(fact)), 60)


def shape(fact: Fact) -> str:
    """A failure without what differs from time to time: addresses, numbers, names of cards."""
    match fact.kind:
        case "xid":
            return " ".join((f"Xid {fact.get('code')}", *texts_of(fact, "access", "detail")))[:80]
        case "cuda_error" | "coredump":
            kernel = text_of(fact.get("kernel"))
            name = FAULTS.get(str(fact.get("fault")), told(fact))
            return f"{name} in {kernel}" if kernel else name
    return NUMBER.sub("N", told(fact))[:120]


def cut(text: str, longest: int = LONGEST) -> str:
    """The beginning of a text on one line."""
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1] + "…"
