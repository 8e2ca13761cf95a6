"""Whatever becomes of a log on its way (cut, mixed, repeated, damaged), there is an answer."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from specrepro.repro.diagnose.read import read_text
from specrepro.repro.diagnose.record import diagnosis_record
from specrepro.repro.diagnose.session import diagnose
from specrepro.repro.report.diagnose_document import diagnose_document
from specrepro.repro.report.diagnose_page import print_diagnosis
from specrepro.repro.report.markdown import markdown

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*/*.*[gd]"))  # *.log and *.md
LINES = [
    line
    for path in CORPUS
    for line in path.read_text(encoding="utf-8").splitlines()
    if line and path.suffix in (".log", ".md")
]
RUN = {"id": "x", "path": "x", "command": "diagnose", "version": "0", "started": "", "seconds": 0}


def answered(text: str, name: str = "a.log") -> dict[str, Any]:
    """The record of a text; every way to show it is tried."""
    reading = read_text(name, text)
    body = diagnosis_record(reading, diagnose(reading))
    found: dict[str, Any] = {"schema": "specrepro/diagnose@1", "run": RUN, "logs": 1, **body}
    shown = io.StringIO()
    for verbose in (False, True):
        print_diagnosis(Console(file=shown, width=60), found, verbose=verbose)
    print_diagnosis(Console(file=shown), found, quiet=True)
    printed = shown.getvalue() + markdown(diagnose_document(found))
    assert all(c.isprintable() or c == "\n" for c in printed.replace("\u200b", ""))
    json.dumps(found, allow_nan=False)
    assert len(found["classes"]) in (0, 22)
    return found


def damaged(seed: int) -> str:
    """Lines of all logs: some of one in order, some of others between, cut, doubled, broken."""
    chance = random.Random(seed)  # noqa: S311 - a reproducible input
    base = chance.choice(CORPUS).read_text(encoding="utf-8").splitlines()
    lines = []
    for line in base:
        roll = chance.random()
        if roll < 0.1:
            continue
        if roll < 0.2:
            line = line[: chance.randrange(len(line) + 1)]
        elif roll < 0.3:
            lines.append(chance.choice(LINES))
        elif roll < 0.35:
            place = chance.randrange(len(line) + 1)
            line = (
                line[:place] + chr(chance.choice([0, 7, 27, 0x202E, 0x9B, 0xD7FF])) + line[place:]
            )
        elif roll < 0.4:
            lines.append(line)
        lines.append(line)
    if chance.random() < 0.2:
        chance.shuffle(lines)
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(150))
def test_a_damaged_log_has_an_answer(seed: int) -> None:
    answered(damaged(seed), "a.md" if seed % 5 == 0 else "a.log")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(LINES) | st.text(max_size=80), max_size=25))
def test_any_lines_have_an_answer(lines: list[str]) -> None:
    answered("\n".join(lines))


def test_nothing_has_no_classes() -> None:
    assert answered("")["first_failure"] is None
