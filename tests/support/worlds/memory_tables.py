"""Tables in memory behind the Table Protocol, with the ledger rules of the real ones: for thousands of cases in seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lakebound.errors import CatalogBehindError, CommitRefusedError, NoLedgerError, TableFeatureError, TableRestoredError
from lakebound.ledger.entry import Entry, Offsets, encode
from lakebound.ledger.foreign_changes import ForeignChange
from lakebound.spec.table import TableSpec
from lakebound.tables.entries import counting, read_entry
from lakebound.tables.places import Places
from lakebound.tables.table import CommittedEntry, LedgerView, ReconstructedCoverage
from tests.support.tables.local_tables import SCHEMA

Row = tuple[str, str, int, int]
"""Topic, topic id, partition, offset."""


class OneRowFile(tuple[str, str, int, int]):
    """A row where a data file is wanted."""

    size_bytes = 1


@dataclass(frozen=True)
class Commit:
    """One commit: rows that it adds, the text of its entry (None: somebody else's), and what else it is."""

    rows: tuple[Row, ...] = ()
    entry: str | None = None
    operation: str = "WRITE"
    txn_epoch: int | None = None
    at_ms: int = 1_700_000_000_000


@dataclass
class Stored:
    """What lies on disk: commits in order, of which ``lost_history`` are gone though their rows stay."""

    commits: list[Commit] = field(default_factory=list)
    exists: bool = True
    locked: bool = False
    older: bool = False
    feature: str = ""

    def rows(self) -> Counter[Row]:
        """Every row, doubles included."""
        return Counter(row for commit in self.commits for row in commit.rows)

    def add(self, entry: Entry, rows: Sequence[Row] = ()) -> None:
        """Append a commit."""
        self.commits.append(Commit(tuple(rows), encode(entry), txn_epoch=entry.epoch))

    def change(self, index: int, **changes: Any) -> None:
        """Alter a commit behind everybody's back."""
        self.commits[index] = replace(self.commits[index], **changes)

    @property
    def txn_epoch(self) -> int | None:
        """The highest epoch that the log remembers."""
        return max((commit.txn_epoch for commit in self.commits if commit.txn_epoch is not None), default=None)


class MemoryTable:
    """One handle on a stored table; implements what starting, landing and the doctor use of the Protocol ``Table``."""

    def __init__(self, spec: TableSpec, stored: Stored) -> None:
        self._spec = spec
        self._stored = stored
        self._seen = -1

    @property
    def spec(self) -> TableSpec:
        """What the pipeline says of it."""
        return self._spec

    def exists(self) -> bool:
        """Whether there is such a table."""
        self._check()
        return self._stored.exists

    def create(self, schema: Any, genesis: Entry) -> None:
        """Make it."""
        self._stored.exists, self._stored.commits = True, []
        self._stored.add(genesis)

    def schema(self) -> Any:
        """Any."""
        return SCHEMA

    def read_ledger(self) -> LedgerView:
        """Return the entry that counts, refusing what the real tables refuse."""
        self._check()
        if self._stored.older:
            raise CatalogBehindError(self._spec.id, "file:///lake/00001-a.metadata.json", None, ["00003-b", "00004-c"])
        found = counting(self.entries())
        newer = 0 if found is None else int(found.version) + 1
        for number, commit in enumerate(self._stored.commits):
            if number >= newer and commit.operation == "RESTORE" and commit.entry is None:
                raise TableRestoredError(self._spec.id, number)
        if found is None and self._stored.rows():
            raise NoLedgerError(self._spec.id)
        self._seen = len(self._stored.commits)
        others = [str(at) for at in range(newer, self._seen) if self._stored.commits[at].operation == "UPDATE"]
        changes = tuple(ForeignChange(version=version, operation="UPDATE") for version in others)
        return LedgerView(found.entry if found else None, str(self._seen - 1), changes)

    def check_may_append(self) -> None:
        """Refuse what the real tables refuse."""
        if self._stored.feature:
            raise TableFeatureError(self._spec.id, self._stored.feature, "rows cannot be appended")

    def has_moved_on(self) -> bool:
        """Whether somebody has committed since this handle looked."""
        return self._seen != len(self._stored.commits)

    def commit(self, files: Sequence[Row], entry: Entry) -> str:
        """Append; the files are the rows."""
        if self.has_moved_on():
            raise CommitRefusedError(self._spec.id, "it moved on")
        self.check_may_append()
        self._stored.add(entry, files)
        self._seen += 1
        return str(self._seen - 1)

    def entries(self) -> Iterator[CommittedEntry]:
        """Newest first."""
        for number in reversed(range(len(self._stored.commits))):
            commit = self._stored.commits[number]
            entry = read_entry(commit.entry, f"version {number} of {self._spec.id}")
            if entry is not None:
                yield CommittedEntry(str(number), commit.at_ms, entry)

    def reconstruct(self) -> ReconstructedCoverage | None:
        """From the rows."""
        coverage: Offsets = {}
        from lakebound.ledger.entry import TopicOffsets, add

        for topic, topic_id, partition, offset in sorted(self._stored.rows()):
            landed = TopicOffsets(topic_id=topic_id, partitions={partition: ((offset, offset + 1),)})
            coverage = add(coverage, {topic: landed})
        return ReconstructedCoverage(coverage, "scan") if coverage else None

    def _check(self) -> None:
        if self._stored.locked:
            raise OSError("database is locked")


class Lake:
    """All stored tables of one case, by table id; ``open`` stands in for ``lakebound.tables.table.open_table``."""

    def __init__(self) -> None:
        self.stored: dict[str, Stored] = {}

    def open(self, spec: TableSpec, places: Places) -> MemoryTable:
        """Return a new handle."""
        return MemoryTable(spec, self.stored.setdefault(spec.id, Stored(exists=False)))

    def remembered_epoch(self, spec: TableSpec, places: Places) -> int | None:
        """Stand in for ``lakebound.tables.contents.TableContents.remembered_epoch``."""
        return self.stored[spec.id].txn_epoch
