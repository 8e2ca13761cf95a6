"""docs/benchmarks.md: one section a benchmark, replaced whole each time it is measured."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
SCALE = PAGE.with_name("benchmarks-scale.md")  # of several machines, and what that is computed with
BISECTION = PAGE.with_name("benchmarks-bisection.md")  # of searches on histories that are known
HEAD = """# Benchmarks

Each section is written by the command it names, and replaced when that runs again. Ratios come from
measurements taken alternately in one run of the script; no test asserts a time.
"""


def replaced(page: str, name: str, section: str) -> str:
    """`page` with the section called `name` replaced, or appended where there is none.

    ValueError where its end mark is missing.
    """
    begin, end = f"<!-- benchmark {name} -->", f"<!-- end of {name} -->"
    block = f"{begin}\n{section.strip()}\n{end}\n"
    before, found, rest = page.partition(begin)
    if not found:
        return f"{page.rstrip()}\n\n{block}"
    _, closed, after = rest.partition(f"{end}\n")
    if not closed:
        raise ValueError(f"{PAGE.name} has no line {end!r} after {begin!r}")
    return f"{before}{block}{after}"


def write(
    name: str, title: str, command: Sequence[str], lines: Sequence[str], *, file: Path = PAGE
) -> None:
    """Write a section to a page: title, command, date, versions, then `lines`; print it too."""
    facts = [
        f"## {title}",
        "",
        f"`{shlex.join(command)}`, {datetime.now(UTC):%Y-%m-%d}; {versions()}; "
        f"{os.cpu_count()} CPUs, {platform.machine()}.",
        "",
        *lines,
    ]
    section = "\n".join(facts)
    page = file.read_text(encoding="utf-8") if file.exists() else HEAD
    file.parent.mkdir(exist_ok=True)
    file.write_text(replaced(page, name, section), encoding="utf-8")
    print(section)


def versions() -> str:
    """Python and the installed packages that the numbers depend on."""
    names = ("specrepro", "numpy", "typer", "rich", "pydantic")
    packages = ", ".join(f"{name} {metadata.version(name)}" for name in names)
    return f"Python {sys.version.split()[0]}, {packages}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table."""
    rule = ["---" for _ in header]
    return [f"| {' | '.join(row)} |" for row in (header, rule, *rows)]
