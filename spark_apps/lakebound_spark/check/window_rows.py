"""The rows of closed windows, computed again from Kafka's records in one batch.

The function, the decoder and what is set aside are those of the stream. What a batch cannot know is which records were late:
that the quarantine says, by record and watermark, and a window that was closed for a record does not get it.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakebound.formats.reasons import LATE, LATE_IN_PART
from lakebound.landing.missed_window import read_missed
from lakebound.landing.run_spec import RunSpec
from lakebound.ledger.closed_windows import ClosedWindows
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.tables.contents import Selection, contents_of
from lakebound.tables.table import open_table
from lakebound_spark.batch.decode import good_columns
from lakebound_spark.batch.event_times import with_event_times
from lakebound_spark.batch.transform_plan import SOURCE_ALIAS
from lakebound_spark.batch.window_plan import end_ms_of, of_some_rows
from lakebound_spark.landing.assembly import Assembly
from lakebound_spark.stream.source import read_range

_ALL_MS = 2**62
"""After the end of any window: a record that is in quarantine for another reason than lateness is in none."""
_PARTITION, _OFFSET, _UNTIL = "_missed_partition", "_missed_offset", "_missed_until_ms"
_MISSED = pa.schema([(_PARTITION, pa.int32()), (_OFFSET, pa.int64()), (_UNTIL, pa.int64())])


def missed_windows(run: RunSpec, which: ClosedWindows) -> pa.Table:
    """Return, of each record in quarantine, up to which end windows were closed for it.

    Args:
        run: The pipeline's orders.
        which: Of these offsets.
    """
    table, places = run.spec.quarantine_table, run.places.read_only()
    if not open_table(table, places).exists():
        return _MISSED.empty_table()
    offsets = min(which.begins.values(), default=0), max(which.ends.values(), default=0)
    selection = Selection(("partition", "offset", "ordinal"), ("reason", "error"), offsets=offsets)
    found = [_MISSED.empty_table()]
    for rows in contents_of(table, places).rows(selection):
        # A copy of what a validation found wrong is of a record that landed.
        batch = rows.filter(pc.fill_null(pc.greater_equal(rows.column("ordinal"), 0), True))
        told = zip(batch.column("reason").to_pylist(), batch.column("error").to_pylist(), strict=True)
        until = pa.array([_until_ms(reason, error) for reason, error in told], pa.int64())
        columns = [batch.column("partition").cast(pa.int32()), batch.column("offset").cast(pa.int64()), until]
        found.append(pa.Table.from_arrays(columns, schema=_MISSED))
    return pa.concat_tables(found)


def _until_ms(reason: str | None, error: str | None) -> int:
    missed = read_missed(error) if reason in (LATE, LATE_IN_PART) else None
    return _ALL_MS if missed is None else missed.watermark_ms


def closed_rows(assembly: Assembly, which: ClosedWindows, missed: pa.Table) -> pa.Table:
    """Return the rows of closed windows, with the columns of the transform's output.

    Args:
        assembly: Of the pipeline.
        which: Which windows, and which offsets may be in them.
        missed: As ``missed_windows`` returns it.
    """
    spec, session = assembly.spec, assembly.planned.session
    [topic] = spec.topics
    read = {partition for partition, begin in which.begins.items() if begin < which.ends[partition]}
    bounds = ({topic: {partition: bound[partition] for partition in read}} for bound in (which.begins, which.ends))
    # Which records were far ahead the quarantine says: the clock was another one.
    decoded = with_event_times(assembly.decoder.decode(read_range(session, spec, *bounds)), spec, None)
    late = F.broadcast(session.createDataFrame(missed))

    def chosen(rows: DataFrame, window: Column) -> DataFrame:
        end_ms = end_ms_of(window)
        wanted = rows.where(end_ms <= which.until_ms)
        if which.after_ms is not None:
            wanted = wanted.where(end_ms > which.after_ms)
        place = F.col(KAFKA_COLUMN)
        is_late = (
            (place.getField("partition") == late[_PARTITION])
            & (place.getField("offset") == late[_OFFSET])
            & (end_ms <= late[_UNTIL])
        )
        return wanted.join(late, is_late, "left_anti")

    output = assembly.planned.function(good_columns(decoded).alias(SOURCE_ALIAS))
    found: pa.Table = of_some_rows(output, chosen).toArrow()
    return found
