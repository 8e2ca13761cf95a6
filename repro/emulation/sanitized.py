"""The parent's side of `specrepro sanitize`: a script in a process of its own, its journal read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..emulator import checks
from ..errors import Exit, KernelError, UsageError
from ..records import Finding

SCHEMA = "specrepro/sanitize@1"
MODULE = "specrepro.repro.emulation.script"
MARK = "complete"
MAX_SOURCE = 16 << 20  # bytes of a file that an excerpt is taken from
CONTEXT = 1  # lines around the line in question


@dataclass(frozen=True, slots=True)
class Sanitized:
    """The record (`specrepro/sanitize@1`) and the exit status that goes with it."""

    record: dict[str, Any]
    status: Exit


def sanitize_script(
    script: Path,
    arguments: Sequence[str],
    timeout: float | None,
    *,
    skip: Sequence[str] = (),
    output: int | None = None,
) -> Sanitized:
    """Run a script as `python SCRIPT ARGS` would, with its Triton launches emulated.

    skip: checks that are not made. output: the descriptor its stdout goes to, None for ours.
    Findings: FAULT. Nothing launched, a launch that was refused, or a script that did not end well:
    UNTESTABLE.
    """
    if not script.is_file():
        raise UsageError("no such file", where=str(script))
    checks.chosen(frozenset(skip))
    with tempfile.TemporaryDirectory(prefix="specrepro-sanitize-") as folder:
        journal = Path(folder) / "journal.ndjson"
        reason = _ended([str(journal), ",".join(skip), str(script), *arguments], timeout, output)
        lines, cut = _lines(journal)
    end = lines.pop() if lines and MARK in lines[-1] else {}
    if not end or cut:
        reason = reason or "its journal is not whole"
    record = _record(script, arguments, lines, end, reason)
    if record["findings"] or record["more"]:
        return Sanitized(record, Exit.FAULT)
    clean = record["launches"] and not record["unsupported"]
    return Sanitized(record, Exit.OK if clean else Exit.UNTESTABLE)


def _ended(arguments: Sequence[str], timeout: float | None, output: int | None) -> str:
    """Why the process did not end by itself; "" where it did."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    child = subprocess.Popen(
        [sys.executable, "-m", MODULE, *arguments],
        env=environment,
        stdout=output,
    )
    try:
        child.wait(timeout)
    except subprocess.TimeoutExpired:
        return f"no end within {timeout:g} s"
    finally:
        if child.returncode is None:
            child.kill()
            child.wait()
    if child.returncode < 0:
        return f"ended by signal {-child.returncode}"
    return f"ended with status {child.returncode}" if child.returncode else ""


def _lines(journal: Path) -> tuple[list[dict[str, Any]], bool]:
    """The whole lines, and whether there is another one."""
    if not journal.is_file():
        return [], True
    lines = []
    for raw in journal.read_bytes().splitlines(keepends=True):
        try:
            lines.append(dict(json.loads(raw)))
        except (ValueError, TypeError, RecursionError):
            return lines, True
    return lines, False


def _record(
    script: Path,
    arguments: Sequence[str],
    lines: Sequence[Mapping[str, Any]],
    end: Mapping[str, Any],
    reason: str,
) -> dict[str, Any]:
    try:
        findings = [one for line in lines for one in line["findings"]]
        found = [Finding.from_json(one) for one in findings]
        launches = [dict(line["launch"]) for line in lines]
        refused = [launch for launch in launches if launch["refused"]]
    except (KeyError, TypeError, ValueError) as error:
        raise KernelError(f"the journal of the script cannot be read: {error!r}") from error
    why = reason or end.get("error") or ""
    if refused and not reason:
        why = f"launch {refused[0]['number']}, {refused[0]['kernel']}: {refused[0]['refused']}"
    elif not why and end.get("status"):
        why = f"the script ended with status {end['status']}; what it did not launch was not seen"
    elif not why and not launches:
        why = "no Triton launch was seen"
    return {
        "schema": SCHEMA,
        "script": {"file": str(script), "arguments": list(arguments), "status": end.get("status")},
        "launches": launches,
        "checks": list(end.get("checks", [])),
        "unchecked": list(end.get("unchecked", [])),
        "warnings": [one for line in lines for one in line.get("warnings", [])],
        "findings": findings,
        "more": int(end.get("unkept", 0)),
        "tensors": dict(end.get("tensors", {})),
        "excerpts": excerpts(found),
        "unsupported": {"message": why, "hint": end.get("hint")} if why else None,
    }


def excerpts(found: Sequence[Finding]) -> dict[str, list[list[Any]]]:
    """`file:line` → the lines around it, of the script's own Python files."""
    texts: dict[str, list[str]] = {}
    told: dict[str, list[list[Any]]] = {}
    for source in dict.fromkeys(one.source for one in found if one.source is not None):
        path = Path(source.file)
        if source.file not in texts:
            readable = path.suffix == ".py" and path.is_file() and path.stat().st_size <= MAX_SOURCE
            text = path.read_text(encoding="utf-8", errors="replace") if readable else ""
            texts[source.file] = text.splitlines()
        lines = texts[source.file]
        if 0 < source.line <= len(lines):
            first, last = max(1, source.line - CONTEXT), min(len(lines), source.line + CONTEXT)
            told[f"{source.file}:{source.line}"] = [
                [number, lines[number - 1]] for number in range(first, last + 1)
            ]
    return told
