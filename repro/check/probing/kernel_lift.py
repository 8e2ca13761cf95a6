"""Lift a Triton kernel out of a build: its text and that of all it needs, executed by nobody here.

The result is one Python module that holds the kernel, the functions it calls and the constants it
names, each taken from the file that defines it, and for every line of it the line of the build that
it is. Comments and docstrings are left out, so that releases whose code is the same give the same
text. Decorators are replaced: options of a launch are the caller's.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from .lifted_text import Lines, decoration, function_lines, plain_lines
from .probe import Lift, NotFoundError, Sources, matches

MOST_PARTS = 200  # definitions of one kernel
# Triton itself and the standard library, under whatever module of the engine re-exports them
KNOWN_IMPORTS = {
    "triton": "import triton",
    "tl": "import triton.language as tl",
    "tldevice": "import triton.language.extra.libdevice as tldevice",
    "libdevice": "import triton.language.extra.libdevice as libdevice",
    "HAS_TRITON": "HAS_TRITON = True",
}
PLAIN_MODULES = ("triton", "os", "math")


@dataclass(frozen=True, slots=True)
class Place:
    """A name in a file of the build."""

    path: str
    name: str


@dataclass(slots=True)
class Lifting:
    """What was gathered so far. parts: in the order in which they are to be executed."""

    sources: Sources
    imports: dict[str, None] = field(default_factory=dict)
    parts: list[tuple[str, Lines]] = field(default_factory=list)
    done: dict[Place, None] = field(default_factory=dict)
    homes: dict[str, Place] = field(default_factory=dict)

    def need(self, path: str, name: str) -> None:
        """Gather what `name` is in `path`, and before it what that needs."""
        place = Place(path, name)
        if place in self.done or hasattr(builtins, name):
            return
        self.done[place] = None
        if len(self.done) > MOST_PARTS:
            raise NotFoundError(f"it needs more than {MOST_PARTS} definitions")
        statement = _binding(self.sources.tree(path), name)
        if statement is None:
            raise NotFoundError(f"{name} is not defined in {path}")
        if isinstance(statement, ast.Import | ast.ImportFrom):
            self._imported(path, name, statement)
            return
        self.claim(name, place)
        for needed in sorted(free_names(statement) - {name}):
            self.need(path, needed)
        text = self.sources.text(path)
        if isinstance(statement, ast.FunctionDef):
            self.parts.append((path, function_lines(text, statement)))
        elif (path, statement.lineno) not in {(known, one.begin) for known, one in self.parts}:
            self.parts.append((path, plain_lines(text, statement)))

    def claim(self, name: str, place: Place) -> None:
        """One module holds everything, so a name can be one thing only."""
        if self.homes.setdefault(name, place) != place:
            raise NotFoundError(f"{name} is one thing in {self.homes[name].path}, another here")

    def _imported(self, path: str, name: str, statement: ast.Import | ast.ImportFrom) -> None:
        alias = next(a for a in statement.names if (a.asname or a.name.split(".")[0]) == name)
        if isinstance(statement, ast.Import):
            if alias.name.split(".")[0] not in PLAIN_MODULES:
                raise NotFoundError(f"it needs the module {alias.name}")
            self.imports[ast.unparse(ast.Import([alias]))] = None
            return
        module = statement.module or ""
        if statement.level == 0 and module.split(".")[0] in PLAIN_MODULES:
            self.imports[ast.unparse(ast.ImportFrom(module, [alias], 0))] = None
            return
        if alias.name in KNOWN_IMPORTS and alias.asname in (None, alias.name):
            self.imports[KNOWN_IMPORTS[alias.name]] = None
            return
        home = _home(self.sources, path, module, statement.level)
        self.need(home, alias.name)
        if alias.asname not in (None, alias.name):
            raise NotFoundError(f"{alias.name} goes by the name {alias.asname}")


def lift_kernel(sources: Sources, wanted: Lift) -> dict[str, Any]:
    """The first kernel that fits, with all it needs, as plain JSON.

    NotFoundError where there is none, or it needs what cannot be lifted.
    """
    path, qualified, node = _kernel(sources, wanted)
    lifting = Lifting(sources)
    lifting.claim(node.name, Place(path, qualified))
    for needed in sorted(free_names(node) - {node.name}):
        lifting.need(path, needed)
    lifting.parts.append((path, function_lines(sources.text(path), node)))
    head = ["import triton", *(i for i in lifting.imports if i != "import triton")]
    text, places = list(head), [("", 0) for _ in head]
    for part, lines in lifting.parts:
        text += lines.text
        places += [(part, number) for number in lines.numbers]
    paths = list(dict.fromkeys(name for name, _ in places))
    return {
        "path": path,
        "line": node.lineno,
        "entry": node.name,
        "parameters": [_parameter(node, a, d) for a, d in _signature(node)],
        "text": "\n".join(text) + "\n",
        "files": paths,
        "places": [[paths.index(name), number] for name, number in places],
    }


def _kernel(sources: Sources, wanted: Lift) -> tuple[str, str, ast.FunctionDef]:
    lacking = ""
    for path, name, node in _candidates(sources, wanted):
        known = {argument.arg for argument, _ in _signature(node)}
        missing = [n for n in wanted.needs if not known & set(n.split("|"))]
        if not missing:
            return path, name, node
        lacking = lacking or f"; {name} of {path} has no parameter {missing[0]}"
    names, files = " or ".join(wanted.names), ", ".join(wanted.files)
    raise NotFoundError(f"no kernel {names} in {files}{lacking}")


def _candidates(sources: Sources, wanted: Lift) -> Iterator[tuple[str, str, ast.FunctionDef]]:
    for path in sources.paths(*wanted.files):
        table = sources.functions(path)
        for pattern in wanted.names:
            for name, node in table.items():
                if not isinstance(node, ast.FunctionDef) or not is_kernel(node):
                    continue
                if matches(node.name, pattern):
                    yield path, name, node


def is_kernel(node: ast.FunctionDef) -> bool:
    """Whether a function is one of Triton's: `@triton.jit`, with options or not."""
    return any(decoration(one).endswith("jit") for one in node.decorator_list)


def _signature(node: ast.FunctionDef) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    spec = node.args
    if spec.vararg or spec.kwarg:
        raise NotFoundError(f"{node.name} takes any number of arguments")
    plain = [*spec.posonlyargs, *spec.args]
    defaults = [None] * (len(plain) - len(spec.defaults)) + list(spec.defaults)
    yield from zip(plain, defaults, strict=True)
    yield from zip(spec.kwonlyargs, spec.kw_defaults, strict=True)


def _parameter(node: ast.FunctionDef, argument: ast.arg, default: ast.expr | None) -> Any:
    note = "" if argument.annotation is None else ast.unparse(argument.annotation)
    found: dict[str, Any] = {"name": argument.arg, "annotation": note, "default": None}
    if default is not None:
        found["default"] = ast.unparse(default)
        try:
            literal = ast.literal_eval(default)
        except (ValueError, TypeError, SyntaxError, RecursionError):
            literal = None
        if isinstance(literal, bool | int | float):
            found["literal"] = literal
    return found


def free_names(statement: ast.stmt) -> set[str]:
    """Names that a statement takes from around it: read, and not bound within. Decorators of a
    function do not count, they are replaced."""
    read: set[str] = set()
    bound: set[str] = set()
    queue: list[ast.AST] = [statement]
    while queue:
        node = queue.pop()
        skipped: list[ast.expr] = []
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.FunctionDef):
            bound.add(node.name)
            skipped = node.decorator_list if node is statement else []
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
        queue += [child for child in ast.iter_child_nodes(node) if child not in skipped]
    return read - bound


def _binding(tree: ast.Module, name: str) -> ast.stmt | None:
    """The last statement of a module's top level that binds a name; of an `if` or `try` the
    whole."""
    found = None
    for statement in tree.body:
        if name in _bound(statement):
            found = statement
    return found


def _bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.split(".")[0] for alias in statement.names}
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return {t.id for t in targets if isinstance(t, ast.Name)}
    found: set[str] = set()
    if isinstance(statement, ast.If | ast.Try):
        for child in ast.iter_child_nodes(statement):
            found |= _bound(child) if isinstance(child, ast.stmt) else set()
    return found


def _home(sources: Sources, path: str, module: str, level: int) -> str:
    """The file of the build that `from MODULE import …` in `path` names."""
    above = PurePosixPath(path).parts[:-level] if level else ()
    wanted = "/".join((*above, *module.split("."))).strip("/")
    for name in sources.files:
        if name in (f"{wanted}.py", f"{wanted}/__init__.py"):
            return name
        if level == 0 and name.endswith((f"/{wanted}.py", f"/{wanted}/__init__.py")):
            return name
    raise NotFoundError(f"it needs {module or wanted}, which was not looked at")
