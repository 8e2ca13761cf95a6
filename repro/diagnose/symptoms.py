"""What went wrong in an incident: names of signs, from its course and facts. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .acceptance import note_acceptance
from .facts import Certainty, Fact
from .load import note_claims, note_load, note_request_lengths
from .page_faults import note_kernel_log, note_xids
from .situation import How, Notes
from .timeline import WAITING, Course
from .values import listed, text_of, texts

DEVICE_FAULTS = frozenset(
    {
        "illegal_access",
        "misaligned_access",
        "illegal_instruction",
        "launch_failure",
        "device_assert",
        "hardware_stack",
        "invalid_pc",
        "launch_timeout",
    }
)
HARDWARE_FAULTS = frozenset({"hardware", "ecc", "nvlink", "contained", "no_device"})
FAR = 2**31  # bytes
CAPTURE = re.compile(r"capture|cudagraph|warm.?up|profile_run|compile_or_warm", re.IGNORECASE)


def note_symptoms(notes: Notes, course: Course, claims: Mapping[str, str]) -> None:
    """Put every sign of an incident into `notes`."""
    failures = [f for f in course.failures if f.certainty is Certainty.OBSERVED]
    failures = failures or list(course.failures)
    _faults(notes, course, failures)
    note_xids(notes, [fact for fact in failures if fact.kind == "xid"])
    note_kernel_log(notes, course, failures)
    _device(notes, failures)
    _host(notes, course, failures)
    _first(notes, course)
    _phase(notes, course)
    note_load(notes, course)
    note_acceptance(notes, course.facts, bool(course.first))
    note_request_lengths(notes, course.facts)
    note_claims(notes, course.facts, claims)


def _faults(notes: Notes, course: Course, failures: Sequence[Fact]) -> None:
    told: dict[str, list[Fact]] = {}
    for fact in failures:
        name = _fault(fact)
        if name:
            told.setdefault(name, []).append(fact)
    first = _fault(course.first[0]) if course.first else None
    if first and first != "hang":  # a standstill after a fault follows from it
        told.pop("hang", None)
    exceptions = [f for f in failures if f.kind == "python_exception"]
    if exceptions and not told:
        told["exception"] = exceptions
    follow = [f for f in course.cascade if f not in told.get("hang", ())]
    only_waits = set(told) == {"hang"} and all(f.get("sign") in WAITING for f in told["hang"])
    if failures and (not told or only_waits) and (follow or course.failures):
        told.setdefault("consequence", list(course.failures))
    notes.each("symptom", [(name, fact) for name, group in told.items() for fact in group[:2]])
    seen = [f for name in told if name in DEVICE_FAULTS | HARDWARE_FAULTS for f in told[name]]
    notes.put("fault_seen", "yes" if seen else "no", seen or failures[:1])
    names = [_consequence(f) for f in course.cascade]
    notes.put("consequences", [name for name in names if name], course.cascade)
    if not course.first:
        names = [_consequence(f) for f in course.failures]
        notes.put("consequences", [name for name in names if name], course.failures)


def _fault(fact: Fact) -> str | None:
    """The symptom that a failure is, None for one that only follows from another."""
    if fact.get("secondary"):
        return None
    match fact.kind:
        case "xid":
            if fact.get("class") in ("hardware", "driver"):
                return "hardware"
            return text_of(fact.get("fault")) if fact.get("class") != "consequence" else None
        case "cuda_error" | "sanitizer_error" | "coredump":
            return text_of(fact.get("fault"))
        case "sxid":
            return "hardware"
        case "kernel_log":
            return "out_of_memory" if fact.get("what") == "oom_kill" else "hardware"
        case "device_assert":
            return "device_assert"
        case "oom":
            return "out_of_memory"
        case "hang" | "garbage" | "start_failure" as kind:
            return kind
        case "nccl_error":
            return "hang" if fact.get("what") == "timeout" else None
    return None


def _consequence(fact: Fact) -> str | None:
    match fact.kind:
        case "nccl_error":
            return f"NCCL {fact.get('what')}"
        case "gloo_error":
            return f"Gloo {fact.get('what')}".replace("_", " ")
        case "engine_dead":
            return "engine dead"
        case "worker_died":
            return "worker died"
        case "xid":
            return f"Xid {fact.get('code')}" if fact.get("class") == "consequence" else None
        case "hang":
            return str(fact.get("sign")).replace("_", " ")
        case "exit":
            return f"exit {fact.get('signal') or fact.get('status')}"
        case "cuda_error":
            return "the same error at other ranks" if not fact.get("secondary") else None
    return None


def _device(notes: Notes, failures: Sequence[Fact]) -> None:
    named = [f for f in failures if f.kind in ("coredump", "sanitizer_error") and f.get("kernel")]
    asserts = [f for f in failures if f.kind == "device_assert"]
    inside = [f for f in asserts if f.get("function")]
    names = [str(f.get("kernel") or f.get("function")) for f in (*named, *inside)]
    notes.each("kernel", zip(names, [*named, *inside], strict=True))
    if asserts:
        said = [
            f"{f.get('file')}:{f.get('file_line')} {f.get('function')} {f.get('expression')}"
            for f in asserts
        ]
        notes.each("assertion", zip(said, asserts, strict=True))
    records = [f for f in failures if f.kind == "sanitizer_error"]
    sides = [str(f.get("side")) for f in records if f.get("side")]
    notes.put("sanitizer_side", sides, records)
    far = [d for f in records if isinstance(d := f.get("distance"), (int, float))]
    notes.put("sanitizer_distance", far, records)
    notes.put("sanitizer_far", "yes" if any(d >= FAR for d in far) else None, records)
    wrote = [f for f in records if f.get("direction") in ("read", "write", "atomic")]
    notes.put("access", texts(wrote, "direction"), wrote)
    memory = [f for f in failures if f.kind == "oom"]
    notes.each("oom_where", [(text_of(f.get("where")), f) for f in memory])


def _host(notes: Notes, course: Course, failures: Sequence[Fact]) -> None:
    # those that repeat a device error are no failures of their own, but their frames tell
    stacks = [f for f in course.facts if f.kind == "python_exception"]
    frames = [
        (str(frame), f)
        for f in stacks
        if isinstance(given := f.get("frames"), tuple)
        for frame in (*given, f.get("top") or "", f.get("bottom") or "")
    ]
    notes.each("frame", frames)
    spoken = ("cuda_error", "oom", "kernel_log")
    said = [f for f in (*failures, *stacks) if f.get("message") or f.kind in spoken]
    messages = [(f"{f.get('message') or ''} {f.get('api') or ''} {f.text}", f) for f in said]
    notes.each("message", messages)
    reports = [f for f in failures if f.kind == "cuda_error" and not f.get("secondary")]
    notes.put("reporter", texts(reports[:1], "reporter"), reports[:1])
    hangs = [f for f in failures if f.kind == "hang"]
    timeouts = [f for f in failures if f.kind == "nccl_error" and f.get("what") == "timeout"]
    signs = [(text_of(f.get("sign")), f) for f in hangs]
    notes.each("hang_sign", [*signs, *(("collective_timeout", f) for f in timeouts)])
    running = [n for f in hangs if isinstance(n := f.get("running"), int)]
    notes.put("hang_running", running, hangs)
    garbage = [f for f in failures if f.kind == "garbage"]
    notes.put("garbage_sign", texts(garbage, "sign"), garbage)


def _first(notes: Notes, course: Course) -> None:
    ranks = {f.rank or f.pid for f in course.first if f.rank or f.pid}
    notes.put("ranks_failing", len(ranks) or None, course.first)
    notes.put("tie", "yes" if len(course.first) > 1 else None, course.first)


def _phase(notes: Notes, course: Course) -> None:
    """Whether it failed at start, in capture or while serving."""
    if not course.first:
        return
    first = course.first[0]
    served = [f for f in course.facts if f.kind in ("load", "spec_metrics", "scheduler_dump")]
    starting = [f for f in course.facts if f.kind == "start_failure"]
    capturing = [
        f
        for f in course.facts
        if f.kind == "graph_capture" and f.source == first.source and f.line <= first.line
        and isinstance(done := f.get("done"), int) and isinstance(of := f.get("total"), int)
        and done < of
    ]  # fmt: skip
    stacks = [f for f in course.facts if f.kind == "python_exception"]
    inside = [f for f in stacks if CAPTURE.search(" ".join(map(str, listed(f.get("frames")))))]
    if not served and (inside or (capturing and capturing[-1] is _last_capture(course))):
        notes.put("phase", "capture", inside or capturing[-1:], How.DERIVED)
    elif starting:
        notes.put("phase", "start", starting, How.DERIVED)
    elif served:
        notes.put("phase", "serving", served[-1:], How.DERIVED)


def _last_capture(course: Course) -> Fact | None:
    return next((f for f in reversed(course.facts) if f.kind == "graph_capture"), None)
