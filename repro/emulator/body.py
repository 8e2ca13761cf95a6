"""The statements of a kernel: scopes, labels, instructions, operands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from .declarations import SIZES, variables
from .ptx import (
    Address,
    Immediate,
    Instruction,
    Negated,
    Opaque,
    Operand,
    Pair,
    Place,
    Register,
    Sink,
    Special,
    Statics,
    Symbol,
    Variable,
    Vector,
)
from .reader import FLOAT, Reader
from .source_lines import Location

SPECIAL = re.compile(
    r"%(?:(?:tid|ntid|ctaid|nctaid)(?:\.[xyz])?|laneid|warpid|nwarpid|smid|nsmid|gridid"
    r"|lanemask_(?:eq|le|lt|ge|gt)|clock(?:64|_hi)?|globaltimer(?:_lo|_hi)?|pm\d+"
    r"|cluster_(?:ctaid|nctaid)\.[xyz]|cluster_n?ctarank|is_explicit_cluster|n?clusterid\.[xyz]"
    r"|dynamic_smem_size|total_smem_size|envreg\d+)",
    re.ASCII,
)
_RANGE = re.compile(r"(.*?)(0|[1-9]\d{0,8})$", re.ASCII)
_DECIMAL = re.compile(r"\d{1,40}(?:\.\d{0,40})?(?:[eE]\d{0,4})?$", re.ASCII)
MAX_DEPTH = 64  # of nested scopes


class Scope:
    """Registers and labels of one `{ }`; names are looked up outwards."""

    def __init__(self, number: int, outer: Scope | None) -> None:
        self.number = number
        self.outer = outer
        self.types: dict[str, str] = {}
        self.ranges: dict[str, tuple[str, int]] = {}
        self.labels: set[str] = set()
        self.variables: set[str] = set()
        self.known: dict[str, Register | Special] = {}  # words met here, and what they are

    def unique(self, name: str) -> str:
        """A name of this scope, told apart from those of others."""
        return name if self.number == 0 else f"{name}'{self.number}"

    def variable(self, name: str) -> str:
        """The unique name of a variable of a call, `name` itself where no scope declares it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.variables:
                return scope.unique(name)
            scope = scope.outer
        return name

    def register(self, name: str) -> Register | None:
        scope: Scope | None = self
        while scope is not None:
            kind = scope.types.get(name)
            if kind is None and (match := _RANGE.match(name)) is not None:
                kind, count = scope.ranges.get(match[1], ("", 0))
                kind = kind if int(match[2]) < count else None
            if kind:
                return Register(scope.unique(name), kind)
            scope = scope.outer
        return None


class Body:
    """The statements of one kernel or function, up to its closing brace.

    variables: what it may name. code: each instruction with its scope and the `.loc` before it.
    """

    def __init__(self, reader: Reader, variables: Mapping[str, Variable], statics: Statics) -> None:
        self.reader = reader
        self.statics = statics
        self.scope = Scope(0, None)
        self.scopes = 1
        self.code: list[tuple[Instruction, Scope, Location | None]] = []
        self.labels: dict[str, int] = {}
        self.targets: dict[str, tuple[tuple[str, ...], Scope]] = {}  # of indexed branches
        self.last_label = ""
        self.single = False  # whether decimal literals of the instruction are of 32 bits
        self.variables = dict(variables)

    def read(self) -> None:
        """Read all statements."""
        reader = self.reader
        location: Location | None = None
        depth = 1
        while depth:
            word = reader.word
            if word == "{":
                reader.at += 1
                depth += 1
                if depth > MAX_DEPTH:
                    reader.fail("scopes nested too deep")
                self.scope = Scope(self.scopes, self.scope)
                self.scopes += 1
            elif word == "}":
                reader.at += 1
                depth -= 1
                self.scope = self.scope.outer or self.scope
            elif word == ".loc":
                reader.at += 1
                location = reader.location()
            elif word.startswith("."):
                self.directive(location)
            elif word == ";":
                reader.at += 1
            elif word and reader.words[reader.at + 1] == ":":
                self.label(word)
            else:
                self.code.append((self.instruction(), self.scope, location))

    def instructions(self) -> tuple[Instruction, ...]:
        """What was read, with its places."""
        places = self.reader.lines.places([location for _, _, location in self.code])
        pairs = zip(self.code, places, strict=True)
        return tuple(
            Instruction(i.opcode, i.modifiers, operands, i.predicate, i.negated, i.line, place)
            for (i, scope, _), place in pairs
            for operands in (self.resolved(i, scope),)
        )

    def file(self) -> str:
        """The file of the first `.loc`, in which the code is written."""
        return self.reader.lines.own_file([location for _, _, location in self.code])

    def label(self, word: str) -> None:
        self.reader.at += 2
        if word in self.scope.labels:
            self.reader.fail(f"label {word} is defined twice")
        self.scope.labels.add(word)
        self.last_label = self.scope.unique(word)
        self.labels[self.scope.unique(word)] = len(self.code)

    def directive(self, location: Location | None) -> None:
        reader = self.reader
        word = reader.next()
        if word == ".reg":
            self.registers()
        elif word in (".shared", ".local", ".global", ".const"):
            for variable in variables(reader, word[1:]):
                self.variables[variable.name] = variable
                if word in (".global", ".const"):
                    self.statics.variables[variable.name] = variable
        elif word == ".pragma":
            while reader.next() != ";":
                continue
        elif word == ".file":
            reader.file()
        elif word == ".branchtargets":
            names = [reader.next()]
            while reader.take(","):
                names.append(reader.next())
            reader.expect(";")
            self.targets[self.last_label] = tuple(names), self.scope
        elif word == ".param":
            for variable in variables(reader, "param"):
                self.scope.variables.add(variable.name)
                name = self.scope.unique(variable.name)
                self.variables[name] = replace(variable, name=name)
        else:
            line = reader.numbers[reader.at - 1]
            self.code.append((self._opaque(word, line), self.scope, location))

    def _opaque(self, opcode: str, line: int, modifiers: tuple[str, ...] = ()) -> Instruction:
        """What is not read up to its semicolon: refused if its kernel is ever lowered."""
        while self.reader.next() != ";":
            continue
        return Instruction(opcode, modifiers, (Opaque(),), None, False, line, Place("", 0))

    def registers(self) -> None:
        reader = self.reader
        kind = reader.next()[1:]
        if kind not in SIZES and kind != "b128":
            reader.fail(f"registers of type .{kind} are not known")
        while True:
            name = reader.next()
            if reader.take("<"):
                self.scope.ranges[name] = (kind, reader.integer())
                reader.expect(">")
            else:
                self.scope.types[name] = kind
            if not reader.take(","):
                break
        reader.expect(";")
        self.scope.known.clear()  # the new ones may hide others

    # --- instructions --------------------------------------------------------------------------
    def instruction(self) -> Instruction:
        reader = self.reader
        predicate, negated = None, False
        if reader.take("@"):
            negated = reader.take("!")
            name = reader.next()
            predicate = self.scope.register(name)
            if predicate is None or predicate.type != "pred":
                reader.fail(f"{name!r} is no predicate register")
        line = reader.line
        opcode, *modifiers = reader.next().split(".")
        if not opcode.isalnum():
            reader.fail(f"{opcode!r} is no instruction", line)
        if opcode == "call":
            return Instruction(
                opcode, tuple(modifiers), self.call(), predicate, negated, line, Place("", 0)
            )
        if self._is_opaque():
            return self._opaque(opcode, line, tuple(modifiers))
        self.single = "f32" in modifiers
        operands = []
        while not reader.take(";"):
            operands.append(self.operand())
            if not reader.take(",") and reader.word != ";":
                reader.fail(f"{reader.word!r} where ',' or ';' is expected")
        return Instruction(
            opcode, tuple(modifiers), tuple(operands), predicate, negated, line, Place("", 0)
        )

    def call(self) -> tuple[Operand, ...]:
        """`(results), callee, (arguments), prototype;`: results, callee, arguments."""
        reader = self.reader
        results, arguments = Vector(()), Vector(())
        if reader.take("("):
            results = self._arguments()
            reader.expect(",")
        callee = self.simple()
        while reader.take(","):
            if reader.take("("):
                arguments = self._arguments()
            else:
                reader.next()  # the prototype of an indirect call
        reader.expect(";")
        return results, callee, arguments

    def _arguments(self) -> Vector:
        items = []
        while not self.reader.take(")"):
            items.append(self.simple())
            if not self.reader.take(",") and self.reader.word != ")":
                self.reader.fail(f"{self.reader.word!r} in the arguments of a call")
        return Vector(tuple(items))

    def _is_opaque(self) -> bool:
        """Whether operands in parentheses, or several in brackets, come before the semicolon."""
        inside, at = False, self.reader.at
        while (word := self.reader.words[at]) not in (";", ""):
            if word == "(" or (inside and word == ","):
                return True
            inside = word == "[" or (inside and word != "]")
            at += 1
        return False

    def operand(self) -> Operand:
        reader = self.reader
        if reader.take("{"):
            items = []
            while not reader.take("}"):
                items.append(self.simple())
                if not reader.take(",") and reader.word != "}":
                    reader.fail(f"{reader.word!r} in a vector")
            return Vector(tuple(items))
        if reader.take("["):
            base = self.simple()
            offset = 0
            if reader.take("+") or reader.word == "-":
                offset = reader.integer()
            reader.expect("]")
            return Address(base, offset)
        first = self.simple()
        if reader.take("|"):
            return Pair(first, self.simple())
        return first

    def simple(self) -> Operand:
        reader = self.reader
        word = reader.word
        known = self.scope.known.get(word)
        if known is not None:
            reader.at += 1
            return known
        if word == "!":
            reader.at += 1
            name = reader.next()
            register = self.scope.register(name)
            if register is None or register.type != "pred":
                reader.fail(f"{name!r} is no predicate register")
            return Negated(register)
        if word == "-" or word[:1].isdigit():
            return self.literal()
        reader.next()
        if word == "_":
            return Sink()
        register = self.scope.register(word)
        if register is None and SPECIAL.fullmatch(word):
            self.scope.known[word] = special = Special(word)
            return special
        if register is not None:
            self.scope.known[word] = register
            return register
        if word[:1] in "%.":
            reader.at -= 1
            reader.fail(f"{word!r} is not declared")
        if not (word[0].isalpha() or word[0] in "_$"):
            reader.at -= 1
            reader.fail(f"{word!r} is no operand")
        return Symbol(self.scope.variable(word))

    def literal(self) -> Immediate:
        reader = self.reader
        negative = reader.take("-")
        word = reader.word
        match = FLOAT.match(word)
        if match is not None:
            reader.at += 1
            bits = 32 if match[1] else 64
            value = int(match[2] or match[4], 16)
            return Immediate(value ^ (1 << (bits - 1)) if negative else value, bits)
        if _DECIMAL.match(word) and not word.isdigit():
            return self.decimal(negative=negative)
        value = reader.integer()
        return Immediate(-value if negative else value)

    def decimal(self, *, negative: bool) -> Immediate:
        """`1.5e-3`, as the nearest float of the instruction's width."""
        reader = self.reader
        word = reader.next()
        if word[-1] in "eE":
            sign = reader.next() if reader.word in ("+", "-") else ""
            digits = reader.next()
            if not digits.isdigit() or len(digits) > 4:
                reader.fail(f"{word}{sign}{digits!r} is no number")
            word += sign + digits
        value = np.float64(word) * (-1.0 if negative else 1.0)
        if self.single:
            with np.errstate(over="ignore"):
                return Immediate(int(np.float32(value).view(np.uint32)), 32)
        return Immediate(int(value.view(np.uint64)), 64)

    def resolved(self, instruction: Instruction, scope: Scope) -> tuple[Operand, ...]:
        """Its operands, with the labels of a branch told apart by scope."""
        operands = instruction.operands
        if instruction.opcode not in ("bra", "brx") or not operands:
            return operands
        *others, target = operands
        if not isinstance(target, Symbol):
            return operands
        found = self._label(target.name, scope, instruction.line)
        if instruction.opcode == "bra":
            return *others, Symbol(found)
        if found not in self.targets:
            self.reader.fail(f"{target.name} lists no targets", instruction.line)
        names, inner = self.targets[found]
        labels = tuple(Symbol(self._label(name, inner, instruction.line)) for name in names)
        return *others, Vector(labels)

    def _label(self, name: str, scope: Scope, line: int) -> str:
        """The unique name of a label seen from `scope`."""
        inner: Scope | None = scope
        while inner is not None and name not in inner.labels:
            inner = inner.outer
        if inner is None:
            self.reader.fail(f"label {name} is not defined", line)
        return inner.unique(name)
