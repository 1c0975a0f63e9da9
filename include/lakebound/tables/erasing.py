"""What both formats offer for taking single rows out of a table: its data files, and a commit of copies without these rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pyarrow as pa

from lakebound.errors import LakeboundError
from lakebound.ledger.entry import Entry
from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.tables.layout import FileLayout
from lakebound.tables.reconstruction import FileRange
from lakebound.tables.table import DataFile

COPY_PREFIX = "erased-"
"""Names of the files begin with it that lack some rows of another file, and come in its place."""


class RowsNotInFilesError(LakeboundError):
    """A table has rows in its data files that it does not have, or names its columns otherwise than they do."""

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(
            f"table {table}: no rows can be taken out of it: {reason}, and files of such a table are not rewritten here. "
            f"Remove that from the table with the tool that made it, then run the command again"
        )


@dataclass(frozen=True)
class LiveDataFile:
    """A data file of a table's newest version.

    Attributes:
        name: As the log or a manifest names it.
        path: Where it is.
        size_bytes: Its size.
        partition: Delta: value per partition column.
        range: What its statistics say of ``_kafka``.
        spec_id: Iceberg: id of the partitioning for which it was written, which the table may have left since.
        is_replaceable: Whether a copy of that partitioning can be written.
    """

    name: str
    path: Location
    size_bytes: int
    partition: Mapping[str, str | None]
    range: FileRange
    spec_id: int | None = None
    is_replaceable: bool = True


@runtime_checkable
class ErasesRows(Protocol):
    """A table from which rows can be taken out."""

    @property
    def spec(self) -> TableSpec:
        """What the pipeline says of it."""

    def layout(self) -> FileLayout:
        """Where its data files go."""

    def check_may_erase(self) -> None:
        """Check, as of the last ``read_ledger``, that copies of files that lack some of their rows can take their place.

        Raises:
            RowsNotInFilesError: The files do not tell which rows the table has.
            TableFeatureError: The table has a feature with which that is not done rightly here.
            RowsNotReadError: Files are not where they are read.
        """

    def live_data_files(self, version: str | None = None) -> list[LiveDataFile]:
        """Return the data files of a version.

        Args:
            version: Delta version or Iceberg snapshot id; None: as of the last ``read_ledger``.

        Raises:
            VersionGoneError: It is not kept any more.
        """

    def rows_of(self, file: LiveDataFile) -> Iterator[pa.Table]:
        """Yield the rows of a live file as a copy of it holds them, a row group at a time; all of one schema.

        Args:
            file: One of ``live_data_files``, of any version.

        Raises:
            FileNotFoundError: It is not there any more.
            LakeboundError: A copy of it cannot be written here.
        """

    def take_out(
        self,
        removed: Collection[LiveDataFile],
        copies: Sequence[DataFile],
        entry: Entry,
        new: Sequence[DataFile] = (),
    ) -> str:
        """Commit copies of files that lack some of their rows in the place of these files, on the last handle: a version.

        Args:
            removed: The files that go.
            copies: Of those of which any row stays. They are of the columns and the partitioning of the files that go.
            entry: Of the kind ``erase`` or ``redo``.
            new: Files with rows that were made anew, which come in the same commit.

        Raises:
            FilesOutdatedError: The new files were written for columns or a partitioning that are other ones now.
            TableMismatchError: The new files do not fit the table.
            TableFeatureError: The table has a feature with which no rows are taken out, or no new ones put in.
            StalePreparedError: One of the files is not live any more: nothing was written.
            CommitRefusedError: The table moved on under the handle.
            Exception: The outcome is unknown.
        """
