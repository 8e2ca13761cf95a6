"""The host code of a CUDA C++ file, which no device compiler takes: found and blanked out.

Lines keep their numbers. What is left out is said, so that nobody believes it was looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_DEPTH = 50  # of namespaces that are looked into
_SPACES = ("__global__", "__device__")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[^\n]*__(?:global|device)__", re.MULTILINE)
# What may stand before a brace that holds declarations: they are looked at one by one.
_SCOPE = re.compile(r'(?:^|[;{}\s])(?:inline\s+)?namespace\b[^;(]*$|extern\s+"C"\s*$')
_FUNCTION = re.compile(r"\)\s*(?:const\b|noexcept\b|override\b|->[^;{}]*|:[^;{}]*)*\s*$")
_NAME = re.compile(r"([\w:~]+)\s*\(")
_KEPT = re.compile(r"\b(?:constexpr|struct|class|union|enum)\s+[^()]*$|\bconstexpr\b")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A stretch of host code: first and last line (from 1) and the name it has."""

    name: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """A source with its host code blanked out."""

    text: str
    left_out: tuple[LeftOut, ...]


def device_code(text: str) -> DeviceCode:
    """`text` without its host functions (`main` and launchers among them)."""
    plain = _plain(text)
    marks = re.compile(rf"\b(?:{'|'.join((*_SPACES, *_MACRO.findall(text)))})\b")
    found = list(_host_functions(plain, 0, len(plain), marks))
    left_out = []
    for start, end, name in found:
        first = text.count("\n", 0, start) + 1
        left_out.append(LeftOut(name, first, text.count("\n", 0, end - 1) + 1))
        text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
    return DeviceCode(text, tuple(left_out))


def _plain(text: str) -> str:
    """The same length and lines, with comments, strings and preprocessor lines blanked."""

    def blank(match: re.Match[str]) -> str:
        if match[0].startswith('"C'):  # of extern "C"
            return match[0]
        return re.sub(r"[^\n]", " ", match[0])

    pattern = (
        r'//[^\n]*|/\*.*?(?:\*/|\Z)|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
        r"|^[ \t]*#(?:[^\n\\]|\\\n|\\.)*"
    )
    return re.sub(pattern, blank, text, flags=re.MULTILINE | re.DOTALL)


def _host_functions(
    plain: str, start: int, end: int, marks: re.Pattern[str], depth: int = 0
) -> Iterator[tuple[int, int, str]]:
    """(start, end, name) of each function between two places that has none of the marks."""
    at = begin = start
    while at < end:
        sign = plain[at]
        if sign == ";":
            begin = at + 1
        elif sign == "{":
            close = _closing(plain, at, end)
            head = plain[begin:at]
            if _SCOPE.search(head) and depth < MAX_DEPTH:
                yield from _host_functions(plain, at + 1, close, marks, depth + 1)
                begin = close + 1
            elif _FUNCTION.search(head):
                if not marks.search(head) and not _KEPT.search(head):
                    first = begin + len(head) - len(head.lstrip())
                    name = _NAME.search(head)
                    yield first, close + 1, name[1] if name else "host code"
                begin = close + 1
            at = close
        at += 1


def _closing(plain: str, opened: int, end: int) -> int:
    depth = 0
    for at in range(opened, end):
        depth += (plain[at] == "{") - (plain[at] == "}")
        if depth == 0:
            return at
    return end - 1
