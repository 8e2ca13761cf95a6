"""The Markdown of every shipped case, as it was looked at: a change of it is looked at again.

SPECREPRO_WRITE_GOLDEN=1 writes the files anew. What differs from run to run or machine to machine
(ids, times, versions, why no GPU lane ran) is put into words that do not.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.case import shipped_cases

GOLDEN = Path(__file__).parent / "golden"
CHANGES = (
    (re.compile(r"\d{8}-\d{6}-run-[0-9a-f]{6}"), "RUN"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"`[0-9a-f]{64}`"), "`SHA256`"),
    (re.compile(r"(?m)^\| (Python|system|packages|seconds) \| .* \|$"), r"| \1 | … |"),
    (re.compile(r"(?m)^(- plain, blocking.*?: ).*$"), r"\1REASON"),
    (re.compile(r"<sub>specrepro [^ ]+ "), "<sub>specrepro VERSION "),
)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory, command: Any) -> Path:
    folder = tmp_path_factory.mktemp("golden")
    for path in shipped_cases():
        done = command("run", path.stem, "--runs", folder / path.stem, "-q")
        assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("case", [path.stem for path in shipped_cases()])
def test_the_report_of_a_case_is_as_it_was_looked_at(case: str, stored: Path, command: Any) -> None:
    text = command("report", "--runs", stored / case).stdout
    for pattern, instead in CHANGES:
        text = pattern.sub(instead, text)
    golden = GOLDEN / f"{case}.md"
    if os.environ.get("SPECREPRO_WRITE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")
