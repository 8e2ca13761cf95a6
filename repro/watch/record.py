"""The record of a watched command, specrepro/watch@1, and an incident as JSON."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from .events import Watched
from .gpus import Gpus
from .incidents import Incident
from .watchers import Seen

SCHEMA = "specrepro/watch@1"
# Variables that decide how an engine runs; what any other holds is nobody's business.
TOLD = ("CUDA", "NCCL", "NVIDIA", "OMP_", "PYTORCH", "TORCH", "TRITON", "VLLM", "SGLANG")


def incident_record(incident: Incident) -> dict[str, Any]:
    """One incident."""
    row, first = incident.entry, incident.first
    return {
        "at": _stamp(first.at),
        "bus": incident.bus,
        "code": first.code,
        "mnemonic": row.mnemonic if row else None,
        "meaning": row.meaning if row else None,
        "class": row.kind if row else None,
        "action": incident.action,
        "sources": list(incident.sources),
        "counts": {str(code): count for code, count in incident.counts.items()},
        "pid": incident.pid,
        "process": incident.name,
        "instance": list(first.instance) if first.instance else None,
        "message": asdict(first.xid) if first.xid else None,
    }


def watch_record(
    run: Mapping[str, Any],
    environment: Mapping[str, Any],
    words: Sequence[str],
    status: int,
    seen: Seen,
    gpus: tuple[Gpus, Gpus],
    environ: Mapping[str, str],
    log: Mapping[str, Any],
) -> dict[str, Any]:
    """The whole record. gpus: before and after."""
    return {
        "schema": SCHEMA,
        "run": dict(run),
        "environment": dict(environment),
        "words": list(words),
        "status": status,
        "incidents": [incident_record(one) for one in seen.incidents],
        "watched": [watched_record(one) for one in seen.watched],
        "gpus": {"before": asdict(gpus[0]), "after": asdict(gpus[1])},
        "variables": told(environ),
        "log": dict(log),
    }


def watched_record(watched: Watched) -> dict[str, Any]:
    """What a source's silence is worth."""
    return asdict(watched)


def told(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that an engine goes by, none whose name says that it is secret."""
    secret = ("TOKEN", "KEY", "SECRET", "PASSWORD", "CREDENTIAL", "AUTH")
    return {
        name: value
        for name, value in sorted(environ.items())
        if name.startswith(TOLD) and not any(word in name.upper() for word in secret)
    }


def _stamp(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at % 1 * 1000):03d}Z"
