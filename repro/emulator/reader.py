"""A cursor over the tokens of a PTX text, and what can be read without knowing where one is."""

from __future__ import annotations

import re
from typing import NoReturn

from ..errors import UnsupportedError
from .lexer import tokens
from .source_lines import Location, SourceLines

_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?$", re.ASCII)
FLOAT = re.compile(r"0([fF])([0-9a-fA-F]{8})$|0([dD])([0-9a-fA-F]{16})$", re.ASCII)
MAX_DIGITS = 40  # of an integer literal; 64 bits need 20


class Reader:
    """Takes tokens from the front; every failure is an UnsupportedError with the PTX line."""

    def __init__(self, text: str) -> None:
        self.words, self.numbers = tokens(text)  # the words of the text, the line of each
        self.at = 0
        self.lines = SourceLines()

    @property
    def word(self) -> str:
        """The next word; empty at the end of the text."""
        return self.words[self.at]

    @property
    def line(self) -> int:
        return self.numbers[self.at]

    def next(self) -> str:
        word = self.words[self.at]
        if word == "":
            self.fail("the text ends here")
        self.at += 1
        return word

    def take(self, text: str) -> bool:
        if self.words[self.at] == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.take(text):
            self.fail(f"{self.word!r} where {text!r} is expected")

    def fail(self, message: str, line: int | None = None) -> NoReturn:
        raise UnsupportedError(message, where=f"PTX line {line or self.line}")

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
