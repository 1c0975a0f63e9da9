"""One chunk of a redo in one table: the rows that its offsets gave leave in the commit in which their new rows come."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import gettempdir

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import structlog

from lakebound.errors import FilesOutdatedError, LakeboundError
from lakebound.inspection.proof.history import Spans, spans_of
from lakebound.inspection.proof.offset_arrays import index_rows, spans_from
from lakebound.ledger.entry import Entry, Offsets, TopicOffsets, count, missing
from lakebound.ledger.hours import HOUR_MS, hours_between, row_hours
from lakebound.ledger.intervals import Intervals
from lakebound.operations.erase.copying import Copies, Hit
from lakebound.operations.erase.prepare import erasable
from lakebound.operations.redo.held_rows import find_rows, rows_among
from lakebound.spec.pipeline import KAFKA_TIMESTAMP
from lakebound.tables.commit import Committed, Waits, commit_entry
from lakebound.tables.erased import erased_among, read_erased
from lakebound.tables.full_disk import full_disk_error
from lakebound.tables.outages import is_full_disk
from lakebound.tables.prepared import StalePreparedError
from lakebound.tables.table import DataFile, LedgerView, Table

MOST_STAYING = 200
"""Places of which an entry says that their rows stay."""
_SHORTEST_WAIT_SECONDS = 0.1
_log = structlog.get_logger(__name__)


class RowsWithoutRecordError(LakeboundError, is_refusal=True):
    """Rows of very many places would have to stay, since Kafka has not given their records."""

    def __init__(self, table: str, places: int, example: str) -> None:
        super().__init__(
            f"table {table}: of this batch Kafka no longer has the records of rows in {places:,} places, such as {example}; "
            f"nothing was written. Leave these offsets out by --from and --to: rows without a record stay as they are"
        )


class RedoOvertakenError(LakeboundError, is_refusal=True):
    """A table is no longer what an approved redo was planned for."""

    def __init__(self, table: str, what: str) -> None:
        super().__init__(f"table {table}: {what} since the redo was planned; nothing more was redone. Plan the redo again")


@dataclass(frozen=True)
class Planned:
    """What a table must be for a redo to go on; None is not asked.

    Attributes:
        changes_seen: How many commits by others had ever changed its rows when the plan was made.
        newest_redo: Id of the commit of the redo that has to be the newest one: the plan's own.
    """

    changes_seen: int | None = None
    newest_redo: str | None = None


@dataclass(frozen=True)
class NewRows:
    """What today's transform makes of a chunk.

    Attributes:
        draft: Entry of kind ``redo``; ``redoes`` are the chunk's offsets. What it says of rows that leave is filled in.
        files: Data files with the rows, not committed yet; good for all attempts.
        read: The offsets of which Kafka gave a record.
        planned: On what it is to be committed.
        copied: Of an undoing: copies of files of before, which keep their columns and their partitioning.
    """

    draft: Entry
    files: Sequence[DataFile]
    read: Spans
    planned: Planned = field(default_factory=Planned)
    copied: Sequence[DataFile] = ()


def replace_rows(table: Table, view: LedgerView, new: NewRows, *, attempts: int, waits: Waits) -> Committed:
    """Commit the new rows of a chunk in the place of the old ones, on top of whatever was appended meanwhile.

    Args:
        table: Its handle is the one from which ``view`` was read.
        view: The ledger.
        new: The new rows.
        attempts: How often to try while the files that go are live.
        waits: How it waits for the table.

    Raises:
        RowsWithoutRecordError: Rows of too many places would stay, of which no record was read.
        DiskFullError: There is no room for the copies.
        FilesOutdatedError: The table has other columns, or another partitioning, than those for which the new files were
            written: write them again.
        StalePreparedError: Others have replaced one of the files, or decided about offsets: read the ledger and try again.
        LakeboundError: What ``commit_entry`` raises.
    """
    files = erasable(table)
    files.check_may_erase()
    # On the very ledger on which it is committed: another machine does not see the lock.
    check_as_planned(table, view, new.draft.redoes, new.planned)
    hits = find_rows(files, spans_of(new.draft.redoes))
    hits, draft = _without_unread(table.spec.id, hits, new)
    draft, spans = with_leaving(draft, [hit.going for hit in hits]), spans_of(draft.redoes)
    copies, asked = Copies(files), list[Entry]()

    def commit(entry: Entry) -> str:
        asked.append(entry)
        return files.take_out([one.file for one in hits], [*copies.files, *new.copied], entry, new.files)

    try:
        copies.write(hits, partial(rows_among, spans=spans))
        return commit_entry(
            table, view, commit, draft, own_epoch=view.epoch, check_lease=lambda: None, attempts=attempts, waits=waits
        )
    except (StalePreparedError, FilesOutdatedError):
        copies.discard()  # none of the attempts was committed
        raise
    except BaseException as exc:
        if not asked:
            copies.discard()
        if not asked and isinstance(exc, OSError) and is_full_disk(exc):
            folder = table.layout().folder
            place = folder.path if folder.is_local else Path(gettempdir())
            if (full := full_disk_error(exc, f"table {table.spec.id}", place)) is not None:
                raise full from exc
        raise


def redo_chunk(table: Table, new: NewRows, *, attempts: int, waits: Waits) -> Committed:
    """Commit the new rows of a chunk whatever else is committed meanwhile; files that others replaced are looked for again.

    The new rows are made once: each attempt takes the same files, of which none was committed before.

    Args:
        table: The table.
        new: The new rows.
        attempts: How often to try.
        waits: How it waits for the table.

    Raises:
        LakeboundError: What ``replace_rows`` raises, of the last attempt what is stale.
    """
    for attempt in range(1, attempts):
        try:
            return replace_rows(table, table.read_ledger(), new, attempts=attempts, waits=waits)
        except StalePreparedError as exc:
            _log.warning("redo_looks_again", table=table.spec.id, attempt=attempt, reason=str(exc))
            waits.between(_SHORTEST_WAIT_SECONDS)
    return replace_rows(table, table.read_ledger(), new, attempts=attempts, waits=waits)


def check_as_planned(table: Table, view: LedgerView, replaces: Offsets, planned: Planned) -> None:
    """Check that a table still holds what is to be redone, and that nobody has erased or changed rows of it.

    Repairs and erasures wait for a redo where they see its lock; on another machine they may not.

    Args:
        table: The table.
        view: Its ledger.
        replaces: The offsets that the plan makes anew in it.
        planned: What else it must be.

    Raises:
        RedoOvertakenError: It does not, or somebody has.
    """
    entry = view.entry
    if uncovered := count(missing(replaces, view.coverage)):
        raise RedoOvertakenError(table.spec.id, f"{uncovered:,} of its offsets were taken back")
    if planned.newest_redo is not None and view.newest_redo != planned.newest_redo:
        raise RedoOvertakenError(table.spec.id, "another redo, its undoing or a rewind was committed")
    if planned.changes_seen is not None and view.changes_seen != planned.changes_seen:
        raise RedoOvertakenError(table.spec.id, "others changed its rows")
    if entry is None or entry.erased is None:
        return
    if erased := count(erased_among(replaces, read_erased(table, entry).records)):
        raise RedoOvertakenError(table.spec.id, f"rows of {erased:,} of its records were erased by decision")


def with_leaving(draft: Entry, leaving: Sequence[pa.Table]) -> Entry:
    """Return the entry with the rows that leave: their number, and that their hours are touched, too. Pure.

    Args:
        draft: The entry of the new rows.
        leaving: Where the rows that leave are from, as ``Table.scan_kafka`` gives it.
    """
    erases = sum(one.num_rows for one in leaving)
    if not erases:
        return draft
    moments_ms = moments_of(leaving)
    if not len(moments_ms):
        return draft.model_copy(update={"erases": erases, "hours": None})
    first, last = int(moments_ms.min()), int(moments_ms.max())
    told = draft.timestamps_ms
    timestamps_ms = (first, last) if told is None else (min(first, told[0]), max(last, told[1]))
    hours = draft.hours
    if hours is not None and hours.column == KAFKA_TIMESTAMP:
        of_both = hours_between(hours.intervals) | {int(hour) for hour in np.unique(moments_ms // HOUR_MS)}
        hours = row_hours(hours.column, of_both, int(time.time() * 1000))
    else:
        hours = None  # to which hour of another column a row belonged is not read: every hour may be touched
    return draft.model_copy(update={"erases": erases, "timestamps_ms": timestamps_ms, "hours": hours})


def moments_of(rows: Sequence[pa.Table]) -> npt.NDArray[np.int64]:
    """Return Kafka's timestamps of rows in epoch milliseconds, as far as they have one.

    Args:
        rows: Where they are from, as ``Table.scan_kafka`` gives it.
    """
    if not rows:
        return np.empty(0, dtype=np.int64)
    times = pa.concat_tables([one.select(["timestamp"]) for one in rows])["timestamp"].drop_null()
    found: npt.NDArray[np.int64] = times.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy() // 1000
    return found


def _without_unread(table: str, hits: Sequence[Hit], new: NewRows) -> tuple[list[Hit], Entry]:
    """Return what leaves of which a record was read, and the entry that names the others: their rows stay.

    Kafka may drop records from the middle of a range: a topic that was compacted, an election without a clean end.
    """
    lost = [hit.going.filter(pa.array(~rows_among(hit.going, new.read))) for hit in hits]
    if not sum(one.num_rows for one in lost):
        return [*hits], new.draft
    stays = spans_from(index_rows(*lost).records)
    places = sum(len(intervals) for intervals in stays.values())
    first = next(one for one in lost if one.num_rows).slice(0, 1).to_pylist()[0]
    example = f"{first['topic']}/{first['partition']}@{first['offset']}"
    if places > MOST_STAYING:
        raise RowsWithoutRecordError(table, places, example)
    _log.warning("rows_stay", table=table, places=places, example=example, reason="Kafka gave no record of them")
    kept = []
    for hit in hits:
        going = hit.going.filter(pa.array(~rows_among(hit.going, stays)))
        if going.num_rows:
            kept.append(replace(hit, going=going, stay=hit.stay + hit.going.num_rows - going.num_rows))
    named = offsets_of(stays)
    return kept, new.draft.model_copy(update={"redoes": missing(new.draft.redoes, named), "redo_stays": named})


def offsets_of(spans: Spans) -> Offsets:
    """Return spans as offsets; of each topic one incarnation."""
    found: dict[str, dict[int, Intervals]] = {}
    ids = {}
    for (topic, topic_id, partition), intervals in sorted(spans.items()):
        found.setdefault(topic, {})[partition] = intervals
        ids[topic] = topic_id
    return {topic: TopicOffsets(topic_id=ids[topic], partitions=held) for topic, held in found.items()}
