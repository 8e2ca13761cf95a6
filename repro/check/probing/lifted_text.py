"""Lines of a file as they go into a lifted module: the same code gives the same text."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass

from .probe import NotFoundError

JIT, CONSTANT = "@triton.jit", "@triton.constexpr_function"


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a module, and the line of its file that each one is. begin: of the statement."""

    text: list[str]
    numbers: list[int]
    begin: int


def function_lines(text: str, node: ast.FunctionDef) -> Lines:
    """A function without its decorators, docstring and comments, moved to the margin."""
    decorated = {decoration(one).rpartition(".")[2] for one in node.decorator_list}
    head = [JIT] if "jit" in decorated else [CONSTANT] if "constexpr_function" in decorated else []
    first = node.body[0]
    dropped: range = range(0)
    fill: list[str] = []
    if ast.get_docstring(node, clean=False) is not None:
        dropped = range(first.lineno, (first.end_lineno or first.lineno) + 1)
        fill = [] if len(node.body) > 1 else ["    pass"]
    found = _lines(text, node.lineno, node.end_lineno or node.lineno, node.col_offset, dropped)
    return Lines(
        [*head, *found.text, *fill],
        [*([node.lineno] * len(head)), *found.numbers, *([first.lineno] * len(fill))],
        node.lineno,
    )


def decoration(node: ast.expr) -> str:
    """The dotted name of a decorator, without its arguments."""
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)


def plain_lines(text: str, node: ast.stmt) -> Lines:
    """A statement of a module's top level, without comments."""
    return _lines(text, node.lineno, node.end_lineno or node.lineno, 0, range(0))


def _lines(text: str, first: int, last: int, margin: int, dropped: Sequence[int]) -> Lines:
    lines = text.splitlines()[first - 1 : last]
    lines = [line[margin:] if line[:margin].isspace() else line for line in lines]
    kept, comments = _strings_and_comments(lines)
    out: list[str] = []
    numbers: list[int] = []
    for index, line in enumerate(lines):
        number = first + index
        if number in dropped:
            continue
        if index in comments:
            line = line[: comments[index]]
        if index not in kept:
            line = line.rstrip()
            if not line:
                continue
        out.append(line)
        numbers.append(number)
    return Lines(out, numbers, first)


def _strings_and_comments(lines: Sequence[str]) -> tuple[set[int], dict[int, int]]:
    """(lines that a string goes on in, line → column where its comment begins), from 0."""
    strings: set[int] = set()
    comments: dict[int, int] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline):
            (row, column), (end, _) = token.start, token.end
            if token.type == tokenize.COMMENT:
                comments[row - 1] = column
            elif end > row and token.type == tokenize.STRING:
                strings.update(range(row - 1, end))
    except (tokenize.TokenError, SyntaxError, IndentationError) as error:
        raise NotFoundError(f"lines {lines[0]!r}… cannot be told apart: {error}") from error
    return strings, comments
