"""Columns of data files that readers do not see as they were meant: as null, or in another column. Pure.

Readers find a column of a file by a key: Delta's by its name in the files, Iceberg's by its id. Who wrote the file meant the
column that had its name in the table then. Where that column has another key, readers do not see what was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

Key = str | int
MOST_FILES = 10_000
"""Of a table that are looked at; each costs the reading of its footer."""


@dataclass(frozen=True)
class Column:
    """A column of a table, or a field in one.

    Attributes:
        name: As people know it.
        key: By which readers find it in a file.
        inside: Fields of a struct, a list's element, a map's key and value.
    """

    name: str
    key: Key
    inside: tuple[Column, ...] = ()


@dataclass(frozen=True)
class HeldColumn:
    """A column of a file.

    Attributes:
        name: As the file has it.
        key: Of the table's column in which readers show it; None where there is none by which they could find one.
        inside: As in ``Column``.
    """

    name: str
    key: Key | None
    inside: tuple[HeldColumn, ...] = ()


@dataclass(frozen=True)
class Misreading:
    """What readers make of a column of a file.

    Attributes:
        column: Its name in the file; names of fields in it follow after a point.
        belongs_to: The table's column for which it was written; None of one that the table no longer has.
        seen_in: The table's column in which readers show its values; None where they show null instead.
    """

    column: str
    belongs_to: str | None
    seen_in: str | None


@dataclass(frozen=True)
class MisreadFile:
    """A live data file with such a column.

    Attributes:
        file: As the table's metadata names it.
        rows: How many it has; None where that is not known.
        misreading: The column.
    """

    file: str
    rows: int | None
    misreading: Misreading


@dataclass(frozen=True)
class ColumnsLook:
    """What a look at a table's files found.

    Attributes:
        files: Live data files.
        looked_at: Of these, the newest ones, whose columns were compared.
        misread: Columns that readers do not see as they were meant.
        undecided: Files of which it is not known for which columns they were written.
    """

    files: int
    looked_at: int
    misread: tuple[MisreadFile, ...] = ()
    undecided: tuple[str, ...] = ()


@dataclass(frozen=True)
class Compared:
    """What the columns of one file are to readers."""

    misread: tuple[Misreading, ...] = ()
    is_undecided: bool = False


def compare(held: Sequence[HeldColumn], meanings: Sequence[Sequence[Column]], now: Sequence[Column]) -> Compared:
    """Return what readers make of a file's columns.

    Args:
        held: The file's.
        meanings: The table's columns when the file was written; several where that is one of these.
        now: The table's columns.
    """
    found: list[Misreading] = []
    is_undecided = False
    for one in _walk((), held, meanings, now):
        if one is None:
            is_undecided = True
        else:
            found.append(one)
    return Compared(tuple(found), is_undecided)


def _walk(
    path: tuple[str, ...], held: Sequence[HeldColumn], meanings: Sequence[Sequence[Column]], now: Sequence[Column]
) -> Iterator[Misreading | None]:
    """Yield what is misread, and None where that is not known."""
    for one in held:
        meant = [column for columns in meanings for column in columns if column.name == one.name]
        keys = {column.key for column in meant}
        here = (*path, one.name)
        if not keys:
            continue
        if one.key not in keys:
            yield from _moved(here, one, keys, held, now)
            continue
        read = next((column for column in now if column.key == one.key), None)
        if len(keys) > 1 and any(column.key in keys for column in now):
            yield None
        elif read is not None:
            yield from _walk(here, one.inside, [column.inside for column in meant], read.inside)


def _moved(
    path: tuple[str, ...], one: HeldColumn, keys: set[Key], held: Sequence[HeldColumn], now: Sequence[Column]
) -> Iterator[Misreading]:
    """Yield what becomes of a column that was written for one with another key; nothing where nobody misses it."""
    owner = next((column for column in now if column.key in keys), None)
    seen = next((column for column in now if column.key == one.key), None)
    is_there = owner is not None and any(other.key == owner.key for other in held)
    if seen is not None or (owner is not None and not is_there):
        yield Misreading(".".join(path), _dotted(path, owner), _dotted(path, seen))


def _dotted(path: tuple[str, ...], column: Column | None) -> str | None:
    return None if column is None else ".".join((*path[:-1], column.name))


def merged(looks: Iterable[tuple[str, int | None, Compared]], files: int) -> ColumnsLook:
    """Return what was found in files together.

    Args:
        looks: Each file that was looked at, with its rows and what its columns are.
        files: How many live ones there are.
    """
    misread: list[MisreadFile] = []
    undecided: list[str] = []
    looked_at = 0
    for file, rows, compared in looks:
        looked_at += 1
        misread += [MisreadFile(file, rows, one) for one in compared.misread]
        undecided += [file] if compared.is_undecided else []
    return ColumnsLook(files, looked_at, tuple(misread), tuple(undecided))
