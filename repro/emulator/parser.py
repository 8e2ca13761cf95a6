"""The outermost level of a PTX text: versions, files, variables, kernels."""

from __future__ import annotations

from dataclasses import replace

from .body import Body
from .declarations import parameters, variables
from .ptx import Kernel, Module, Variable
from .reader import Reader
from .source_lines import Location

# Linkage and performance hints: they do not change what a kernel computes.
LINKAGE = frozenset({".visible", ".extern", ".weak", ".common"})
HINTS = frozenset({".maxntid", ".minnctapersm", ".maxnreg", ".maxnctapersm", ".noreturn"})


class Parser:
    """Recursive descent over one PTX text."""

    def __init__(self, text: str) -> None:
        self.reader = Reader(text)
        self.globals: dict[str, Variable] = {}
        self.locations: dict[str, list[Location | None]] = {}

    def module(self) -> Module:
        reader = self.reader
        version = target = ""
        kernels: dict[str, Kernel] = {}
        while reader.token.text:
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
                kernel = self.entry()
                if kernel is not None:
                    if kernel.name in kernels:
                        reader.fail(f"kernel {kernel.name} is defined twice")
                    kernels[kernel.name] = kernel
            elif word == ".func":
                self.skip_function()
            elif word in (".global", ".const", ".shared"):
                extern = reader.at >= 2 and reader.tokens[reader.at - 2].text == ".extern"
                for variable in variables(self.reader, word[1:], extern=extern):
                    self.globals[variable.name] = variable
            elif word == ".loc":
                reader.location()
            else:
                reader.at -= 1
                reader.fail(f"{word!r} is not known at module level")
        return Module(version, target, {name: self.placed(kernels[name]) for name in kernels})

    def placed(self, kernel: Kernel) -> Kernel:
        """`kernel` with the source place of every instruction."""
        reader = self.reader
        places = reader.lines.places(self.locations[kernel.name])
        pairs = zip(kernel.body, places, strict=True)
        return replace(kernel, body=tuple(replace(at, place=place) for at, place in pairs))

    def skip_function(self) -> None:
        """Device functions are only reached by `call`, which nothing here executes."""
        reader = self.reader
        depth = 0
        while True:
            word = reader.next()
            if word == "{":
                depth += 1
            elif word == "}":
                depth -= 1
                if depth == 0:
                    return
            elif word == ";" and depth == 0:
                return

    # --- a kernel ------------------------------------------------------------------------------
    def entry(self) -> Kernel | None:
        reader = self.reader
        line = reader.token.line
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
                while reader.token.text[:1].isdigit() or reader.take(","):
                    reader.at += reader.token.text[:1].isdigit()
            elif word == ";":
                return None
            else:
                reader.fail(f"{word!r} is not known before the body of a kernel")
        body = Body(self.reader, self.globals, name, params, reqntid, line)
        kernel, self.locations[name] = body.kernel()
        return kernel
