"""Tables, one Protocol for both formats: read the ledger, commit files with an entry. One engine commits per format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from lakebound.errors import LakeboundError
from lakebound.ledger.entry import Entry, Offsets, redo_in
from lakebound.ledger.foreign_changes import ForeignChange
from lakebound.ledger.redo_progress import RedoProgress
from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.tables.column_facts import FactsByColumn
from lakebound.tables.formats import PerFormat
from lakebound.tables.misread import ColumnsLook
from lakebound.tables.places import Places

if TYPE_CHECKING:
    from lakebound.tables.history import History
    from lakebound.tables.layout import FileLayout
    from lakebound.tables.schema_change import SchemaPlan

KAFKA_TYPE = pa.struct(
    [
        pa.field("topic", pa.string()),
        pa.field("topic_id", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("ordinal", pa.int32()),
    ]
)
"""``ordinal`` is the number of a row among those of its record, from 0 on. Rows of older versions may leave numbers out."""


class VersionGoneError(LakeboundError):
    """A version of a table cannot be read any more: maintenance has removed what it stood on."""

    def __init__(self, table: str, version: str, reason: str) -> None:
        super().__init__(
            f"table {table}: version {version} cannot be restored: {reason}. Maintenance has removed its files; "
            f"choose a later version"
        )


@dataclass(frozen=True)
class DataFile:
    """A Parquet file that lies in a table's folder and is not committed yet.

    Attributes:
        path: Where it is.
        size_bytes: Its size.
        metadata: Its footer: rows and row groups.
        facts: What is known of its columns.
        partition: Value per partition column, as Delta writes them; empty for Iceberg, whose bounds tell them.
        spec_id: Id of the partitioning by which it was written, as in ``FileLayout``.
        stored: Ends when the file is in its object store; None of a file that is where it belongs.
    """

    path: Location
    size_bytes: int
    metadata: pq.FileMetaData
    facts: FactsByColumn
    partition: Mapping[str, str | None] = field(default_factory=dict)
    spec_id: int | None = None
    stored: Future[None] | None = field(default=None, compare=False, repr=False)

    @property
    def rows(self) -> int:
        """Rows in the file."""
        return int(self.metadata.num_rows)


@dataclass(frozen=True)
class LedgerView:
    """What a table says it holds.

    Attributes:
        entry: The entry that counts, None only for a table that does not exist or was born by somebody else and is empty.
        version: Delta version or Iceberg snapshot id ("" before the first snapshot) at which it was read.
        foreign_changes: Commits since that entry by which others changed rows, oldest first; the next entry remembers them.
    """

    entry: Entry | None
    version: str
    foreign_changes: tuple[ForeignChange, ...] = ()

    @property
    def coverage(self) -> Offsets:
        """Everything landed so far."""
        return self.entry.coverage if self.entry else {}

    @property
    def epoch(self) -> int:
        """Of the newest entry; 0 without one."""
        return self.entry.epoch if self.entry else 0

    @property
    def may_lag(self) -> bool:
        """Whether the table may hold rows that the entry does not know of: only a carry is left, and it names no entry."""
        return self.entry is not None and self.entry.kind == "carry" and self.entry.carries is None

    @property
    def changes_seen(self) -> int:
        """How many commits by others ever changed rows of what the table holds, acknowledged or not."""
        known = {one.version for one in (self.entry.foreign_changes if self.entry else ())}
        before = (self.entry.changes_seen if self.entry else None) or len(known)
        return before + sum(one.version not in known for one in self.foreign_changes)

    @property
    def released(self) -> int:
        """How many offsets were released from quarantine so far."""
        return self.entry.released if self.entry else 0

    @property
    def redo_progress(self) -> RedoProgress:
        """The plan of the newest redo that stands, and how much of it is left in this table."""
        return redo_in(self.entry)

    @property
    def newest_redo(self) -> str:
        """Id of the commit of the newest redo that stands; empty without one."""
        return (self.entry.newest_redo if self.entry else None) or ""


@dataclass(frozen=True)
class CommittedEntry:
    """An entry and the commit that carries it."""

    version: str
    committed_at_ms: int
    entry: Entry


@dataclass(frozen=True)
class TableVersion:
    """One commit of a table's history, whoever made it.

    Attributes:
        version: Delta version or Iceberg snapshot id.
        committed_at_ms: By the clock of who committed; for Iceberg, when it became the table's current snapshot.
        entry: The entry in this commit, None where it carries none.
    """

    version: str
    committed_at_ms: int
    entry: Entry | None


@dataclass(frozen=True)
class PastVersion:
    """What a table held at one of its versions.

    Attributes:
        entry: The entry that counted there, None before the first.
        rows: How many.
        schema: Its columns.
        missing_files: Data files that it needs and that are gone: removed by vacuum or expiry, or lost.
    """

    entry: Entry | None
    rows: int
    schema: pa.Schema
    missing_files: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReconstructedCoverage:
    """Coverage worked out without any entry."""

    coverage: Offsets
    source: Literal["statistics", "scan"]


class Table(Protocol):
    """One target table. Not safe for use by several threads at once; each table is committed by one thread."""

    @property
    def spec(self) -> TableSpec:
        """What the pipeline says of it."""

    def exists(self) -> bool:
        """Whether there is such a table."""

    def create(self, schema: pa.Schema, genesis: Entry) -> None:
        """Make the table with its ``genesis`` entry, in the one commit that Delta needs or the two that Iceberg needs.

        Args:
            schema: The table's columns, ``_kafka`` included.
            genesis: The first entry.

        Raises:
            TableMismatchError: A partition column is not in the schema.
        """

    def schema(self) -> pa.Schema:
        """The table's columns, ``_kafka`` included."""

    def check_new(self, schema: pa.Schema) -> None:
        """Check that ``create`` would make the table; writes nothing, and asks nobody.

        Args:
            schema: Columns of the new table, ``_kafka`` included.

        Raises:
            TableMismatchError: The format cannot have such a table.
        """

    def partition_names(self) -> tuple[str, ...]:
        """Names of an existing table's partition fields, which no new column may have; none where they are columns."""

    def properties(self) -> dict[str, str]:
        """An existing table's properties."""

    def read_ledger(self, *, to_reset: bool = False) -> LedgerView:
        """Refresh the handle and return the entry that counts.

        Args:
            to_reset: A ``reset`` is to be committed. Where none of the table's entries counts, this returns the newest, or none
                where there is none that can be read, instead of an error: its owner and epoch hold, its coverage does not.

        Raises:
            NoLedgerError: The table has rows and no entry can be reached.
            TableRestoredError: The table was restored by somebody else after the entry that would count.
            BadEntryError: An entry is there and cannot be read.
        """

    def commit(self, files: Sequence[DataFile], entry: Entry) -> str:
        """Commit files (perhaps none) with the entry, on the handle of the last ``read_ledger`` or ``commit``: a version.

        Never retries and never rebases onto a state that ``read_ledger`` has not seen.

        Args:
            files: Files in the table's folder that are not committed yet.
            entry: Says what the files hold.

        Raises:
            CommitRefusedError: The table moved on under the handle.
            Exception: Whatever the library raises; the outcome is then unknown until the ledger is read again.
        """

    def check_may_append(self) -> None:
        """Check that the table, as the last ``read_ledger`` found it, asks nothing of its writers that is not done rightly.

        Raises:
            TableFeatureError: It does, so that each commit of rows is refused.
        """

    def has_moved_on(self) -> bool:
        """Whether somebody else has committed since the handle's last ``read_ledger`` or ``commit``; costs next to nothing."""

    def entries(self) -> Iterator[CommittedEntry]:
        """Yield entries newest first, as far back as history is kept; Iceberg: along the current snapshot's ancestry only."""

    def history(self) -> History:
        """Return the table's commits as the handle stands; of a handle that has read nothing yet, as the table is now."""

    def look_back(self, version: str) -> PastVersion:
        """Return what the table held at a version; reads metadata, and asks whether each data file is there.

        Args:
            version: Delta version or Iceberg snapshot id.

        Raises:
            VersionGoneError: Its metadata cannot be read any more.
            TableRestoredError: What it held is not known: somebody had restored the table by hand.
        """

    def restore(self, version: str, entry: Entry) -> str:
        """Make the table hold what it held at ``version``, with a ``reset`` entry in the same commit: the new version.

        One compare-and-swap onto the newest state, which need not have been read: a reset does not follow from it. The
        handle must read its ledger before it commits again. Whether data files are there is for ``look_back`` to say.

        Args:
            version: Delta version or Iceberg snapshot id.
            entry: The ``reset`` entry to commit with it.

        Raises:
            CommitRefusedError: The table has an entry of a later epoch, or moved on meanwhile.
            VersionGoneError: There is no such version any more.
        """

    def kept_until_ms(self, version: TableVersion, left_at_ms: int) -> int:
        """Return until when maintenance by the table's own settings keeps a version that is left at a time.

        Args:
            version: The version.
            left_at_ms: Epoch milliseconds at which another version becomes the current one.

        Raises:
            VersionGoneError: Iceberg: the snapshot is not kept any more.
        """

    def change_schema(self, plan: SchemaPlan, entry: Entry | None) -> None:
        """Add columns and widen types, in one commit of metadata that carries the entry on where the format needs it.

        The handle must read its ledger before it commits again.

        Args:
            plan: Columns to add and types to widen.
            entry: The entry that counts, to be carried on; None where the table has none.

        Raises:
            CommitRefusedError: The table moved on meanwhile; read it again and try again.
            TableMismatchError: The format does not allow the change, and never will.
        """

    def set_properties(self, properties: Mapping[str, str], entry: Entry | None) -> None:
        """Set properties, in one commit of metadata that carries the entry on where the format needs it.

        The handle must read its ledger before it commits again.

        Args:
            properties: Values by name; other properties stay as they are.
            entry: The entry that counts, to be carried on; None where the table has none.

        Raises:
            CommitRefusedError: The table moved on meanwhile; read it again and try again.
            TableMismatchError: The format refuses them.
        """

    def layout(self) -> FileLayout:
        """Where data files go and how they are partitioned, as the table itself says it.

        Raises:
            TableMismatchError: It is partitioned in a way that is not written here.
        """

    def scan_kafka(self) -> pa.Table:
        """Read ``_kafka`` of every row, flattened to topic, topic_id, partition, offset, timestamp, ordinal."""

    def misread_columns(self) -> ColumnsLook:
        """Compare the columns of the newest version's data files with those in which readers show them.

        Reads the footers of the newest files, up to ``lakebound.tables.misread.MOST_FILES``.
        """

    def reconstruct(self) -> ReconstructedCoverage | None:
        """Work out coverage without entries: from column statistics where files do not span partitions, else by a scan.

        It is a lower bound: filtered and quarantined offsets leave no rows. None for an empty table.
        """

    def keep_cheap(self) -> None:
        """Do what keeps the next commits cheap and may run beside them (Delta: write a log checkpoint when one is due)."""


_TABLES: PerFormat[Callable[[TableSpec, Places], Table]] = PerFormat("lakebound.tables", "table:open_table")


def open_table(spec: TableSpec, places: Places) -> Table:
    """Return the table of a spec; its library is imported only now, and nothing is read or made yet."""
    return _TABLES.of(spec.format)(spec, places)
