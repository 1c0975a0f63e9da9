"""A table's history, one class for all formats: its commits, read lazily from the newest on, and the files that each added."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

from lakebound.ledger.entry import ENTRY_KEY, Entry, EntryKind
from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.tables.entries import read_entry
from lakebound.tables.format_rules import rules_of
from lakebound.tables.formats import PerFormat
from lakebound.tables.places import Places
from lakebound.tables.table import CommittedEntry, TableVersion

Operation = Literal["append", "replace", "overwrite", "restore", "other"]
"""What a commit did to the rows: ``replace`` puts the same ones into other files, ``overwrite`` changes or removes some."""

_KIND: re.Pattern[str] = re.compile(rf'\{{"{ENTRY_KEY}":\{{"kind":"({"|".join(get_args(EntryKind))})"')
"""How ``lakebound.ledger.entry.encode`` begins an entry."""


@dataclass(frozen=True)
class TableCommit:
    """One commit of a table, whoever made it.

    Attributes:
        version: Delta version or Iceberg snapshot id.
        number: Its place among all commits of the table, which only grows: Delta's version or Iceberg's sequence number.
        parent: Version on whose state it stands, kept or not; None for the first, and where that is not told.
        parent_number: Place of that version; None where it is not known, or has expired.
        committed_at_ms: By the clock of who committed; 0 where it is not told.
        operation: What it did to the rows.
        text: Its metadata in which an entry may be; None where it has none.
        where: Names it in messages about its entry.
        is_referenced: Iceberg: a branch or tag points at it.
    """

    version: str
    number: int
    parent: str | None
    parent_number: int | None
    committed_at_ms: int
    operation: Operation = "other"
    text: str | None = field(default=None, repr=False)
    where: str = ""
    is_referenced: bool = False

    @cached_property
    def entry(self) -> Entry | None:
        """Its ledger entry, decoded when it is first asked for; None for somebody else's commit.

        Raises:
            BadEntryError: It has an entry that cannot be read.
        """
        return read_entry(self.text, self.where)

    @property
    def kind(self) -> EntryKind | None:
        """Kind of its entry; the rest of an entry of ours is not decoded, and may be wrong.

        Raises:
            BadEntryError: It has an entry that cannot be read.
        """
        quick = _KIND.match(self.text or "")
        if quick is not None:
            return quick[1]  # type: ignore[return-value]
        return self.entry.kind if self.entry is not None else None


@dataclass(frozen=True)
class CommittedFile:
    """A data file that a commit added.

    Attributes:
        path: Where it is.
        rows: How many it has; None where its commit does not say.
        partition: Delta: value per partition column.
    """

    path: Location
    rows: int | None = None
    partition: Mapping[str, str | None] = field(default_factory=dict)


class History(ABC):
    """The commits of one table as of one reading of it. What is yielded is read when it is asked for, and not kept."""

    @property
    @abstractmethod
    def current(self) -> str | None:
        """Version that is the current one; None of a table without a commit."""

    @property
    def current_since(self) -> tuple[tuple[int, str], ...]:
        """(Since when, version) of what was current, oldest first, where the format logs that beside its commits.

        Empty where each commit was the current one from its own time on.
        """
        return ()

    @abstractmethod
    def commits(self) -> Iterator[TableCommit]:
        """Yield every commit that is kept, newest first: also what a rewind or a rollback left."""

    @abstractmethod
    def ancestry(self, version: str | None = None) -> Iterator[TableCommit]:
        """Yield a commit and those on whose state it stands, newest first, as far as they are kept without a gap.

        Args:
            version: Of the first; None: the current one.
        """

    @abstractmethod
    def added(self, version: str) -> Iterator[CommittedFile]:
        """Yield the data files that a commit added with rows that were in no file before; none where it is not kept.

        Args:
            version: Of the commit.
        """

    def entries(self, version: str | None = None) -> Iterator[CommittedEntry]:
        """Yield the entries on the ancestry of a version, newest first.

        Args:
            version: The version; None: the current one.

        Raises:
            BadEntryError: An entry cannot be read.
        """
        for commit in self.ancestry(version):
            if commit.entry is not None:
                yield CommittedEntry(commit.version, commit.committed_at_ms, commit.entry)

    def versions(self) -> Iterator[TableVersion]:
        """Yield what the table was, newest first, each with the time since when.

        A version that a rewind or a rollback left is among them, at the time at which it was the current one.

        Raises:
            BadEntryError: An entry cannot be read.
        """
        for commit in self.commits():
            yield TableVersion(commit.version, commit.committed_at_ms, commit.entry)


_READERS: PerFormat[Callable[[TableSpec, Places], History | None]] = PerFormat("lakebound.tables", "history:read_history")


def read_history(spec: TableSpec, places: Places) -> History | None:
    """Return the history of a table as it is now, without opening the table; None where there is no such table.

    Args:
        spec: The table.
        places: Where it is; they may be read-only.
    """
    return _READERS.of(spec.format)(spec, places) if rules_of(spec.format).may_exist(places) else None
