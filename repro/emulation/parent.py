"""The parent's side of `specrepro emulate`: processes in, the record of a launch out.

No code of the user's runs here. What a child says is checked for its form before it is believed;
a child that ends in another way leaves the launch unknown, never clean.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import CaseError, Exit, KernelError, SpecreproError, UsageError
from ..lanes.process import Children, run_child
from ..records import Finding
from .arguments import Arguments
from .kernel_text import language

SCHEMA = "specrepro/emulate@1"
CHILD = "specrepro.repro.emulation.child"
MEMORY_LIMIT = 8 << 30  # bytes of address space of a child
TIMEOUT = 600.0  # seconds of a child
LONGEST_RESULT = 64 << 20  # bytes
CONTEXT = 1  # lines of an excerpt around the line in question

Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Request:
    """One launch that was asked for.

    warps: of a block of a Triton kernel, None as it says. skip: checks that are not made.
    """

    kernel: Path
    entry: str | None
    grid: Triple
    block: Triple
    shared: int
    warps: int | None
    arguments: Arguments
    text: str
    skip: tuple[str, ...] = ()
    timeout: float = TIMEOUT
    memory: int = MEMORY_LIMIT


@dataclass(frozen=True, slots=True)
class Emulated:
    """The record (`specrepro/emulate@1`) and the exit status that goes with it."""

    record: dict[str, Any]
    status: Exit


def emulate_file(request: Request, children: Children | None = None) -> Emulated:
    """Compile and execute. UsageError (CaseError) for what the request or the argument file has
    wrong; a kernel that cannot be compiled or executed is a record with `unsupported`. children:
    among which its processes are, where somebody else may end them.
    """
    kind = language(request.kernel)
    shown = str(request.kernel)
    job: dict[str, Any] = {
        "path": str(request.kernel.resolve()),
        "shown": shown,
        "language": kind,
        "entry": request.entry,
        "grid": list(request.grid),
        "block": list(request.block),
        "shared": request.shared,
        "warps": request.warps,
        "arguments": str(request.arguments.path.resolve()),
        "text": request.text,
        "skip": list(request.skip),
        "memory_limit": request.memory,
        "triton": None,
    }
    try:
        if kind == "triton":
            job["triton"] = _triton(_result({**job, "do": "compile"}, request, children))
            job["block"] = [32 * job["triton"]["warps"], 1, 1]
            job["shared"] = job["triton"]["shared"]
        result = _result({**job, "do": "emulate"}, request, children)
        record = _record(request, job, result, None)
    except UsageError:
        raise
    except SpecreproError as error:
        unsupported = {"message": error.message, "where": error.where, "hint": error.hint}
        return Emulated(_record(request, job, {}, unsupported), Exit.UNTESTABLE)
    return Emulated(record, Exit.FAULT if record["findings"] else Exit.OK)


def _result(job: Mapping[str, Any], request: Request, children: Children | None) -> dict[str, Any]:
    """What a child makes of a job; KernelError where it ended without a whole result."""
    with tempfile.TemporaryDirectory(prefix="specrepro-emulate-") as name:
        directory = Path(name)
        (directory / "job.json").write_text(json.dumps(job), encoding="utf-8")
        ending = run_child(directory, request.timeout, children or Children(), module=CHILD)
        path = directory / "result.json"
        if ending.reason or not path.is_file() or path.stat().st_size > LONGEST_RESULT:
            said = (directory / "stderr").read_text(encoding="utf-8", errors="replace").strip()
            reason = ending.reason or "no result"
            last = said.splitlines()[-1][:500] if said else None
            what = "compiling" if job["do"] == "compile" else "executing"
            raise KernelError(f"the process {what} it: {reason}", where=job["shown"], hint=last)
        try:
            result = json.loads(path.read_bytes())
        except (ValueError, RecursionError) as error:
            raise KernelError(f"its process left no JSON: {error}") from error
    if not isinstance(result, dict):
        raise KernelError("its process left something else than a result")
    if "error" in result:
        raise _error(result["error"], job)
    return result


def _error(told: Any, job: Mapping[str, Any]) -> SpecreproError:
    def text(key: str) -> str | None:
        value = told.get(key) if isinstance(told, dict) else None
        return None if value is None else str(value)

    message, where, hint = text("message") or "unknown error", text("where"), text("hint")
    if text("kind") != "usage":
        return KernelError(message, where=where or str(job["shown"]), hint=hint)
    if where is not None:
        # the child was given the whole path, a person the one he typed
        where = where.replace(str(job["arguments"]), str(Path(job["arguments"]).name))
    return CaseError(message, where=where, key=text("key"), hint=hint)


def _triton(result: Mapping[str, Any]) -> dict[str, Any]:
    """What the compiling process says, in a form that nothing it wrote can break."""
    try:
        return {
            "ptx": str(result["ptx"]),
            "entry": str(result["entry"]),
            "warps": int(result["warps"]),
            "shared": int(result["shared"]),
            "scratch": [int(size) for size in result["scratch"]],
            "parameters": [dict(one) for one in result["parameters"]],
        }
    except (KeyError, TypeError, ValueError) as error:
        raise KernelError(f"its compiling process left no kernel: {error!r}") from error


def _record(
    request: Request,
    job: Mapping[str, Any],
    result: Mapping[str, Any],
    unsupported: Mapping[str, Any] | None,
) -> dict[str, Any]:
    try:
        found = [Finding.from_json(one) for one in result.get("findings", [])]
    except (TypeError, ValueError) as error:
        raise KernelError(f"its process left no findings: {error}") from error
    source = request.kernel.read_bytes()
    return {
        "schema": SCHEMA,
        "kernel": {
            "file": str(request.kernel),
            "sha256": hashlib.sha256(source).hexdigest(),
            "language": job["language"],
            "entry": result.get("entry", request.entry),
            "target": result.get("target"),
        },
        "launch": {
            "grid": job["grid"],
            "block": result.get("block", job["block"]),
            "shared_bytes": job["shared"],
            "arguments": str(request.arguments.path),
            "buffers": result.get("buffers", []),
            "instructions": result.get("instructions"),
            "decided": result.get("decided"),
        },
        "checks": list(result.get("checks", [])),
        "unchecked": list(result.get("unchecked", [])),
        "warnings": result.get("warnings", []),
        "printed": str(result.get("printed", "")),
        "findings": result.get("findings", []),
        "more": result.get("more", 0),
        "excerpts": _excerpts(found, job, source.decode("utf-8", "replace").splitlines()),
        "notes": list(result.get("notes", [])),
        "unsupported": unsupported,
    }


def _excerpts(
    found: list[Finding], job: Mapping[str, Any], lines: list[str]
) -> dict[str, list[list[Any]]]:
    """`file:line` → the lines around it, in the file that the user named: no other file is opened
    because a PTX text names it.
    """
    excerpts = {}
    for finding in found:
        source = finding.source
        if source is None or source.file != job["shown"]:
            continue
        if 0 < source.line <= len(lines):
            first = max(1, source.line - CONTEXT)
            last = min(len(lines), source.line + CONTEXT)
            place = f"{job['shown']}:{source.line}"
            excerpts[place] = [[n, lines[n - 1]] for n in range(first, last + 1)]
    return excerpts
