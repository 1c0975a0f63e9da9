"""Spark's DDL of a schema, read without Spark: the columns, and types that there are not or that no table here can hold. Pure.

It says only what is beyond doubt. What it cannot follow it leaves to Spark, which ``lakebound check`` asks, too.
Source: https://spark.apache.org/docs/latest/sql-ref-datatypes.html.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from lakebound.formats.same_names import as_compared

_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)*`)|('(?:[^'\\]|\\.)*')|([A-Za-z_0-9]+)|([<>(),:])|(\S))")
KNOWN_TYPES = (
    "ARRAY",
    "BIGINT",
    "BINARY",
    "BOOLEAN",
    "BYTE",
    "DATE",
    "DEC",
    "DECIMAL",
    "DOUBLE",
    "FLOAT",
    "INT",
    "INTEGER",
    "LONG",
    "MAP",
    "NUMERIC",
    "REAL",
    "SHORT",
    "SMALLINT",
    "STRING",
    "STRUCT",
    "TIMESTAMP",
    "TIMESTAMP_LTZ",
    "TIMESTAMP_NTZ",
    "TINYINT",
)
"""Names of types that a column may have."""
_PROPOSED = tuple(sorted({*KNOWN_TYPES} - {"BYTE", "DEC", "INTEGER", "LONG", "NUMERIC", "REAL", "SHORT", "TIMESTAMP_LTZ"}))
"""Of several names of a type the usual one."""
_UNHELD = {
    "CHAR": "use STRING",
    "CHARACTER": "use STRING",
    "GEOGRAPHY": "use BINARY or STRING",
    "GEOMETRY": "use BINARY or STRING",
    "INTERVAL": "use BIGINT or STRING",
    "TIME": "use STRING",
    "VARCHAR": "use STRING",
    "VARIANT": "use STRING",
    "VOID": "leave the column out",
}
"""Types of Spark's that not every reader of both formats has."""
_SUGGESTED = {
    "DATETIME": "TIMESTAMP",
    "TEXT": "STRING",
    "NUMBER": "DECIMAL",
    "BOOL": "BOOLEAN",
    "STR": "STRING",
    "JSON": "STRING",
}


_DEEPEST = 100


@dataclass(frozen=True)
class DdlType:
    """A type, and the types inside of it.

    Attributes:
        name: In capitals.
        fields: Of a STRUCT.
        inside: Of the elements of an ARRAY, or of the values of a MAP.
    """

    name: str
    fields: tuple[DdlColumn, ...] = ()
    inside: DdlType | None = None


@dataclass(frozen=True)
class DdlColumn:
    """A column, or a field of a STRUCT.

    Attributes:
        name: As it is written, without backticks.
        shape: Its type, with what is inside of it.
        is_required: Whether it is NOT NULL.
    """

    name: str
    shape: DdlType
    is_required: bool

    @property
    def type(self) -> str:
        """The name of its type, in capitals."""
        return self.shape.name


class UnclearDdlError(Exception):
    """The text is not followed: Spark says what it is."""


def quoted(name: str) -> str:
    """Return a name in backticks, as any name may be written.

    Source: https://spark.apache.org/docs/latest/sql-ref-identifier.html.
    """
    return f"`{name.replace('`', '``')}`"


def read_columns(text: str) -> tuple[DdlColumn, ...]:
    """Return the top-level columns.

    Raises:
        UnclearDdlError: Only Spark can tell.
    """
    return _Reader(text).columns()


def ddl_mistakes(text: str) -> list[str]:
    """Return what is certainly wrong with a schema, a sentence each."""
    reader = _Reader(text)
    try:
        columns = reader.columns()
    except UnclearDdlError:
        return reader.mistakes
    return [*reader.mistakes, *_doubles(columns)]


class _Reader:
    """Walks over the tokens once."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0
        self.mistakes: list[str] = []

    def columns(self) -> tuple[DdlColumn, ...]:
        found = [self._column(())]
        while self._take(","):
            found.append(self._column(()))
        if self._at < len(self._tokens):
            raise UnclearDdlError
        return tuple(found)

    def _column(self, path: tuple[str, ...]) -> DdlColumn:
        name = self._word()
        self._take(":")
        kind = self._type((*path, name))
        required = False
        while (word := self._peek()) is not None and word.upper() in ("NOT", "COMMENT", "DEFAULT", "COLLATE"):
            self._at += 1
            if word.upper() == "NOT":
                required = True
            elif word.upper() == "DEFAULT":
                raise UnclearDdlError
            self._at += 1  # NULL, the comment, the collation
        return DdlColumn(name, kind, required)

    def _type(self, path: tuple[str, ...]) -> DdlType:
        if len(path) > _DEEPEST:
            self.mistakes.append(f"column {path[0]}: has more than {_DEEPEST} types inside of each other")
            raise UnclearDdlError
        written = self._word()
        kind = written.upper()
        if kind in ("ARRAY", "MAP"):
            return DdlType(kind, inside=self._inside(path, {"ARRAY": ("element",), "MAP": ("key", "value")}[kind]))
        if kind == "STRUCT":
            return DdlType(kind, fields=self._struct(path))
        self._judge(written, path)
        if kind == "INTERVAL":
            raise UnclearDdlError
        if self._take("("):
            while not self._take(")"):
                self._next()
        return DdlType(kind)

    def _inside(self, path: tuple[str, ...], names: tuple[str, ...]) -> DdlType:
        """Return the last of the types: of elements, or of values."""
        self._expect("<")
        for name in names[:-1]:
            self._type((*path, name))
            self._expect(",")
        found = self._type((*path, names[-1]))
        self._expect(">")
        return found

    def _struct(self, path: tuple[str, ...]) -> tuple[DdlColumn, ...]:
        self._expect("<")
        if self._take(">"):
            return ()
        fields = [self._column(path)]
        while self._take(","):
            fields.append(self._column(path))
        self._expect(">")
        return tuple(fields)

    def _judge(self, written: str, path: tuple[str, ...]) -> None:
        kind, name = written.upper(), ".".join(path)
        if kind in _UNHELD:
            self.mistakes.append(f"column {name}: the type {written} is not supported: {_UNHELD[kind]}")
        elif kind not in KNOWN_TYPES:
            near = _SUGGESTED.get(kind) or next(iter(difflib.get_close_matches(kind, _PROPOSED, n=1)), None)
            self.mistakes.append(f"column {name}: {written} is not a type" + (f"; did you mean {near}?" if near else ""))

    def _word(self) -> str:
        token = self._next()
        if not (token[0] == "`" or token[0].isalnum() or token[0] == "_"):
            raise UnclearDdlError
        return token[1:-1].replace("``", "`") if token[0] == "`" else token

    def _peek(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _next(self) -> str:
        token = self._peek()
        if token is None:
            raise UnclearDdlError
        self._at += 1
        return token

    def _take(self, token: str) -> bool:
        if self._peek() != token:
            return False
        self._at += 1
        return True

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise UnclearDdlError


def _tokens(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        yield next(group for group in match.groups() if group is not None)


def _doubles(columns: tuple[DdlColumn, ...]) -> Iterator[str]:
    seen: dict[str, str] = {}
    for column in columns:
        if column.name == "_kafka":
            yield "column _kafka: the name is reserved; Lakebound writes a row's topic, partition and offset there"
        folded = as_compared(column.name)
        if seen.get(folded) == column.name:
            yield f"column {column.name} is declared twice"
        elif folded in seen:
            yield f"columns {seen[folded]} and {column.name} differ only in upper and lower case"
        seen.setdefault(folded, column.name)
