"""The tokens of a .proto text, one after the other. Pure.

The language: https://protobuf.com/docs/language-spec.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import NamedTuple

from google.protobuf import text_encoding

from lakebound.formats.schemas import UnreadableSchemaError

_TOKEN = re.compile(
    r"""
    (?P<blank>(?:\s++|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)++)
    |(?P<string>"(?:[^"\\\n]++|\\.)*+"|'(?:[^'\\\n]++|\\.)*+')
    |(?P<number>(?:0[xX][0-9a-fA-F]++|(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?[fF]?)(?![0-9A-Za-z_.]))
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*+)
    |(?P<symbol>[][{}()<>=;,.:/+-])
    """,
    re.VERBOSE | re.DOTALL,
)
_SHOWN = 30
_INTEGER = re.compile(r"0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*")
_MOST_DIGITS = 20
_BOUND = 1 << 31
"""Of numbers of fields and of values in an enum."""


class Token(NamedTuple):
    """A word, number, text or sign.

    Attributes:
        kind: ``string``, ``number``, ``name``, ``symbol``, or "" at the end.
        text: As it is written.
        start: Its position.
    """

    kind: str
    text: str
    start: int


class Tokens:
    """Reads tokens one by one."""

    def __init__(self, text: str, file: str) -> None:
        """Begin at the start of a text.

        Args:
            text: Of one file.
            file: Its name, for messages; "" where it is the schema itself.

        Raises:
            UnreadableSchemaError: Something in it is no token.
        """
        self._text, self._file = text, file
        self._found: list[Token] = []
        self._at = 0
        self._split()

    def _split(self) -> None:
        start = 1 if self._text.startswith("\ufeff") else 0
        while start < len(self._text):
            match = _TOKEN.match(self._text, start)
            if match is None:
                raise self._error(start, f"{self._text[start : start + _SHOWN]!r} is not understood")
            if match.lastgroup != "blank":
                self._found.append(Token(str(match.lastgroup), match[0], start))
            start = match.end()
        self._found += [Token("", "", start)] * 3

    @property
    def now(self) -> Token:
        """The token that is read next."""
        return self._found[self._at]

    @property
    def after(self) -> Token:
        """The one behind it."""
        return self._found[self._at + 1]

    @property
    def is_end(self) -> bool:
        """Whether all are read."""
        return not self.now.kind

    def next(self) -> Token:
        """Return the next token, whatever it is.

        Raises:
            UnreadableSchemaError: There is none.
        """
        if self.is_end:
            raise self.error("more is missing")
        self._at += 1
        return self._found[self._at - 1]

    def take(self, text: str) -> bool:
        """Return whether the next token is a word or sign; it is then read."""
        if self.now.text != text:
            return False
        self._at += 1
        return True

    def take_one_of(self, texts: Container[str]) -> str:
        """Return the next token where it is one of some words, and read it; else ""."""
        return self.next().text if self.now.kind == "name" and self.now.text in texts else ""

    def expect(self, text: str) -> None:
        """Read a word or sign.

        Raises:
            UnreadableSchemaError: It is not the next one.
        """
        if not self.take(text):
            raise self.error(f"{text!r} is missing")

    def name(self) -> str:
        """Read a simple name.

        Raises:
            UnreadableSchemaError: The next token is none.
        """
        if self.now.kind != "name":
            raise self.error("a name is missing")
        return self.next().text

    def path(self) -> str:
        """Read a name with dots, which may begin with one.

        Raises:
            UnreadableSchemaError: The next token is none.
        """
        parts = ["."] if self.take(".") else []
        parts.append(self.name())
        while self.take("."):
            parts += [".", self.name()]
        return "".join(parts)

    def integer(self) -> int:
        """Read a whole number of 32 bits, which may be negative.

        Raises:
            UnreadableSchemaError: The next token is none.
        """
        sign = -1 if self.take("-") else 1
        text = self.now.text
        if not _INTEGER.fullmatch(text) or len(text) > _MOST_DIGITS:
            raise self.error("a whole number is missing")
        number = sign * int(text, 16 if text[:2] in ("0x", "0X") else 8 if text.startswith("0") else 10)
        if not -_BOUND <= number < _BOUND:
            raise self.error("a number is too large")
        self._at += 1
        return number

    def string(self) -> str:
        """Read a text, which may be written in several pieces; what in it is not UTF-8 is replaced.

        Raises:
            UnreadableSchemaError: The next token is none.
        """
        if self.now.kind != "string":
            raise self.error("a text in quotes is missing")
        first, pieces = self.now, []
        while self.now.kind == "string":
            pieces.append(self.next().text[1:-1])
        try:
            return b"".join(map(text_encoding.CUnescape, pieces)).decode(errors="replace")
        except ValueError as exc:
            raise self._error(first.start, "an escape in a text is none") from exc

    def skip_until(self, text: str) -> None:
        """Read all up to a sign, and the sign; what stands in braces does not count.

        Raises:
            UnreadableSchemaError: It does not come.
        """
        level = 0
        while level or not self.take(text):
            sign = self.next()
            if sign.kind == "symbol":
                level += (sign.text == "{") - (sign.text == "}")
                if level < 0:
                    raise self.error(f"{text!r} is missing")

    def error(self, reason: str) -> UnreadableSchemaError:
        """Return what is wrong at the next token."""
        found = "; the text ends here" if self.is_end else f"; found {self.now.text[:_SHOWN]!r}"
        return self._error(self.now.start, reason + found)

    def _error(self, start: int, reason: str) -> UnreadableSchemaError:
        line = self._text.count("\n", 0, start) + 1
        return UnreadableSchemaError("", f"{self._file + ', ' if self._file else ''}line {line}: {reason}")
