"""The docs say what the program does: commands are run, tables compared, links followed.

Conventions of a ```console block: a line that starts with `$ ` is a command, `# exit N` at its end
the status it must end with (0 if left out); the lines below it are its output. They must follow
each other in the real output (stdout, then stderr) as they do here, but for white space. `…` alone
on a line leaves lines out, within a line it stands for any text. Times and run ids match any.
A ```yaml, ```python, ```cpp or ```log block whose first line is a comment with a name
(`# NAME.yaml`, `# NAME.py`, `// NAME.cu`, `# NAME.log`) is a file that commands may name. A YAML
file with `args:` holds the arguments of a kernel, any other one is a case.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from specrepro.repro.case import load_case, shipped_cases
from specrepro.repro.case.model import Case, Control, Expectation, ExpectedFinding, Hypothesis
from specrepro.repro.compilation import CompilerMissingError, compiler_version
from specrepro.repro.errors import PRECEDENCE, Exit
from specrepro.repro.lanes.catalog import CATALOG
from specrepro.repro.records import Cause, Kind, RunVerdict, Seen, Status

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
# Commands that install, fetch or write into the checkout: shown, never run here.
NOT_RUN = ("pip ", "git ", "python -m venv ", ". ", "python -m specrepro.repro.compilation")
# Pages whose commands need compilers.
NEEDS = {"check-your-kernel.md": ("triton", "cuda")}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`[^`]+`")  # code in a line, where brackets are no links
EXIT_MARK = re.compile(r"\s+# exit (\d+)$")
VOLATILE = (
    (re.compile(r"\b\d{8}-\d{6}-run-[0-9a-f]{6}\b"), "RUN"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"\b\d+\.\d s\b"), "SECONDS"),
)
OWN_FILE = re.compile(r"(?:repro|kernels|cases|docs|tests)/[\w./<>*-]*|cli\.py|pyproject\.toml")


@dataclass(frozen=True)
class Command:
    text: str
    status: int
    shown: tuple[str, ...]


@dataclass(frozen=True)
class Ran:
    status: int
    lines: list[str]


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return [body for name, body in FENCE.findall(text) if name == language]


def commands(page: Path) -> list[Command]:
    found: list[Command] = []
    for block in blocks(page, "console"):
        assert block.startswith("$ "), f"{page.name}: a console block starts with a command"
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            first, *shown = part.rstrip("\n").split("\n")
            mark = EXIT_MARK.search(first)
            text = EXIT_MARK.sub("", first).strip()
            found.append(Command(text, int(mark[1]) if mark else 0, tuple(shown)))
    return found


def stable(line: str) -> str:
    line = " ".join(line.split())  # no-break spaces too
    for pattern, name in VOLATILE:
        line = pattern.sub(name, line)
    return line


def first_difference(shown: tuple[str, ...], real: list[str]) -> str | None:
    """The first shown line that the output has not, or not where it should be; None: all there."""
    at, anywhere = 0, True
    for line in shown:
        wanted = stable(line)
        if wanted == "…":
            anywhere = True
            continue
        pattern = re.compile(".*".join(re.escape(piece) for piece in wanted.split("…")))
        last = len(real) if anywhere else at + 1
        hit = next((i for i in range(at, min(last, len(real))) if pattern.fullmatch(real[i])), None)
        if hit is None:
            return line
        at, anywhere = hit + 1, False
    return None


def files_of(page: Path) -> list[tuple[str, str]]:
    """Name and text of every file that a page shows whole."""
    return [
        (name[1], block)
        for language in ("yaml", "python", "cpp", "log")
        for block in blocks(page, language)
        if (name := re.match(r"(?:#|//) ([\w-]+\.(?:yaml|py|cu|log))\n", block))
    ]


class Shell:
    """Runs each distinct command of the docs once, all of them in one scratch folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.ran: dict[str, Ran] = {}
        kept = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "SPECREPRO_COLOR")}
        self.environment = kept | {
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
            "PYTHONUTF8": "1",
            "XDG_STATE_HOME": str(folder / "state"),
        }
        with as_file(files("specrepro") / "cases") as cases:
            shutil.copytree(cases, self.folder / "cases")
        for page in PAGES:
            for name, text in files_of(page):
                assert not (self.folder / name).exists(), f"two files called {name}"
                (self.folder / name).write_text(text, encoding="utf-8")

    def run(self, command: str) -> Ran:
        if command not in self.ran:
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=self.folder,
                env=self.environment,
                capture_output=True,
                encoding="utf-8",
                stdin=subprocess.DEVNULL,
                timeout=300,
                check=False,
            )
            lines = (done.stdout + "\n" + done.stderr).splitlines()
            self.ran[command] = Ran(done.returncode, [s for line in lines if (s := stable(line))])
        return self.ran[command]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(tmp_path_factory.mktemp("docs"))


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=name_of)
def test_commands_end_and_print_as_the_page_says(page: Path, shell: Shell) -> None:
    for language in NEEDS.get(name_of(page), ()):
        try:
            compiler_version(language)
        except CompilerMissingError as error:
            pytest.skip(f"{error} is not installed")
    for command in commands(page):
        if command.text.startswith(NOT_RUN):
            continue
        ran = shell.run(command.text)
        said = "\n".join(ran.lines)
        assert ran.status == command.status, f"$ {command.text}\n{said}"
        shown = tuple(line for line in command.shown if line.strip())
        difference = first_difference(shown, ran.lines)
        assert difference is None, f"$ {command.text}\nnot printed: {difference}\n{said}"


def test_a_shown_line_that_the_output_has_not_is_found() -> None:
    real = ["one", "two 1", "three"]
    assert first_difference(("one", "two …"), real) is None
    assert first_difference(("one", "three"), real) == "three"
    assert first_difference(("one", "…", "three"), real) is None
    assert first_difference(("two 2",), real) == "two 2"
    assert first_difference(("three", "…", "one"), real) == "one"


def test_the_docs_run_every_command_of_the_program(shell: Shell) -> None:
    said = shell.run("specrepro --help").lines
    known = {line.split()[0] for line in said[said.index("Commands:") + 1 :]}
    assert "run" in known
    used = {c.text.split()[1] for page in PAGES for c in commands(page) if "specrepro " in c.text}
    assert known <= used


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#{1,6} (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_inside_the_repository_lead_somewhere(page: Path) -> None:
    text = INLINE.sub("", FENCE.sub("", page.read_text(encoding="utf-8")))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert file.is_relative_to(ROOT), target
        assert not anchor or anchor in anchors(file), target


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_a_page_names_exist(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for name in re.findall(r"`([^`\n]+)`", text):
        path = name.split(":")[0]
        if OWN_FILE.fullmatch(path):
            found = list(ROOT.glob(re.sub(r"<\w+>", "*", path).rstrip("/")))
            assert found, f"{page.name} names {name}"


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head; backquotes taken off."""
    text = (DOCS / page).read_text(encoding="utf-8")
    _, found, rest = text.partition(f"\n## {heading}\n")
    assert found, f"{page} has no heading {heading}"
    table = re.search(r"(?:^\|.*\n)+", rest.partition("\n## ")[0], re.MULTILINE)
    assert table, f"no table below {heading}"
    lines = table[0].strip().split("\n")
    cells = [[cell.strip().replace("`", "") for cell in line.split("|")[1:-1]] for line in lines]
    return [cells[0], *cells[2:]]


def test_the_table_of_lanes_is_the_catalog() -> None:
    said = [row[:4] for row in rows("lanes.md", "The lanes")[1:]]
    yes = {True: "yes", False: "no"}
    assert said == [
        [lane.name, lane.doc, yes[lane.kernels], yes[lane.device]] for lane in CATALOG.values()
    ]


def test_the_table_of_kinds_is_the_catalog() -> None:
    head, *body = rows("lanes.md", "What a lane sees and locates")
    assert head[1:] == list(CATALOG)
    assert [row[0] for row in body] == [str(kind) for kind in Kind]
    for row in body:
        kind = Kind(row[0])
        for lane, cell in zip(CATALOG.values(), row[1:], strict=True):
            wanted = "locates" if kind in lane.locates else "sees" if kind in lane.sees else "–"
            assert cell == wanted, f"{kind} in {lane.name}"


def test_the_table_of_exit_statuses_is_the_programs() -> None:
    said = [(int(row[0]), row[1]) for row in rows("verdicts.md", "Names of the statuses")[1:]]
    assert said == [(int(status), status.name) for status in Exit]
    order = " > ".join(str(int(status)) for status in PRECEDENCE)
    assert order in (DOCS / "verdicts.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("Verdict of a case", RunVerdict),
        ("Status of a trial", Status),
        ("Cause of a report", Cause),
        ("Evidence", Seen),
    ],
)
def test_the_tables_of_words_name_every_one(heading: str, words: type[Cause]) -> None:
    assert [row[0] for row in rows("verdicts.md", heading)[1:]] == [str(word) for word in words]


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("The keys", Case),
        ("An expectation", Expectation),
        ("An expected finding", ExpectedFinding),
        ("A hypothesis", Hypothesis),
        ("A control", Control),
    ],
)
def test_the_tables_of_keys_name_every_one(heading: str, model: type[Case]) -> None:
    keys = [field.alias or name for name, field in model.model_fields.items()]
    assert [row[0] for row in rows("writing-a-case.md", heading)[1:]] == keys


def test_every_shipped_case_has_the_page_of_its_class() -> None:
    for path in shipped_cases():
        case = load_case(path).case
        page = DOCS / "faults" / f"{case.fault_class}.md"
        assert case.report in page.read_text(encoding="utf-8")


def test_every_file_that_the_docs_show_whole_is_a_case() -> None:
    shown = [file for page in PAGES for file in files_of(page) if file[0].endswith(".yaml")]
    cases = [(name, text) for name, text in shown if "\nargs:" not in text]
    assert cases
    for name, text in cases:
        assert f"id: {Path(name).stem}\n" in text
