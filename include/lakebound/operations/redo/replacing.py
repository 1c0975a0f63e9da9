"""One chunk of a redo in one table: the rows that its offsets gave leave in the commit in which their new rows come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from lakebound.errors import LakeboundError
from lakebound.inspection.proof.history import Spans, spans_of
from lakebound.ledger.entry import Entry
from lakebound.operations.erase.copying import Copies, Hit
from lakebound.operations.erase.prepare import erasable
from lakebound.operations.redo.held_rows import find_rows, rows_among
from lakebound.tables.commit import Committed, Waits, commit_entry
from lakebound.tables.prepared import StalePreparedError
from lakebound.tables.table import DataFile, LedgerView, Table


class RowsWithoutRecordError(LakeboundError):
    """Rows are to leave of which Kafka has not given the records."""

    def __init__(self, table: str, rows: int, example: str) -> None:
        super().__init__(
            f"table {table}: {rows:,} rows would leave of which Kafka no longer has the records, such as {example}; nothing"
            f" was written. Plan the redo again: the plan leaves out what Kafka has deleted"
        )


@dataclass(frozen=True)
class NewRows:
    """What today's transform makes of a chunk.

    Attributes:
        draft: Entry of kind ``redo``; ``redoes`` are the chunk's offsets. Which rows leave is filled in.
        files: Data files with the rows, not committed yet; good for all attempts.
        read: The offsets of which Kafka gave a record.
    """

    draft: Entry
    files: Sequence[DataFile]
    read: Spans


def replace_rows(table: Table, view: LedgerView, new: NewRows, *, attempts: int, waits: Waits) -> Committed:
    """Commit the new rows of a chunk in the place of the old ones, on top of whatever was appended meanwhile.

    Args:
        table: Its handle is the one from which ``view`` was read.
        view: The ledger.
        new: The new rows.
        attempts: How often to try while the files that go are live.
        waits: How it waits for the table.

    Raises:
        RowsWithoutRecordError: A row would leave of which no record was read.
        StalePreparedError: Others have replaced one of the files, or decided about offsets: read the ledger and try again.
        LakeboundError: What ``commit_entry`` raises.
    """
    files = erasable(table)
    files.check_may_erase()
    spans = spans_of(new.draft.redoes)
    hits = find_rows(files, spans)
    _check_read(table.spec.id, hits, new.read)
    draft = new.draft.model_copy(update={"erases": sum(hit.going.num_rows for hit in hits)})
    copies = Copies(files)

    def commit(entry: Entry) -> str:
        return files.take_out([one.file for one in hits], [*copies.files, *new.files], entry)

    try:
        copies.write(hits, partial(rows_among, spans=spans))
        return commit_entry(
            table, view, commit, draft, own_epoch=view.epoch, check_lease=lambda: None, attempts=attempts, waits=waits
        )
    except StalePreparedError:
        copies.discard()  # none of the attempts was committed
        raise


def _check_read(table: str, hits: Sequence[Hit], read: Spans) -> None:
    lost = [hit.going.filter(pa.array(~rows_among(hit.going, read))) for hit in hits]
    rows = sum(one.num_rows for one in lost)
    if rows:
        first = next(one for one in lost if one.num_rows).slice(0, 1).to_pylist()[0]
        raise RowsWithoutRecordError(table, rows, f"{first['topic']}/{first['partition']}@{first['offset']}")
