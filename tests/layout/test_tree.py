"""Every file of the tree is short, is text, and tells nothing of the machine it was written on."""

from __future__ import annotations

import re
from pathlib import Path

LONGEST = 400  # lines
# what compilers and reports wrote is as long as it is
GENERATED = (".ptx", ".html", ".sarif", ".junit.xml")
PICTURES, LARGEST = "docs/pictures/", 150_000  # bytes

# Hosts a file may name: where reports and standards are, and where vLLM publishes a wheel for each
# commit. That one is no index of packages that a project is installed from: `bisect` asks it for
# commits, as vLLM's documentation tells its users to, so its address is part of the feature.
HOSTS = {
    "github.com": "reports, and the code they speak of",
    "json-schema.org": "the dialect of the case schema",
    "www.w3.org": "the namespace of SVG",
    "wheels.vllm.ai": "vLLM's own wheels of single commits, which `bisect --repo` asks for",
    "json.schemastore.org": "the schema of SARIF, which each such file names",
}
PRIVATE = {
    "a path of one machine": re.compile(r"/(?:root|work|mnt|Users|tmp)/|/home/(?!someone\b)\w"),
    "a package registry": re.compile(
        r"\b(?<!vnd\.)(?:pypi|npmjs|crates|artifactory|nexus|devpi)\.\w|python[h]osted"
        # the name of the setting tells nothing; an address behind it does
        r"|(?:index|proxy)[-_]url\W{1,4}\w+://(?![\w.-]*\.example\b)",
        re.IGNORECASE,
    ),
    # four numbers that are not the end of five: those are a version
    "an address": re.compile(
        r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}\b(?!\.)|\blocalhost:\d|\w\.internal\b"
    ),
}
# Names of machines, users and registries that were made up so that they are seen to be removed.
MADE_UP = ("tests/report/test_redact.py", "tests/report/test_vllm_bug.py")
URL = re.compile(r"\b[a-z][a-z+]*://(?:[^/\s@]*@)?([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)")


def test_no_file_has_more_lines_than_one_can_hold_in_mind(root: Path, tracked: list[str]) -> None:
    counts = {
        name: len((root / name).read_bytes().splitlines())
        for name in tracked
        if not name.endswith(GENERATED)
    }
    assert {name: count for name, count in counts.items() if count > LONGEST} == {}


def test_every_file_is_text_in_utf_8_with_unix_line_ends(root: Path, tracked: list[str]) -> None:
    for name in tracked:
        content = (root / name).read_bytes()
        if name.startswith(PICTURES):
            continue
        content.decode("utf-8")
        assert b"\r" not in content, name
        assert content == b"" or content.endswith(b"\n"), name


def test_pictures_are_small_and_are_pictures(root: Path, tracked: list[str]) -> None:
    for name in tracked:
        if name.startswith(PICTURES):
            content = (root / name).read_bytes()
            assert content.startswith(b"\x89PNG\r\n"), name
            assert len(content) <= LARGEST, name


def test_no_file_names_a_machine_or_a_registry(root: Path, tracked: list[str]) -> None:
    found = [
        f"{name}:{number}: {what}: {match[0]}"
        for name in tracked
        if name not in MADE_UP
        for number, line in enumerate(text(root, name), start=1)
        for what, pattern in PRIVATE.items()
        if (match := pattern.search(line))
    ]
    assert found == []


def test_every_address_is_of_a_known_host(root: Path, tracked: list[str]) -> None:
    found = [
        f"{name}:{number}: {host}"
        for name in tracked
        if name not in MADE_UP
        for number, line in enumerate(text(root, name), start=1)
        for host in URL.findall(line)
        if host not in HOSTS and not host.endswith((".example", ".invalid"))
    ]
    assert found == []


def test_no_file_is_a_link_out_of_the_tree(root: Path, tracked: list[str]) -> None:
    base = root.resolve()
    assert [n for n in tracked if not (root / n).resolve().is_relative_to(base)] == []


def text(root: Path, name: str) -> list[str]:
    if name.startswith(PICTURES):
        return []
    return (root / name).read_text(encoding="utf-8").splitlines()
