"""What a probe is, and what it may look at."""

from __future__ import annotations

import ast
import fnmatch
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class NotFoundError(Exception):
    """A probe did not find its subject, or found it in a shape it does not know: unknown."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a probe found. `value` is one of the probe's values (for a table: key → value).

    path, line: where, line counted from 1. ran: a function of the build was executed; else its
    source was read. detail: what was seen, in words, with the numbers.
    """

    value: str | Mapping[str, str]
    path: str
    line: int
    ran: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """One question to the code of a build.

    files: patterns of members, relative to any folder of the build; `*` crosses folders. values:
    every value an answer can have → what it means. table: an answer maps keys to values.
    without: pattern → patterns looked at only in a build that has no member that fits it, because
    a later build keeps the same elsewhere and would pay for a file that does not matter.
    """

    id: str
    question: str
    files: tuple[str, ...]
    values: Mapping[str, str]
    answer: Callable[[Sources], Answer]
    table: bool = False
    without: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def patterns(self, members: Collection[str]) -> tuple[str, ...]:
        """Patterns of what it looks at in a build with these members."""
        more = [
            pattern
            for known, others in self.without.items()
            if not any(matches(name, known) for name in members)
            for pattern in others
        ]
        return (*self.files, *more)


@dataclass(frozen=True, slots=True)
class Lift:
    """A kernel that is asked for. files, helpers: patterns of members in which it is looked for,
    and in which what it needs may be. names: patterns of its last name, in order of preference.
    needs: parameters it must have, each a name or several with `|`."""

    id: str
    files: tuple[str, ...]
    names: tuple[str, ...]
    helpers: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


def matches(name: str, pattern: str) -> bool:
    """Whether a member's path fits a pattern, from its beginning or from any folder on."""
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name, f"*/{pattern}")


@dataclass(frozen=True, slots=True)
class Sources:
    """The members of a build that were put into the sandbox, parsed at most once."""

    files: Mapping[str, Path]
    trees: dict[str, ast.Module] = field(default_factory=dict)
    tables: dict[str, dict[str, Function]] = field(default_factory=dict)

    def paths(self, *patterns: str) -> list[str]:
        """Members that fit one of the patterns, in the order of the patterns."""
        found = [n for p in patterns for n in sorted(self.files) if matches(n, p)]
        return list(dict.fromkeys(found))

    def text(self, path: str) -> str:
        return self.files[path].read_text(encoding="utf-8")

    def tree(self, path: str) -> ast.Module:
        """The syntax tree; NotFoundError where the file is not Python."""
        if path not in self.trees:
            try:
                self.trees[path] = ast.parse(self.text(path), path)
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                raise NotFoundError(f"{path} cannot be parsed: {error}") from error
        return self.trees[path]

    def functions(self, path: str) -> dict[str, Function]:
        """Qualified name → node of every function and class, the first of a name."""
        if path not in self.tables:
            self.tables[path] = dict(_functions(self.tree(path), ""))
        return self.tables[path]

    def function(self, patterns: tuple[str, ...], *names: str) -> tuple[str, str, Function]:
        """(path, qualified name, node) of the first of `names` in a file that fits."""
        for path in self.paths(*patterns):
            table = self.functions(path)
            for name in names:
                if name in table:
                    return path, name, table[name]
        raise NotFoundError(f"no {' or '.join(names)} in {', '.join(patterns)}")


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    found: dict[str, Function] = {}
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            name = prefix + child.name
            found.setdefault(name, child)
            for inner, deeper in _functions(child, f"{name}."):
                found.setdefault(inner, deeper)
        elif isinstance(child, ast.If | ast.Try | ast.With):
            for inner, deeper in _functions(child, prefix):
                found.setdefault(inner, deeper)
    yield from found.items()


def names(node: ast.AST) -> set[str]:
    """Every name and attribute that occurs below a node."""
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return found | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}


def called(node: ast.AST) -> list[tuple[str, ast.Call]]:
    """(last name, call) of every call below a node."""
    found = []
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            if isinstance(call.func, ast.Attribute):
                found.append((call.func.attr, call))
            elif isinstance(call.func, ast.Name):
                found.append((call.func.id, call))
    return found


def assigned(node: ast.AST, name: str) -> list[ast.Assign]:
    """Assignments below a node whose first target is this name or an attribute of this name."""
    found = []
    for statement in ast.walk(node):
        if isinstance(statement, ast.Assign):
            target: Any = statement.targets[0]
            if name in (getattr(target, "id", None), getattr(target, "attr", None)):
                found.append(statement)
    return found
