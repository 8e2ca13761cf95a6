"""A compute-sanitizer made up: takes its options, runs its target, prints what real ones print.

FAKE_SANITIZER, or the file that FAKE_SANITIZER_FILE names, holds JSON: version; found: records as
texts, or "overrun", which is written of what the target's own journal says (`journal`), or "seen",
of what a made-up device saw (device.ndjson beside the log) and this check looks for; ending: well,
killed, cut, silent, failed; xml: whole, none, cut, fewer, doctype; extra: a line before the
summary.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

PFX = "========="
FLAGS = {"--xml"}


def main(words: list[str]) -> int:
    beside = Path(os.environ.get("FAKE_SANITIZER_FILE", "/nonexistent"))
    text = beside.read_text() if beside.is_file() else os.environ.get("FAKE_SANITIZER", "{}")
    said: dict[str, Any] = json.loads(text)
    version = said.get("version", "2026.4.0.0")
    if words[-1:] == ["--version"]:
        print("NVIDIA (R) Compute Sanitizer")
        print("Copyright (c) 2020-2026 NVIDIA Corporation")
        print(f"Version {version} (build 39022338) (public-release)")
        return 0
    options, target = taken(words)
    done = subprocess.run(target, check=False)
    log, xml = Path(options["--log-file"]), Path(options["--save"])
    texts = records(said, version, log.parent, options["--tool"])
    lines = [f"{PFX} COMPUTE-SANITIZER"]
    for text in texts:
        lines += [f"{PFX} {line}".rstrip() for line in [*text.splitlines(), ""]]
    if done.returncode:
        lines.append(f"{PFX} Target application returned an error")
    lines += [f"{PFX} {line}" for line in said.get("extra", [])]
    ending = said.get("ending", "well")
    if ending == "failed":
        lines = [f"{PFX} COMPUTE-SANITIZER", *failure()]
    elif ending not in ("killed", "silent"):
        count = len(texts)
        lines.append(f"{PFX} ERROR SUMMARY: {count} error{'s'[: count != 1]}")
    written = "\n".join(lines) + "\n"
    if ending == "silent":
        return 0
    log.write_text(written[: len(written) // 2] if ending == "cut" else written)
    save(xml, texts, said.get("xml", "whole"))
    if ending == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    return done.returncode


def failure() -> list[str]:
    """As 2026.4 prints it for a target that it cannot attach to."""
    return [
        f"{PFX} Error: process didn't terminate successfully",
        f"{PFX}     The application may have hit an error when dereferencing Unified Memory from "
        "the host. Please rerun the application under cuda-gdb or a host debugger.",
        f"{PFX} Target application terminated before first instrumented API call",
    ]


def taken(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """The options by name, and the target's words."""
    options: dict[str, str] = {}
    at = 0
    while words[at].startswith("--"):
        name = words[at]
        options[name] = "" if name in FLAGS else words[at + 1]
        at += 1 if name in FLAGS else 2
    return options, words[at:]


def records(said: dict[str, Any], version: str, folder: Path, check: str) -> list[str]:
    found: list[str] = []
    for one in said.get("found", []):
        if one == "overrun":
            found += overrun(Path(said["journal"]), version)
        else:
            found += seen(folder / "device.ndjson", check) if one == "seen" else [one]
    return found


WHERE = (
    "\n    at {entry}+0x40 in /opt/x/{file}:{line}"
    "\n    by thread ({thread},0,0) in block ({block},0,0)"
)
INVALID = "Invalid __global__ {direction} of size {width} bytes" + WHERE + "\n    Access to "
# What each check prints of a kind, as 2026.4 words it.
SHOWN = {
    "memcheck": {
        "out_of_bounds_read": INVALID + "{address:#x} is out of bounds",
        "out_of_bounds_write": INVALID + "{address:#x} is out of bounds",
        "misaligned_access": INVALID + "{address:#x} is misaligned",
        "shared_out_of_bounds": "Invalid __shared__ read of size {width} bytes" + WHERE,
    },
    "racecheck": {
        "shared_race": "Error: Race reported between Write access at {entry}+0x90 in "
        "/opt/x/{file}:{line}\n    and Read access at {entry}+0x100 in /opt/x/{file}:{line} "
        "[64 hazards]",
    },
    "initcheck": {
        "uninitialised_read": "Uninitialized __global__ memory read of size {width} bytes"
        + WHERE
        + "\n    Uninitialized access to {address:#x}",
    },
    "synccheck": {
        "divergent_barrier": "Barrier error detected. Divergent thread(s) in block." + WHERE,
    },
}


def seen(device: Path, check: str) -> list[str]:
    """The records of a check, of what a device saw go wrong: one an element."""
    if not device.is_file():
        return []
    shown = SHOWN[check]
    lines = [json.loads(line) for line in device.read_text().splitlines()]
    return [shown[line["kind"]].format(**line) for line in lines if line["kind"] in shown]


def overrun(journal: Path, version: str) -> list[str]:
    """16 threads, each writing 2 bytes past the end of the first tensor of a journal."""
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    tensor = next(line for line in lines if "tensor" in line)
    launch = [line for line in lines if "launch" in line][-1]
    size = tensor["elements"] * tensor["itemsize"]
    end = tensor["address"] + size
    where = f"{launch['entry']}(const short *, long)+0x40 in /opt/x/kernels/kv_write/kernel.cu:23"
    if version.startswith("2023.1"):
        where = f"0x40 in /opt/x/kernels/kv_write/kernel.cu:23:{launch['entry']}(const short *)"
    wording = {"2025": "Access at", "2026": "Access to"}.get(version[:4], "Address")
    return [
        f"Invalid __global__ write of size 2 bytes\n    at {where}\n"
        f"    by thread ({n},0,0) in block (3,0,0)\n"
        f"    {wording} {end + 2 * n:#x} is out of bounds\n"
        f"    and is {2 * n + 1} byte{'s'[: n != 0]} after the nearest allocation at "
        f"{tensor['address']:#x} of size {size:,} bytes\n"
        "    Saved host backtrace up to driver entry point at kernel launch time\n"
        "        Host Frame: launch in child.py:88"
        for n in range(16)
    ]


def save(path: Path, texts: list[str], how: str) -> None:
    if how == "none" or not texts:
        return
    kept = texts[: len(texts) // 2] if how == "fewer" else texts
    kinds = {"Invalid": "Precise", "Program": "Api", "Uninitialized": "Initcheck"}
    body = "".join(
        f"<record><kind>{kinds.get(text.split()[0], 'New')}</kind><level>Error</level>"
        f"<what><text>{text.splitlines()[0]}</text></what></record>"
        for text in (one.replace("<", "&lt;") for one in kept)
    )
    head = '<?xml version="1.0" encoding="utf-8"?>'
    doctype = '<!DOCTYPE x [<!ENTITY a "b">]>' if how == "doctype" else ""
    written = f"{head}{doctype}<ComputeSanitizerOutput>{body}</ComputeSanitizerOutput>"
    path.write_text(written[: len(written) // 2] if how == "cut" else written)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
