"""One set of development requirements, said in three places."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version


def lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def pins(root: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines(root / "tests/constraints.txt"):
        match = re.fullmatch(r"([A-Za-z0-9._-]+)==([0-9][0-9a-z.+]*)", line)
        assert match, f"not an exact pin: {line}"
        found[canonicalize_name(match[1])] = match[2]
    return found


def test_requirements_for_an_older_pip_are_the_dev_group(
    root: Path, project: dict[str, Any]
) -> None:
    group = project["dependency-groups"]["dev"]
    assert sorted(lines(root / "tests/requirements.txt")) == sorted(group)


def test_every_requirement_has_a_pin_inside_its_range(root: Path, project: dict[str, Any]) -> None:
    pinned = pins(root)
    wanted = [
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["kernels"],
        *project["project"]["optional-dependencies"]["check"],
        *project["dependency-groups"]["dev"],
    ]
    for requirement in map(Requirement, wanted):
        version = pinned[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(Version(version)), str(requirement)


def test_what_the_requirements_bring_along_is_pinned_too(
    root: Path, project: dict[str, Any]
) -> None:
    pinned = pins(root)
    queue = [
        Requirement(text).name
        for text in (*project["project"]["dependencies"], *project["dependency-groups"]["dev"])
    ]
    seen: set[str] = set()
    while queue:
        name = canonicalize_name(queue.pop())
        if name in seen:
            continue
        seen.add(name)
        needed = map(Requirement, metadata.requires(name) or ())
        queue += [r.name for r in needed if r.marker is None or r.marker.evaluate({"extra": ""})]
    assert sorted(seen - set(pinned)) == []
