"""Reports of every shipped case, of one that could not be decided and of a killed run, in every
format, as they were looked at: a change of one is looked at again.

SPECREPRO_WRITE_GOLDEN=1 writes the files anew. What differs from run to run or machine to machine
(ids, times, versions, why no GPU lane ran) is put into words that do not. Of JSON, which holds all
numbers of a run, the outline is kept: which keys there are, and of what type.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.case import shipped_cases

GOLDEN = Path(__file__).parent / "golden"
CASES = [path.stem for path in shipped_cases()]
KINDS = [*CASES, "inconclusive", "killed"]
FORMATS = {
    "markdown": "md",
    "html": "html",
    "junit": "junit.xml",
    "sarif": "sarif",
    "json": "json.txt",
}
NO_GPU = r"(?:no CUDA device|this GPU|the driver|no driver)[^\"<\n]*"
CHANGES = (
    (re.compile(r"\d{8}-\d{6}-run-[0-9a-f]{6}"), "RUN"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "TIME"),
    (re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])"), "SHA256"),
    (re.compile(r"(?m)^\| (Python|system|packages|seconds) \| .* \|$"), r"| \1 | … |"),
    (re.compile(r"(<dt>(?:Python|system|packages|seconds)</dt><dd>)[^<]*"), r"\1…"),
    (re.compile(r"(?m)^((?:- |<li>)plain, blocking[^:]*: )[^<\n]*"), r"\1REASON"),
    (re.compile(rf'(message="){NO_GPU}"'), r'\1REASON"'),
    (re.compile(r'time="[\d.]+"'), 'time="…"'),
    (re.compile(r'("semanticVersion": |name="specrepro" value=)"[^"]+"'), r'\1"VERSION"'),
    (re.compile(r"specrepro \d+\.\d+[^ ]* ·"), "specrepro VERSION ·"),
    # how far a killed run had come is chance
    (re.compile(r"(?m)^- `(?!request\.json|[\w-]+/case\.yaml).*`\n"), ""),
    (re.compile(r"(?m)^<li><code>(?!request\.json|[\w-]+/case\.yaml).*</code></li>\n"), ""),
)  # fmt: skip


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory, command: Any) -> Path:
    """A folder of runs for each kind."""
    folder = tmp_path_factory.mktemp("golden")
    for case in CASES:
        done = command("run", case, "--runs", folder / case, "-q", timeout=900)
        assert done.returncode == 0, done.stderr
    words = ("run", CASES[-1], "--lane", "reference", "-q")
    done = command(*words, "--runs", folder / "inconclusive", timeout=900)
    assert done.returncode == 125, done.stderr
    _killed(words, folder / "killed")
    return folder


def _killed(words: tuple[str, ...], runs: Path) -> None:
    """Start a run, and kill it when it has begun with its case."""
    code = "import sys; from specrepro.cli import main; main()"
    child = subprocess.Popen([sys.executable, "-c", code, *words, "--runs", runs])
    try:
        while not list(runs.glob("*/*/case.yaml")):
            assert child.poll() is None
            time.sleep(0.01)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert not list(runs.glob("*/run.json"))


def outline(value: Any, at: str = "") -> set[str]:
    """`path: type` of everything in a JSON value."""
    if isinstance(value, dict):
        return {line for key, inner in value.items() for line in outline(inner, f"{at}.{key}")}
    if isinstance(value, list):
        return {line for inner in value for line in outline(inner, f"{at}[]")} or {f"{at}[]"}
    return {f"{at}: {type(value).__name__}"}


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_report_is_as_it_was_looked_at(
    kind: str, format_: str, stored: Path, command: Any
) -> None:
    which = "latest"
    if kind == "killed":
        [which] = [path.name for path in (stored / kind).iterdir()]
    text = command("report", which, "--runs", stored / kind, "--format", format_).stdout
    if format_ == "json":
        lines = sorted(outline(json.loads(text)))
        kept = [line for line in lines if not line.startswith(".environment.packages")]
        text = "\n".join(kept) + "\n"
    if format_ == "junit":
        text = text.replace("><", ">\n<")
    for pattern, instead in CHANGES:
        text = pattern.sub(instead, text)
    golden = GOLDEN / f"{kind}.{FORMATS[format_]}"
    if os.environ.get("SPECREPRO_WRITE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")
