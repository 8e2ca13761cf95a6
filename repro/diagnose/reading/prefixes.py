"""Prefixes of log lines: what carriers and engines put before the text, taken off one by one.

vLLM's forms are those of 0.8 to 0.33 (`(VllmWorker rank=1 pid=7)`, `(Worker_DP0_TP1 pid=7)`,
`(EngineCore_DP0 pid=7)`, Ray's, the record header with and without its bracket). An unknown
VLLM_LOGGING_PREFIX or shipping agent is passed over by looking for the header behind it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from .carriers import unwrap
from .line import Line, Prefix
from .patterns import lazily
from .times import CLOCK, ISO, read_time

# A prefix that is longer is none.
REACH = 400
_ANSI = lazily(r"\x1b(?:\[[0-9;?]{0,32}[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[()][A-Z0-9])")

_PROCESS = lazily(
    r"\((?P<name>[A-Za-z]\w{0,60})(?: (?P<group>[A-Z]{2,4}\d+(?:_[A-Z]{2,4}\d+)*))?"
    r"(?: rank=(?P<rank>\d+))? pid=(?P<pid>\d{1,10})(?:, ip=[0-9a-fA-F.:]{2,45})?\) ?"
)
_HEADER = lazily(
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<time>(?:\d{4}-)?\d\d-\d\d "
    rf"{CLOCK}) \[?(?P<where>[\w./\-]{{1,120}}\.py:\d{{1,7}})\] ?"
)
_SGLANG = lazily(r"\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?P<ranks>(?: [A-Z]{2,4}\d+)*)\] ?")
_TRTLLM = lazily(
    r"\[(?P<time>\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d)\] \[TRT-LLM\] (?:\[RANK (?P<rank>\d+)\] )?"
    r"(?:\[(?P<level>[VDIWEF])\] )?"
)
_GLOG = lazily(
    rf"(?:\[rank(?P<rank>\d+)\]:)?\[(?P<level>[IWEF])(?P<time>\d{{4}} {CLOCK})"
    r"(?: \d{1,10})? (?P<where>[\w./\-]{1,120}:\d{1,7})\] ?"
)
_RANK = lazily(r"\[(?:rank|default|RANK )(?P<rank>\d+)\]:? ?")
_MPI = lazily(r"\[\d+,(?P<rank>\d+)\]<(?:stdout|stderr|stddiag)>: ?")
_NCCL = lazily(
    r"(?P<host>[\w.\-]{1,64}):(?P<pid>\d{1,10}):\d{1,10} \[(?:-?\d{1,4}|0x[0-9a-f]+)\] (?=NCCL )"
)
_STAMP = lazily(
    rf"\[?(?P<time>{ISO})\]?(?: - \S{{1,80}})?(?: ?[-|]? ?\[?(?P<level>DEBUG|INFO|"
    rf"WARNING|WARN|ERROR|"
    r"CRITICAL|FATAL)\]?)?(?: ?[-|:])? ?"
)
_REPEATED = lazily(r" ?(?:\x1b\[\d+m)?\[repeated (\d{1,7})x across cluster\].{0,200}$")

_GROUPS = lazily(r"(?:PP|TP|DP|EP|PCP|DCP)\d+")
_PLAIN = Prefix()
_KINDS = (
    (("Worker", "VllmWorker", "RayWorker", "RayTrainWorker"), "worker"),
    (("EngineCore", "CoreEngine"), "engine_core"),
    (("APIServer", "ApiServer"), "api_server"),
)


def peel(text: str, number: int) -> Line:
    """A line without its prefixes, and what they said. Never raises; linear in REACH."""
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if text.find("\r") >= 0:
        text = _last_drawn(text)
    text, prefix = unwrap(text, _PLAIN)
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    text, prefix = _engine(text, prefix)
    if text.endswith("]") or "across cluster]" in text[-220:]:
        cut = len(text) - 260 if len(text) > 260 else 0
        if found := _REPEATED.search(text, cut):
            text, prefix = text[: found.start()], replace(prefix, repeats=int(found[1]))
    return Line(text, number, prefix)


def _last_drawn(text: str) -> str:
    """What a terminal would show of a line that was drawn over: the last part that has text."""
    parts = [part for part in text.split("\r") if part.strip()]
    return parts[-1] if parts else ""


def _engine(text: str, prefix: Prefix) -> tuple[str, Prefix]:
    head = text[:REACH]
    # a header at a distance ends whatever stood before it
    if found := _HEADER.search(head):
        return text[found.end() :], _inside(prefix, _headed(text[: found.end()]))
    position, prefix = _processes(head, prefix, anywhere=False)
    text = text[position:]
    for pattern in (_SGLANG, _TRTLLM, _GLOG, _RANK, _MPI, _NCCL, _STAMP):
        if found := pattern.match(text):
            text, prefix = text[found.end() :], _taken(pattern, found, prefix)
            # torch's records come inside the prefixes of launchers, and the reverse
            if pattern in (_STAMP, _RANK, _MPI):
                return _engine(text, prefix) if found.end() else (text, prefix)
            break
    return text, prefix


@lru_cache(4096)
def _headed(lead: str) -> Prefix:
    """What a record header and all before it say. Lines of one record have the same."""
    found = _HEADER.search(lead)
    if found is None:
        return _PLAIN
    _, prefix = _processes(lead[: found.start()], _PLAIN, anywhere=True)
    return replace(
        prefix,
        level=found["level"],
        time=read_time(found["time"]),
        location=found["where"],
        logged=True,
        engine="vllm" if prefix.name else None,
    )


def _inside(carrier: Prefix, own: Prefix) -> Prefix:
    """The engine's prefix, completed by what its carrier said."""
    if carrier is _PLAIN:
        return own
    return replace(
        own,
        name=own.name or carrier.name,
        process=own.process or carrier.process,
        rank=own.rank or carrier.rank,
        pid=own.pid if own.pid is not None else carrier.pid,
        time=own.time or carrier.time,
        host=own.host or carrier.host,
        engine=own.engine or carrier.engine,
        carriers=(*carrier.carriers, *own.carriers),
    )


def _processes(head: str, prefix: Prefix, *, anywhere: bool) -> tuple[int, Prefix]:
    """Process prefixes, the innermost of nested ones last; where they end."""
    end = 0
    while found := (_PROCESS.search if anywhere else _PROCESS.match)(head, end):
        end = found.end()
        prefix = _named(found, prefix)
    return end, prefix


def _named(found: re.Match[str], prefix: Prefix) -> Prefix:
    name = found["name"] + (f"_{found['group']}" if found["group"] else "")
    ranks = _GROUPS.findall(name)
    rank = "_".join(ranks) or (f"rank{found['rank']}" if found["rank"] else None)
    known = (kind for starts, kind in _KINDS if name.startswith(starts))
    kind = next(known, prefix.process)
    engine = "vllm" if kind and not name.startswith("RayTrain") else prefix.engine
    return replace(
        prefix,
        name=name,
        process=kind,
        rank=rank,
        pid=int(found["pid"]),
        engine=engine,
        carriers=(*prefix.carriers, "ray") if name.startswith("Ray") else prefix.carriers,
    )


def _taken(pattern: re.Pattern[str], found: re.Match[str], prefix: Prefix) -> Prefix:
    groups = found.groupdict()
    if groups.get("time"):
        prefix = replace(prefix, time=read_time(groups["time"]) or prefix.time)
    if groups.get("level"):
        prefix = replace(prefix, level=groups["level"], logged=True)
    if groups.get("rank"):
        rank = f"rank{groups['rank']}"
        prefix = replace(prefix, rank=prefix.rank or rank, name=prefix.name or rank)
    if pattern is _SGLANG:
        ranks = groups["ranks"].split()
        rank_ = "_".join(ranks) or None
        prefix = replace(prefix, engine="sglang", rank=rank_, name=rank_, logged=True)
        return replace(prefix, process="scheduler") if rank_ else prefix
    if pattern is _TRTLLM:
        return replace(prefix, engine="tensorrt-llm", logged=True)
    if pattern is _GLOG:
        return replace(prefix, location=groups["where"], logged=True)
    if pattern is _NCCL:
        return replace(prefix, host=groups["host"], pid=int(groups["pid"]), logged=True)
    return prefix
