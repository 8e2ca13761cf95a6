"""The outermost level of a PTX text: versions, files, variables, kernels."""

from __future__ import annotations

from dataclasses import dataclass

from .body import Body
from .declarations import formals, layout, parameters, variables
from .ptx import Function, Kernel, Module, Parameter, Statics, Variable
from .reader import Reader

# Linkage and performance hints: they do not change what a kernel computes.
LINKAGE = frozenset({".visible", ".extern", ".weak", ".common"})
HINTS = frozenset({".maxntid", ".minnctapersm", ".maxnreg", ".maxnctapersm", ".noreturn"})


@dataclass(frozen=True, slots=True)
class Head:
    """What is said of a kernel or function before its body."""

    name: str
    line: int
    params: tuple[Parameter, ...] = ()
    reqntid: tuple[int, int, int] | None = None
    takes: tuple[Variable, ...] = ()
    gives: tuple[Variable, ...] = ()


class Parser:
    """Recursive descent over one PTX text."""

    def __init__(self, text: str) -> None:
        self.reader = Reader(text)
        self.globals: dict[str, Variable] = {}
        self.statics = Statics()
        # Bodies as read; `.file` may come last, so places are found at the end.
        self.kernels: dict[str, tuple[Head, Body]] = {}
        self.functions: dict[str, tuple[Head, Body]] = {}

    def module(self) -> Module:
        reader = self.reader
        version = target = ""
        while reader.word:
            word = reader.next()
            if word == ".version":
                version = reader.next()
            elif word == ".target":
                target = reader.next()
                while reader.take(","):
                    reader.next()
            elif word == ".address_size":
                if reader.integer() != 64:
                    reader.fail("only 64-bit addresses are known")
            elif word == ".file":
                reader.file()
            elif word in LINKAGE:
                continue
            elif word == ".entry":
                self.entry()
            elif word == ".func":
                self.function()
            elif word == ".alias":
                reader.fail("aliases of functions are not known")
            elif word in (".global", ".const", ".shared"):
                extern = reader.at >= 2 and reader.words[reader.at - 2] == ".extern"
                for variable in variables(self.reader, word[1:], extern=extern):
                    self.globals[variable.name] = variable
                    if word == ".shared":
                        self.statics.shared.add(variable.name)
                    else:
                        self.statics.variables[variable.name] = variable
            elif word == ".loc":
                reader.location()
            else:
                reader.at -= 1
                reader.fail(f"{word!r} is not known at module level")
        functions: dict[str, Function] = {}
        for name, (head, body) in self.functions.items():
            functions[name] = Function(
                name,
                head.takes,
                head.gives,
                body.instructions(),
                body.labels,
                body.variables,
                body.file(),
            )
        kernels = {name: self.kernel(*found, functions) for name, found in self.kernels.items()}
        return Module(version, target, kernels)

    def kernel(self, head: Head, body: Body, functions: dict[str, Function]) -> Kernel:
        shared = [v for v in body.variables.values() if v.space == "shared"]
        offsets, size = layout(shared)
        return Kernel(
            head.name,
            head.params,
            head.reqntid,
            body.instructions(),
            body.labels,
            body.variables,
            size,
            offsets,
            head.line,
            functions,
            self.statics,
            body.file(),
        )

    def function(self) -> None:
        """`.func (results) name (parameters) { ... }`, or without a body."""
        reader = self.reader
        gives: tuple[Variable, ...] = ()
        while reader.word.startswith("."):
            reader.next()  # .attribute and its like: hints of linkers
        if reader.take("("):
            gives = tuple(formals(reader))
        line = reader.line
        name = reader.next()
        takes = tuple(formals(reader)) if reader.take("(") else ()
        while not reader.take("{"):
            word = reader.next()
            if word == ";":
                return
            if word not in HINTS:
                reader.fail(f"{word!r} is not known before the body of a function")
        if name in self.functions:
            reader.fail(f"function {name} is defined twice")
        body = Body(reader, self.globals, self.statics)
        body.read()
        self.functions[name] = Head(name, line, takes=takes, gives=gives), body

    def entry(self) -> None:
        reader = self.reader
        line = reader.line
        name = reader.next()
        params = tuple(parameters(self.reader)) if reader.take("(") else ()
        if len({parameter.name for parameter in params}) != len(params):
            reader.fail(f"{name} has two parameters of one name")
        reqntid = None
        while not reader.take("{"):
            word = reader.next()
            if word == ".reqntid":
                sizes = [reader.integer()]
                while reader.take(","):
                    sizes.append(reader.integer())
                if len(sizes) > 3:
                    reader.fail(".reqntid has three numbers at most")
                sizes += [1] * (3 - len(sizes))
                reqntid = (sizes[0], sizes[1], sizes[2])
            elif word in HINTS:
                while reader.word[:1].isdigit() or reader.take(","):
                    reader.at += reader.word[:1].isdigit()
            elif word == ";":
                return
            else:
                reader.fail(f"{word!r} is not known before the body of a kernel")
        if name in self.kernels:
            reader.fail(f"kernel {name} is defined twice")
        body = Body(reader, self.globals, self.statics)
        body.read()
        self.kernels[name] = Head(name, line, params, reqntid), body
