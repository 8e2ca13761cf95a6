"""Python tracebacks: whole, cut at either end, interleaved with other processes, repeated.

Lines of one process are read together, wherever others wrote in between. Identical tracebacks
(each worker prints one, then the engine, then the server) become one fact each process.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .line import Following, Found, Line, Parser, State
from .patterns import lazily

FRAMES = 12
_FRAME = lazily(
    r'File "(?P<path>[^"]{1,400})", line (?P<line>\d{1,9})'
    r"(?:, in (?P<name>.{1,120}))?"
)
_END = lazily(
    r"(?P<class>(?:[A-Za-z_]\w{0,80}\.){0,8}(?:[A-Z]\w{0,80}(?:Error|Exception|Exit|Interrupt|Warning|"
    r"Failed|Timeout|Empty|OOM)|KeyboardInterrupt|StopIteration|AssertionError|OutOfMemoryError))"
    r"(?:: ?(?P<message>.*))?$"
)
# Behind frames the line that is not indented is the exception, whatever its class is called; with
# its module it cannot be another program's word.
_QUALIFIED = lazily(r"(?P<class>(?:[A-Za-z_]\w{0,80}\.){1,8}[A-Z]\w{0,80})(?:: ?(?P<message>.*))?$")
_CHAIN = (
    "The above exception was the direct cause",
    "During handling of the above exception",
)
_LIBRARIES = lazily(r"/(?:vllm|sglang|tensorrt_llm|torch|triton|flashinfer)/")
# Code that waits for the device: an older fault shows there.
_WAITS = lazily(
    r"seq_lens_cpu|\.synchronize\(|\.to\(['\"]cpu|\.cpu\(\)|\.item\(\)|\.tolist\(\)|copy_event|"
    r"sampler_event|prepare_inputs_event"
)
_CUDA_NOTES = ("CUDA kernel errors", "For debugging", "Search for", "Compile with")


@dataclass(slots=True)
class _Trace:
    frames: list[str] = field(default_factory=list)
    outermost: str | None = None
    libraries: int = 0
    waits: str | None = None
    runner: str | None = None
    engine: str | None = None
    end: re.Match[str] | None = None
    last: Line | None = None
    chains: bool = False

    def frame(self, found: re.Match[str]) -> None:
        place = f"{_short(found['path'])}:{found['line']} {(found['name'] or '').strip()}".strip()
        self.outermost = self.outermost or place
        self.frames = [*self.frames[-(FRAMES - 1) :], place]
        self.libraries += bool(_LIBRARIES.search(found["path"]))
        path = found["path"]
        if "/v1/worker/gpu/" in path:
            self.runner = "v2"
        elif path.endswith("v1/worker/gpu_model_runner.py"):
            self.runner = "v1"
        for name in ("vllm", "sglang", "tensorrt_llm"):
            if f"/{name}/" in path:
                self.engine = name.replace("_", "-")


def _traceback(line: Line, following: Following, state: State) -> Iterator[Found]:
    if "Traceback (most recent call last)" not in line.text and state.taken("trace", line):
        return
    trace = _Trace()
    _take(trace, line)
    _follow(trace, line, following)
    if trace.last is not None:
        state.take("trace", line, trace.last.number)
        state.owner = (trace.last.number, line.prefix)
    if not trace.frames and trace.end is None:
        return
    key = line.prefix.key
    chained = line.number - state.chained.get(key, -100) <= 8
    if trace.chains and trace.last is not None:
        if len(state.chained) > 1024:
            state.chained.clear()
        state.chained[key] = trace.last.number
    yield _found(trace, line, chained)
    if trace.runner:
        yield Found("runner", {"version": trace.runner, "origin": "frame"}, line=line)
    if trace.engine and line.prefix.engine is None:
        values = {"name": trace.engine, "version": "", "commit": None, "origin": "frame"}
        yield Found("engine", values)
    if trace.waits:
        yield Found(
            "false_clue",
            {
                "name": "waiting_frame",
                "why": "the innermost code waits for the device: the fault is older than this line",
            },
            text=trace.waits,
        )


def _follow(trace: _Trace, line: Line, following: Following) -> None:
    """Read on until the exception and its message are whole."""
    blank = 0
    for other in following():
        text = other.text
        if trace.end is not None:
            if text.strip().startswith(_CHAIN):
                trace.chains = True
                trace.last = other
                return
            if text.strip().startswith(_CUDA_NOTES):
                trace.last = other
                continue
            blank += not text.strip()
            if blank > 1 or text.strip():
                return
            continue
        if "Traceback (most recent call last)" in text:
            return
        if not _take(trace, other):
            blank += 1
            # other programs may write between; a page's end or a new record ends it
            if blank > 40 or (other.prefix.logged and other.prefix.level in ("INFO", "DEBUG")):
                if other.prefix.key == line.prefix.key:
                    return
                if blank > 80:
                    return


def _take(trace: _Trace, line: Line) -> bool:
    text = line.text
    if found := _FRAME.search(text):
        trace.frame(found)
        trace.waits = None
    elif trace.frames and text.startswith("   "):
        if _WAITS.search(text):
            trace.waits = text.strip()[:200]
    elif (found := _END.match(text.strip())) or (
        trace.frames and (found := _QUALIFIED.match(text))
    ):
        trace.end = found
    elif not (text.startswith("Traceback") or text.strip().startswith(("^", "~", "+", "|"))):
        return False
    trace.last = line
    return True


def _found(trace: _Trace, line: Line, chained: bool) -> Found:
    name = trace.end["class"] if trace.end else None
    message = (trace.end["message"] or "").strip() if trace.end else None
    text = f"{name}: {message}" if message else name or line.text
    return Found(
        "python_exception",
        {
            "class": name,
            "message": message,
            "top": trace.frames[-1] if trace.frames else None,
            "bottom": trace.outermost,
            "frames": tuple(reversed(trace.frames)),
            "kernel_frames": trace.libraries,
            "chained": chained,
        },
        text=text,
    )


def _alone(line: Line, _: Following, state: State) -> Iterator[Found]:
    """An exception without its traceback: a cut log, or a message that was logged."""
    if state.taken("trace", line) or 'File "' in line.text:
        return
    found = _END.match(line.text.strip())
    if found is None or not found["message"]:
        return
    trace = _Trace(end=found, last=line)
    yield _found(trace, line, chained=False)


def _short(path: str) -> str:
    """The path from its package on: where it is installed says nothing."""
    for mark in ("/site-packages/", "/dist-packages/", "/lib/python3"):
        if mark in path:
            return path.rpartition(mark)[2]
    return path if len(path) < 80 else f"…{path[-78:]}"


PARSERS = (
    Parser(("Traceback (most recent call last)", 'File "'), _traceback),
    Parser(("Error: ", "Exception: ", "EngineDeadError"), _alone),
)
