"""The README says what is so: its commands, output, tree, links and exit statuses."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from specrepro.repro.errors import PRECEDENCE, Exit, worst

# what users and scripts rely on; the pages must say the same
STATUSES = {"OK": 0, "FAULT": 1, "USAGE": 2, "INTERNAL": 3, "UNTESTABLE": 125, "INTERRUPTED": 130}
ORDER = (130, 3, 2, 1, 125, 0)
# cells of the table by command: 0, 1, 125
TABLE = {
    "run": (
        "every case came out as its file says",
        "some case did not",
        "nothing decisive could be observed",
    ),
    "check": ("not affected", "affected", "this build cannot be tested"),
    "bisect": (
        "boundary confirmed",
        "narrowed only, or no boundary",
        "ends untestable, or budget spent without result",
    ),
    "emulate": ("no finding", "findings", "unsupported, unknown"),
    "doctor": ("a GPU lane can run", "–", "none can"),
    "selftest": ("all that was planted was seen", "something was not", "–"),
}
# what the installed script does
SPECREPRO = [sys.executable, "-c", "from specrepro.cli import main; main()"]
PAGES = ("README.md", "docs/verdicts.md")


@pytest.fixture(scope="module")
def readme(root: Path) -> str:
    return (root / "README.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def test_there_is_one_line_to_set_up_and_run_and_one_to_set_up_and_test(readme: str) -> None:
    starts = [line for line in readme.splitlines() if line.startswith("python3 -m venv ")]
    run, test = starts
    assert run.endswith(".venv/bin/specrepro run cases/")
    assert test.endswith(".venv/bin/pytest -n auto --dist loadfile")  # as many as there are cores
    # an older pip knows no --group
    assert "--group" not in test
    assert "-c tests/constraints.txt" in test


def test_the_output_shown_is_what_the_command_prints(
    root: Path, tmp_path: Path, readme: str
) -> None:
    shown = blocks(readme, "text")[0]
    environment = {**os.environ, "COLUMNS": "100", "XDG_STATE_HOME": str(tmp_path)}
    command = [*SPECREPRO, "run", "cases/mtp-tail-overflow.yaml"]
    printed = subprocess.check_output(
        command, cwd=root, env=environment, text=True, stderr=subprocess.DEVNULL
    )
    assert steady(shown) == steady(printed)
    assert len(steady(shown)) > 20


def steady(page: str) -> list[str]:
    """The lines of a page that no time and no device of the machine changes."""
    plain = page.strip().replace("\N{NO-BREAK SPACE}", " ")
    lines = [re.sub(r"\b\d+\.\d s$", "… s", line.rstrip()) for line in plain.splitlines()]
    first = next(n for n, line in enumerate(lines) if line.lstrip().startswith("✓ same launch"))
    after = next(n for n, line in enumerate(lines) if line.startswith("  faces"))
    return [*lines[:first], *lines[after:]]


def test_every_example_command_is_one_that_exists(readme: str) -> None:
    commands = [
        shlex.split(line, comments=True)
        for block in blocks(readme, "sh")
        for line in block.splitlines()
        if line.startswith("specrepro ")
    ]
    assert commands
    for command in commands:
        told = subprocess.check_output([*SPECREPRO, command[1], "--help"], text=True)
        options = [word for word in command[2:] if word.startswith("--")]
        assert [option for option in options if option not in told] == []


def test_the_tree_names_what_there_is(root: Path, tracked: list[str], readme: str) -> None:
    lines = blocks(readme, "text")[-1].splitlines()
    named = [line.split()[0] for line in lines]
    missing = [name for name in named if not (root / name).exists()]
    assert missing == []
    rooms = {"/".join(n.split("/")[:2]) + "/" for n in tracked if re.match(r"repro/\w+/", n)}
    assert rooms - set(named) == set()


def test_every_page_linked_from_the_readme_exists(root: Path, readme: str) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", readme)
    assert links
    assert [link for link in links if not (root / link).is_file()] == []


def test_exit_statuses_are_the_ones_scripts_rely_on() -> None:
    assert {status.name: status.value for status in Exit} == STATUSES
    assert tuple(int(status) for status in PRECEDENCE) == ORDER


def test_the_worst_of_two_statuses_is_the_one_that_comes_first_in_the_order() -> None:
    for first in Exit:
        for second in Exit:
            assert worst([first, second]) == min(first, second, key=lambda s: ORDER.index(s))
    assert worst([]) == 0


@pytest.mark.parametrize("page", PAGES)
def test_pages_say_the_statuses_as_they_are(root: Path, page: str) -> None:
    text = (root / page).read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    told = {
        match[0]: tuple(row[1:])
        for row in rows
        if len(row) == 4 and (match := re.search(r"(?<=^`)\w+", row[0])) and match[0] in TABLE
    }
    assert "run" in told
    assert told == {name: TABLE[name] for name in told}
    assert ["", "0", "1", "125"] in rows
    assert "130 > 3 > 2 > 1 > 125 > 0" in " ".join(text.split())
    for status in (2, 3, 130):
        assert re.search(rf"(?m)(^|[\s`(|]){status}\b.?:", text), (
            f"{page} does not explain {status}"
        )
