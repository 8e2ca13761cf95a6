"""How processes end or stop getting on: dead engines, dead workers, signals, memory, hangs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..facts import Value
from .line import Following, Found, Line, Parser, State, joined
from .patterns import lazily

_DEAD: tuple[tuple[str, str], ...] = (
    ("EngineDeadError", "EngineDeadError"),
    ("EngineCore encountered a fatal error", "fatal"),
    ("EngineCore encountered an issue", "EngineDeadError"),
    ("AsyncLLM output_handler failed", "EngineDeadError"),
    ("WorkerProc hit an exception", "worker_exception"),
    ("Scheduler hit an exception", "worker_exception"),
    ("Worker failed with error", "worker_failed"),
    ("Received sigquit from a child", "core_failed"),
    ("TpModelWorkerClient hit an exception", "worker_exception"),
)
_START: tuple[tuple[str, str], ...] = (
    ("EngineCore failed to start", "engine core failed to start"),
    ("Engine core initialization failed", "engine core failed to start"),
    ("Engine process failed to start", "engine core failed to start"),
    ("WorkerProc failed to start", "worker failed to start"),
    ("WorkerProc initialization failed", "worker failed to start"),
)
_SIGNALS = {
    4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM",
}  # fmt: skip
_STATUS = lazily(
    r"(?:exited with code|exit code|exitcode|Exit Code|exit status|Exited \(|exited with status|"
    r"code=exited, status=|code=killed, status=|code=dumped, status=)[:=]? ?\(?(-?\d{1,4})"
)
_SIGNAL = lazily(r"\b(SIG(?:ABRT|SEGV|KILL|BUS|ILL|TERM|FPE))\b")
_DIED = lazily(
    r"Worker proc (?P<worker>[\w\-]{1,64}) died unexpectedly(?: \(exit code: "
    r"(?P<code>-?\d{1,6}|None)\))?"
)
_TOO_SMALL = "larger than the available KV cache memory"
_WAIT = lazily(r"(\d{1,7}(?:\.\d{1,3})?) ?(?:seconds|s\b)")


def _dead(line: Line, _: Following, __: State) -> Iterator[Found]:
    text = line.text
    what = next((what for words, what in _DEAD if words in text), None)
    if what:
        yield Found("engine_dead", {"what": what})
    if found := _DIED.search(text):
        code = int(found["code"]) if found["code"] and found["code"] != "None" else None
        yield Found("worker_died", {"worker": found["worker"], "exit_code": code})


def _start(line: Line, _: Following, __: State) -> Iterator[Found]:
    what = next((what for words, what in _START if words in line.text), None)
    if what:
        yield Found("start_failure", {"what": what, "message": line.text[:400]})


def _exit(line: Line, _: Following, __: State) -> Iterator[Found]:
    text = line.text
    if _DIED.search(text):
        return
    found, named = _STATUS.search(text), _SIGNAL.search(text)
    signal: str | None = named[1] if named else None
    status = int(found[1]) if found else None
    for words, name in (
        ("Segmentation fault", "SIGSEGV"),
        ("Segfault encountered", "SIGSEGV"),
        ("Aborted (core dumped)", "SIGABRT"),
        ("terminate called", "SIGABRT"),
        ("OOMKilled", "SIGKILL"),
        ("Fatal Python error: Aborted", "SIGABRT"),
    ):
        if words in text:
            signal = signal or name
    if status is not None and signal is None:
        number = -status if status < 0 else status - 128 if status > 128 else status
        killed = "code=killed" in text or "code=dumped" in text or status < 0 or status > 128
        signal = _SIGNALS.get(number) if killed else None
    if status is None and signal is None:
        return
    yield Found("exit", {"status": status, "signal": signal, "what": line.prefix.name})


def _memory(line: Line, following: Following, _: State) -> Iterator[Found]:
    text = line.text
    if "torch_call_dispatcher" in text:
        # torch's stable interface hides the message of a failed allocation
        if re.search(r"new_empty|empty|zeros", text):
            yield _oom("disguised", None)
        return
    wanted = re.search(r"Tried to allocate ([\d.]{1,12} [KMGT]i?B)", text)
    where = "device"
    if "out of memory" in text.lower() or "OutOfMemoryError" in text:
        wanted = wanted or re.search(
            r"Tried to allocate ([\d.]{1,12} [KMGT]i?B)", joined(line, following, 2)
        )
        if "captur" in text.lower():
            where = "capture"
        if "Killed process" not in text:
            yield _oom(where, wanted[1] if wanted else None)
    elif "less than desired GPU memory" in text:
        yield _oom("device", None)
    elif "No available memory for the cache" in text or _TOO_SMALL in text:
        yield _oom("cache", None)


def _oom(where: str, wanted: str | None) -> Found:
    return Found("oom", {"where": where, "wanted": wanted, "fault": "out_of_memory"})


def _hang(line: Line, _: Following, __: State) -> Iterator[Found]:
    text = line.text
    signs = (
        ("shared memory broadcast block", "shm_broadcast"),
        ("Watchdog timeout (self.watchdog_timeout", "watchdog"),
        ("sample_tokens", "sample_timeout"),
        ("RPC call to", "rpc_timeout"),
        ("Health check failed", "heartbeat"),
        ("heartbeat", "heartbeat"),
    )
    sign = next((sign for words, sign in signs if words in text), None)
    if sign in ("rpc_timeout", "sample_timeout") and "timed out" not in text:
        return
    if sign == "heartbeat" and not re.search(r"imed? ?out|missed|lost|failed", text):
        return
    if sign:
        waited = _WAIT.search(text) or re.search(r"timeout=(\d{1,7})", text)
        values: dict[str, Value] = {"sign": sign, "seconds": float(waited[1]) if waited else None}
        yield Found("hang", {**values, "running": None})


def _restart(line: Line, _: Following, __: State) -> Iterator[Found]:
    if re.search(
        r"Scheduled restart job|Back-off restarting|Restarting container|Started vllm", line.text
    ):
        yield Found("restart", {"what": line.text[:120]})


PARSERS = (
    Parser((*(words for words, _ in _DEAD), "died unexpectedly"), _dead),
    Parser(tuple(words for words, _ in _START), _start),
    Parser(
        (
            "exited with",
            "exit code",
            "exitcode",
            "Exit Code",
            "exit status",
            "Exited (",
            "code=exited",
            "code=killed",
            "code=dumped",
            "SIGABRT",
            "SIGSEGV",
            "SIGKILL",
            "SIGBUS",
            "SIGILL",
            "Segmentation fault",
            "Segfault encountered",
            "core dumped",
            "terminate called",
            "OOMKilled",
            "Fatal Python error",
        ),
        _exit,
    ),
    Parser(
        (
            "out of memory",
            "OutOfMemoryError",
            "torch_call_dispatcher",
            "No available memory for the cache",
            "less than desired GPU memory",
            _TOO_SMALL,
        ),
        _memory,
    ),
    Parser(
        (
            "shared memory broadcast block",
            "Watchdog timeout",
            "RPC call to",
            "sample_tokens",
            "Health check failed",
            "heartbeat",
        ),
        _hang,
    ),
    Parser(("restart",), _restart),
)
