"""The bad records of a batch go to quarantine, each once, before the tables commit their coverage of them.

The quarantine's coverage also holds offsets that were good when they were read. Such offsets may be read again, for a table
that was added or rewound, and be bad now, by a stricter schema. Whether they are in quarantine is told by its rows, not by its
coverage. What is missing there is *recalled*, by a commit of its own that names the offsets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakebound.errors import LakeboundError
from lakebound.inspection.proof.history import spans_of
from lakebound.inspection.proof.offset_arrays import Arrays, size, within, without
from lakebound.ledger.entry import Offsets, common, count, missing
from lakebound.operations.release.candidates import as_offsets, offsets_in
from lakebound.operations.release.reading import among_offsets
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound_spark.batch.bad_reasons import observed_reasons, reasons_of
from lakebound_spark.batch.decode import at_place
from lakebound_spark.batch.lanes import PLAIN, ResultTooLargeError, WrittenBy, collect, write_by_cluster
from lakebound_spark.batch.quarantine_sampling import QuarantineSampling
from lakebound_spark.batch.row_writer import KEY_FIELDS, Written, write_rows
from lakebound_spark.batch.targets import Counts, Origin, Target, Writer

PLACE_FIELDS = ("topic", "topic_id", "partition", "offset")
ReadPlaces = Callable[[int, int], pa.Table]
"""Returns the places of the quarantine's rows with offsets from the first up to and with the second."""


class QuarantineMismatchError(LakeboundError):
    """A batch's bad records, read once more to be put into quarantine, are not as many as were counted."""

    def __init__(self, counted: int, found: int) -> None:
        super().__init__(
            f"{counted} records of the batch were counted as bad, but {found} were found when they were read again; nothing "
            f"was committed, and the batch is landed again. If this happens again, the transform is not deterministic"
        )


@dataclass(frozen=True)
class BadRecords:
    """The bad records of a batch, as rows of the quarantine table.

    Attributes:
        rows: In memory, or still to be read by Spark.
        counted: How many of them were counted when the batch was read.
        tag: Of the files.
        written_by: Who wrote the batch's files.
        batch: Its number.
    """

    rows: pa.Table | DataFrame
    counted: int
    tag: str
    written_by: WrittenBy
    batch: int


class QuarantineLander:
    """Lands bad records in the quarantine of one pipeline."""

    def __init__(
        self,
        target: Target,
        writer: Writer,
        read_places: ReadPlaces,
        schema: StructType | None = None,
        sampling: QuarantineSampling | None = None,
        parts: Sequence[str] = (),
    ) -> None:
        """Land nothing yet.

        Args:
            target: The quarantine table.
            writer: What its commits have in common.
            read_places: Reads the places of its rows.
            schema: Of the pipeline's values, whose columns are counted; None where they are texts or bytes.
            sampling: Keeps a few of the bad records to look at; None where nobody wants that.
            parts: The key and headers that become columns, as errors name them.
        """
        self._parts = parts
        self._target = target
        self._writer = writer
        self._read_places = read_places
        self._schema = schema
        self._sampling = sampling

    def pass_over(self, offsets: Offsets) -> None:
        """Note that offsets hold no bad record; it is committed with the next bad ones."""
        self._target.remember(missing(offsets, self._target.coverage), Counts())

    def land(self, offsets: Offsets, bad: BadRecords) -> Counter[str]:
        """Commit the bad records of the offsets that are not in quarantine yet; return how many have which reason.

        Args:
            offsets: All offsets of the batch.
            bad: Its bad records.

        Raises:
            QuarantineMismatchError: There are not as many as were counted; nothing was committed.
            ReleaseOvertakenError: Somebody else recalled or released some of these offsets meanwhile.
            LakeboundError: What a commit raises.
        """
        fresh, seen = missing(offsets, self._target.coverage), common(offsets, self._target.coverage)
        if not count(seen):
            written, reasons = self._write(bad.rows, bad)
            _check_count(bad.counted, written.rows)
            self._commit_fresh(fresh, written, bad)
            return reasons
        places = _places(bad.rows)
        _check_count(bad.counted, places.num_rows)
        own = offsets_in(places)
        reasons, again = self._land_fresh(fresh, within(own, spans_of(fresh)), bad), within(own, spans_of(seen))
        if not size(again):
            return reasons
        # The coverage must say that it holds them. Before the rows are read: a recall by somebody else after them is refused.
        self._target.flush(self._writer)
        return reasons + self._recall(self._unknown(again), bad)

    def _unknown(self, own: Arrays) -> Arrays:
        """Return the offsets of which the quarantine has no row."""
        first = min(int(offsets[0]) for offsets in own.values() if len(offsets))
        last = max(int(offsets[-1]) for offsets in own.values() if len(offsets))
        rest = without(own, offsets_in(self._read_places(first, last)))
        return {key: offsets for key, offsets in rest.items() if len(offsets)}

    def _land_fresh(self, fresh: Offsets, own: Arrays, bad: BadRecords) -> Counter[str]:
        if not size(own):
            self.pass_over(fresh)
            return Counter()
        written, reasons = self._write(_only(bad.rows, own), bad)
        _check_count(size(own), written.rows)
        self._commit_fresh(fresh, written, bad)
        return reasons

    def _recall(self, own: Arrays, bad: BadRecords) -> Counter[str]:
        if not size(own):
            return Counter()
        written, reasons = self._write(_only(bad.rows, own), bad, "-r")
        _check_count(size(own), written.rows)
        files = written.files.get(self._target.id, [])
        recalled = as_offsets(own)
        origin = Origin(bad.batch)
        self._target.commit(self._writer, {}, _counts(written), files, origin, kind="recall", releases=recalled)
        return reasons

    def _write(self, rows: pa.Table | DataFrame, bad: BadRecords, suffix: str = "") -> tuple[Written, Counter[str]]:
        tag = f"{bad.tag}-q{suffix}"
        if isinstance(rows, DataFrame) and bad.written_by == "driver":
            with suppress(ResultTooLargeError):
                rows = collect(rows)
        if isinstance(rows, pa.Table):
            self._take_samples(rows)
            return write_rows(rows, [self._target.table], tag, multiplies=False), reasons_of(rows, self._schema, self._parts)
        self._take_samples(rows)
        output, reasons = observed_reasons(rows, self._schema, tag, self._parts)
        return write_by_cluster(output, [self._target.table], f"{tag}-c", PLAIN), reasons()

    def _take_samples(self, rows: pa.Table | DataFrame) -> None:
        if self._sampling is not None:
            self._sampling.take(rows)

    def _commit_fresh(self, fresh: Offsets, written: Written, bad: BadRecords) -> None:
        files = written.files.get(self._target.id, [])
        self._target.commit(self._writer, fresh, _counts(written), files, Origin(bad.batch))


def _places(rows: pa.Table | DataFrame) -> pa.Table:
    """Return topic, topic id, partition and offset of each row."""
    if isinstance(rows, DataFrame):
        return rows.select(*(F.col(f"{KAFKA_COLUMN}.{name}").alias(name) for name in PLACE_FIELDS)).toArrow()
    kafka = rows[KAFKA_COLUMN].combine_chunks()
    return pa.table({name: kafka.field(name) for name in PLACE_FIELDS})


def _only(rows: pa.Table | DataFrame, own: Arrays) -> pa.Table | DataFrame:
    """Return the rows of these offsets."""
    if isinstance(rows, pa.Table):
        return rows.filter(among_offsets(_places(rows), own))
    places = [(topic, partition, int(offset)) for (topic, _, partition), offsets in own.items() for offset in offsets]
    columns = [pa.array(values) for values in zip(*places, strict=True)]
    wanted = rows.sparkSession.createDataFrame(pa.table(columns, names=list(KEY_FIELDS)))
    return rows.join(F.broadcast(wanted), at_place(rows[KAFKA_COLUMN], wanted), "left_semi")


def _counts(written: Written) -> Counts:
    return Counts(read=written.rows, quarantined=written.rows, rows=written.rows)


def _check_count(counted: int, found: int) -> None:
    if counted != found:
        raise QuarantineMismatchError(counted, found)
