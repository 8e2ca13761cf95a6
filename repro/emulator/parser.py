"""Tokens to records: declarations, scopes, labels, source lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn

from ..errors import UnsupportedError
from .lexer import Token, tokens
from .ptx import (
    Address,
    Immediate,
    Instruction,
    Kernel,
    Module,
    Negated,
    Operand,
    Pair,
    Parameter,
    Place,
    Register,
    Sink,
    Special,
    Symbol,
    Variable,
    Vector,
)
from .source_lines import Location, SourceLines

SIZES = {
    "pred": 1,
    **{f"{kind}{bits}": bits // 8 for kind in "bsu" for bits in (8, 16, 32, 64)},
    "f16": 2,
    "bf16": 2,
    "f16x2": 4,
    "bf16x2": 4,
    "f32": 4,
    "f64": 8,
}
SPECIAL = re.compile(
    r"%(?:(?:tid|ntid|ctaid|nctaid)(?:\.[xyz])?|laneid|warpid|nwarpid|smid|nsmid|gridid"
    r"|lanemask_(?:eq|le|lt|ge|gt)|clock(?:64|_hi)?|globaltimer(?:_lo|_hi)?|pm\d+"
    r"|dynamic_smem_size|total_smem_size|envreg\d+)",
    re.ASCII,
)
_RANGE = re.compile(r"(.*?)(0|[1-9]\d{0,8})$", re.ASCII)
_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?$", re.ASCII)
_FLOAT = re.compile(r"0([fF])([0-9a-fA-F]{8})$|0([dD])([0-9a-fA-F]{16})$", re.ASCII)
_DECIMAL = re.compile(r"\d{1,40}\.\d{0,40}(?:[eE]\d{1,4})?$", re.ASCII)
MAX_DIGITS = 40  # of an integer literal; 64 bits need 20
MAX_BYTES = 1 << 30  # of one variable
MAX_DEPTH = 64  # of nested scopes

# Linkage and performance hints: they do not change what a kernel computes.
LINKAGE = frozenset({".visible", ".extern", ".weak", ".common"})
HINTS = frozenset({".maxntid", ".minnctapersm", ".maxnreg", ".maxnctapersm", ".noreturn"})


class Scope:
    """Registers and labels of one `{ }`; names are looked up outwards."""

    def __init__(self, number: int, outer: Scope | None) -> None:
        self.number = number
        self.outer = outer
        self.types: dict[str, str] = {}
        self.ranges: dict[str, tuple[str, int]] = {}
        self.labels: set[str] = set()

    def register(self, name: str) -> Register | None:
        scope: Scope | None = self
        while scope is not None:
            kind = scope.types.get(name)
            if kind is None and (match := _RANGE.match(name)) is not None:
                kind, count = scope.ranges.get(match[1], ("", 0))
                kind = kind if int(match[2]) < count else None
            if kind:
                return Register(name if scope.number == 0 else f"{name}'{scope.number}", kind)
            scope = scope.outer
        return None


class Parser:
    """Recursive descent over the tokens of one PTX file."""

    def __init__(self, text: str) -> None:
        self.tokens = tokens(text)
        self.at = 0
        self.lines = SourceLines()
        self.globals: dict[str, Variable] = {}
        self.locations: dict[str, list[Location | None]] = {}

    # --- tokens --------------------------------------------------------------------------------
    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def next(self) -> str:
        token = self.tokens[self.at]
        if token.text == "":
            self.fail("the text ends here")
        self.at += 1
        return token.text

    def take(self, text: str) -> bool:
        if self.tokens[self.at].text == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.take(text):
            self.fail(f"{self.token.text!r} where {text!r} is expected")

    def fail(self, message: str, line: int | None = None) -> NoReturn:
        raise UnsupportedError(message, where=f"PTX line {line or self.token.line}")

    def integer(self) -> int:
        negative = self.take("-")
        word = self.next()
        match = _INTEGER.match(word)
        if match is None or len(word) > MAX_DIGITS:
            self.fail(f"{word[:40]!r} is no integer")
        digits = match[1]
        octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
        try:
            value = int(digits, 8 if octal else 0)
        except ValueError:
            self.fail(f"{word!r} is no integer")
        return -value if negative else value

    # --- the module ----------------------------------------------------------------------------
    def module(self) -> Module:
        version = target = ""
        kernels: dict[str, Kernel] = {}
        while self.token.text:
            word = self.next()
            if word == ".version":
                version = self.next()
            elif word == ".target":
                target = self.next()
                while self.take(","):
                    self.next()
            elif word == ".address_size":
                if self.integer() != 64:
                    self.fail("only 64-bit addresses are known")
            elif word == ".file":
                self.file()
            elif word in LINKAGE:
                continue
            elif word == ".entry":
                kernel = self.entry()
                if kernel is not None:
                    if kernel.name in kernels:
                        self.fail(f"kernel {kernel.name} is defined twice")
                    kernels[kernel.name] = kernel
            elif word == ".func":
                self.skip_function()
            elif word in (".global", ".const", ".shared"):
                extern = self.at >= 2 and self.tokens[self.at - 2].text == ".extern"
                for variable in self.variable(word[1:], extern):
                    self.globals[variable.name] = variable
            elif word == ".loc":
                self.location()
            else:
                self.at -= 1
                self.fail(f"{word!r} is not known at module level")
        return Module(version, target, {name: self.placed(kernels[name]) for name in kernels})

    def placed(self, kernel: Kernel) -> Kernel:
        """`kernel` with the source place of every instruction."""
        places = self.lines.places(self.locations[kernel.name])
        pairs = zip(kernel.body, places, strict=True)
        return replace(kernel, body=tuple(replace(at, place=place) for at, place in pairs))

    def file(self) -> None:
        number = self.integer()
        name = self.next()
        if name[0] != '"':
            self.fail(f"{name!r} is no file name")
        self.lines.files[number] = name[1:-1]
        while self.take(","):
            self.integer()

    def location(self) -> Location:
        frame = (self.integer(), self.integer(), self.integer())
        inlined = None
        while self.take(","):
            word = self.next()
            if word == "function_name":
                self.next()
                if self.take("+"):
                    self.integer()
            elif word == "inlined_at":
                inlined = (self.integer(), self.integer(), self.integer())
            else:
                self.fail(f"{word!r} is not known in .loc")
        return self.lines.location(frame, inlined)

    def skip_function(self) -> None:
        """Device functions are only reached by `call`, which nothing here executes."""
        depth = 0
        while True:
            word = self.next()
            if word == "{":
                depth += 1
            elif word == "}":
                depth -= 1
                if depth == 0:
                    return
            elif word == ";" and depth == 0:
                return

    def variable(self, space: str, extern: bool) -> Iterator[Variable]:
        """What follows `.shared` and the like, up to the semicolon."""
        align, kind = 0, ""
        while self.token.text.startswith("."):
            word = self.next()
            if word == ".align":
                align = self.integer()
            elif word[1:] in SIZES:
                kind = word[1:]
            elif word in (".v2", ".v4"):
                self.fail(f"{word} variables are not known")
            else:
                self.fail(f"{word!r} is not known in a declaration")
        if not kind:
            self.fail("a declaration without a type")
        while True:
            name = self.next()
            size, dynamic = SIZES[kind], False
            while self.take("["):
                if self.take("]"):
                    size, dynamic = 0, extern
                    continue
                size *= self.integer()
                self.expect("]")
            if not 0 <= size <= MAX_BYTES or align < 0 or align > MAX_BYTES:
                self.fail(f"{name} has {size} bytes")
            if self.take("="):
                self.skip_value()
            yield Variable(name, space, size, align or SIZES[kind], dynamic)
            if not self.take(","):
                break
        self.expect(";")

    def skip_value(self) -> None:
        if not self.take("{"):
            self.next()
            return
        depth = 1
        while depth:
            word = self.next()
            depth += (word == "{") - (word == "}")

    # --- a kernel ------------------------------------------------------------------------------
    def entry(self) -> Kernel | None:
        line = self.token.line
        name = self.next()
        params = tuple(self.parameters()) if self.take("(") else ()
        if len({parameter.name for parameter in params}) != len(params):
            self.fail(f"{name} has two parameters of one name")
        reqntid = None
        while not self.take("{"):
            word = self.next()
            if word == ".reqntid":
                sizes = [self.integer()]
                while self.take(","):
                    sizes.append(self.integer())
                if len(sizes) > 3:
                    self.fail(".reqntid has three numbers at most")
                sizes += [1] * (3 - len(sizes))
                reqntid = (sizes[0], sizes[1], sizes[2])
            elif word in HINTS:
                while self.token.text[:1].isdigit() or self.take(","):
                    self.at += self.token.text[:1].isdigit()
            elif word == ";":
                return None
            else:
                self.fail(f"{word!r} is not known before the body of a kernel")
        return Body(self, name, params, reqntid, line).kernel()

    def parameters(self) -> Iterator[Parameter]:
        while not self.take(")"):
            self.expect(".param")
            kind = ""
            while self.token.text.startswith("."):
                word = self.next()
                if word == ".align":
                    self.integer()
                elif word[1:] in SIZES:
                    kind = word[1:]
                elif word not in (".ptr", ".global", ".const", ".shared", ".local"):
                    self.fail(f"{word!r} is not known in a parameter")
            if not kind:
                self.fail("a parameter without a type")
            name, size = self.next(), 0
            if self.take("["):
                size = self.integer() * SIZES[kind]
                self.expect("]")
            yield Parameter(name, kind, size)
            self.take(",")


class Body:
    """The statements of one kernel."""

    def __init__(
        self,
        parser: Parser,
        name: str,
        params: tuple[Parameter, ...],
        reqntid: tuple[int, int, int] | None,
        line: int,
    ) -> None:
        self.parser = parser
        self.name = name
        self.params = params
        self.reqntid = reqntid
        self.line = line
        self.scope = Scope(0, None)
        self.scopes = 1
        self.code: list[tuple[Instruction, Scope, Location | None]] = []
        self.labels: dict[str, int] = {}
        self.variables = dict(parser.globals)

    def kernel(self) -> Kernel:
        parser = self.parser
        location: Location | None = None
        depth = 1
        while depth:
            word = parser.token.text
            if word == "{":
                parser.at += 1
                depth += 1
                if depth > MAX_DEPTH:
                    parser.fail("scopes nested too deep")
                self.scope = Scope(self.scopes, self.scope)
                self.scopes += 1
            elif word == "}":
                parser.at += 1
                depth -= 1
                self.scope = self.scope.outer or self.scope
            elif word == ".loc":
                parser.at += 1
                location = parser.location()
            elif word.startswith("."):
                self.directive()
            elif word == ";":
                parser.at += 1
            elif parser.tokens[parser.at + 1 : parser.at + 2] and (
                parser.tokens[parser.at + 1].text == ":"
            ):
                self.label(word)
            else:
                self.code.append((self.instruction(), self.scope, location))
        shared = [v for v in self.variables.values() if v.space == "shared"]
        offsets, size = layout(shared)
        kernel = Kernel(
            self.name,
            self.params,
            self.reqntid,
            tuple(self.resolved(*entry) for entry in self.code),
            self.labels,
            self.variables,
            size,
            offsets,
            self.line,
        )
        parser.locations[self.name] = [entry[2] for entry in self.code]
        return kernel

    def label(self, word: str) -> None:
        self.parser.at += 2
        if word in self.scope.labels:
            self.parser.fail(f"label {word} is defined twice")
        self.scope.labels.add(word)
        self.labels[self.unique(word, self.scope)] = len(self.code)

    @staticmethod
    def unique(label: str, scope: Scope) -> str:
        return label if scope.number == 0 else f"{label}'{scope.number}"

    def directive(self) -> None:
        parser = self.parser
        word = parser.next()
        if word == ".reg":
            self.registers()
        elif word in (".shared", ".local", ".global", ".const"):
            for variable in parser.variable(word[1:], False):
                self.variables[variable.name] = variable
        elif word == ".pragma":
            while parser.next() != ";":
                continue
        elif word == ".file":
            parser.file()
        else:
            parser.at -= 1
            parser.fail(f"directive {word} is not known")

    def registers(self) -> None:
        parser = self.parser
        kind = parser.next()[1:]
        if kind not in SIZES:
            parser.fail(f"registers of type .{kind} are not known")
        while True:
            name = parser.next()
            if parser.take("<"):
                self.scope.ranges[name] = (kind, parser.integer())
                parser.expect(">")
            else:
                self.scope.types[name] = kind
            if not parser.take(","):
                break
        parser.expect(";")

    # --- instructions --------------------------------------------------------------------------
    def instruction(self) -> Instruction:
        parser = self.parser
        predicate, negated = None, False
        if parser.take("@"):
            negated = parser.take("!")
            name = parser.next()
            predicate = self.scope.register(name)
            if predicate is None or predicate.type != "pred":
                parser.fail(f"{name!r} is no predicate register")
        line = parser.token.line
        opcode, *modifiers = parser.next().split(".")
        if not opcode.isalnum():
            parser.fail(f"{opcode!r} is no instruction", line)
        operands = []
        while not parser.take(";"):
            operands.append(self.operand())
            if not parser.take(",") and parser.token.text != ";":
                parser.fail(f"{parser.token.text!r} where ',' or ';' is expected")
        return Instruction(
            opcode, tuple(modifiers), tuple(operands), predicate, negated, line, Place("", 0)
        )

    def operand(self) -> Operand:
        parser = self.parser
        if parser.take("{"):
            items = []
            while not parser.take("}"):
                items.append(self.simple())
                if not parser.take(",") and parser.token.text != "}":
                    parser.fail(f"{parser.token.text!r} in a vector")
            return Vector(tuple(items))
        if parser.take("["):
            base = self.simple()
            offset = 0
            if parser.take("+") or parser.token.text == "-":
                offset = parser.integer()
            parser.expect("]")
            return Address(base, offset)
        first = self.simple()
        if parser.take("|"):
            return Pair(first, self.simple())
        return first

    def simple(self) -> Operand:
        parser = self.parser
        word = parser.token.text
        if word == "!":
            parser.at += 1
            name = parser.next()
            register = self.scope.register(name)
            if register is None or register.type != "pred":
                parser.fail(f"{name!r} is no predicate register")
            return Negated(register)
        if word == "-" or word[:1].isdigit():
            return self.literal()
        parser.next()
        if word == "_":
            return Sink()
        register = self.scope.register(word)
        if register is not None:
            return register
        if SPECIAL.fullmatch(word):
            return Special(word)
        if word[:1] in "%.":
            parser.at -= 1
            parser.fail(f"{word!r} is not declared")
        if not (word[0].isalpha() or word[0] in "_$"):
            parser.at -= 1
            parser.fail(f"{word!r} is no operand")
        return Symbol(word)

    def literal(self) -> Immediate:
        parser = self.parser
        negative = parser.take("-")
        word = parser.token.text
        match = _FLOAT.match(word)
        if match is not None:
            parser.at += 1
            bits = 32 if match[1] else 64
            value = int(match[2] or match[4], 16)
            return Immediate(value ^ (1 << (bits - 1)) if negative else value, bits)
        if _DECIMAL.match(word):
            parser.fail("decimal floats are not known; compilers write their bits")
        value = parser.integer()
        return Immediate(-value if negative else value)

    def resolved(
        self, instruction: Instruction, scope: Scope, _location: Location | None
    ) -> Instruction:
        """With the label of a branch told apart by scope."""
        if instruction.opcode != "bra" or len(instruction.operands) != 1:
            return instruction
        (target,) = instruction.operands
        if not isinstance(target, Symbol):
            return instruction
        inner: Scope | None = scope
        while inner is not None and target.name not in inner.labels:
            inner = inner.outer
        if inner is None:
            self.parser.fail(f"label {target.name} is not defined", instruction.line)
        found = Symbol(self.unique(target.name, inner))
        return Instruction(
            instruction.opcode,
            instruction.modifiers,
            (found,),
            instruction.predicate,
            instruction.negated,
            instruction.line,
            instruction.place,
        )


def layout(variables: list[Variable]) -> tuple[dict[str, int], int]:
    """Offsets and the size in bytes of variables laid out one after the other."""
    offsets: dict[str, int] = {}
    size = 0
    for variable in variables:
        if variable.dynamic:
            continue
        size = -(-size // variable.align) * variable.align
        offsets[variable.name] = size
        size += variable.size
    return offsets, size
