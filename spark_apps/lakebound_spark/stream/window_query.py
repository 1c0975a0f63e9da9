"""The query of a pipeline with state: it rebuilds the open windows first, and only then lands (docs/decisions/0044)."""

from __future__ import annotations

import logging
import time
from functools import partial
from pathlib import Path
from threading import Event

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from lakebound import faults
from lakebound.control.private_files import make_private_folder
from lakebound.control.windows_in_use import WindowsProgress
from lakebound.errors import WatermarkMismatchError, WindowsCompactedError, WindowsGoneError
from lakebound.ledger.entry import TopicOffsets, check_topic_ids
from lakebound.ledger.marks import NextOffsets
from lakebound.ledger.windows import (
    Ends,
    WindowPosition,
    WindowStart,
    gone_before,
    plan_windows,
    start_with,
)
from lakebound.spec.state import compacted_source_problem
from lakebound.spec.times import in_utc
from lakebound_spark.batch.decode import good_columns
from lakebound_spark.batch.event_times import AheadRule, with_event_times
from lakebound_spark.batch.records import Records
from lakebound_spark.batch.transform_plan import SOURCE_ALIAS
from lakebound_spark.batch.window_plan import with_watermark
from lakebound_spark.landing.trimming import range_between
from lakebound_spark.landing.window_lander import WindowBatch, WindowLander
from lakebound_spark.stream.planned import newest_event_ms, planned_at_ms, planned_ends, planned_watermark_ms
from lakebound_spark.stream.query import QUERY_SECONDS, LandingStream
from lakebound_spark.stream.seeded_checkpoint import next_watermark_ms, seed_batch
from lakebound_spark.stream.source import read_offsets, read_stream

log = logging.getLogger(__name__)

_STATE_STORE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}
"""Its memory is bounded however many keys the open windows have."""
_LOOK_SECONDS = 1


class WindowStream(LandingStream):
    """Runs one query with state until it ends, fails, or the stop signal is set."""

    def run(self, start: NextOffsets, checkpoint: Path) -> None:
        """Rebuild the open windows in a fresh checkpoint folder, then run the query; return when it ended gracefully.

        Raises:
            WindowsMismatchError: The tables do not say together where to go on.
            WindowsCompactedError: Kafka compacts the topic.
            WindowsGoneError: Records are deleted that open windows held.
            WatermarkMismatchError: The rebuilt windows are not those that the tables tell of.
            Exception: What a batch raised, or what Spark says ended the query.
        """
        self._begin(start)
        topic, spec = self._topic, self._run.spec
        lander, entries = self._windows_lander, {target.id: target.view.entry for target in self._targets}
        states = {name: None if entry is None else entry.windows for name, entry in entries.items()}
        quarantine = self._opened.quarantine.view.entry
        marks = dict(start[topic])
        facts = self._facts.topics(spec.topics)[topic]
        earliest = dict(facts.earliest)
        if self._facts.written_settings([topic])[topic].is_compacted:
            raise WindowsCompactedError(spec.pipeline, compacted_source_problem(topic))
        refused = None if quarantine is None else quarantine.windows
        told = plan_windows(spec.pipeline, lander.window_id, lander.rows_id, states, refused, marks)
        self._check_reached(told.position, earliest)
        windows = start_with(told, earliest)
        for name, value in _STATE_STORE.items():
            self._session.conf.set(name, value)
        make_private_folder(checkpoint.parent)
        if not self._rebuild(windows, checkpoint):
            return
        faults.reach("windows_rebuilt")
        self._plan_first_batch(windows, dict(facts.latest), checkpoint)
        lander.begin(windows, start)
        self._position = self._planned = {topic: windows.position.ends}
        self._run_query(self._writer(windows, checkpoint, partial(self._on_windows, self._ending)))

    def _plan_first_batch(self, windows: WindowStart, latest: Ends, checkpoint: Path) -> None:
        """Plan the batch that only some of the tables have; else, where nothing is to be read, one that closes windows.

        Spark closes windows without records only after a batch of its own run, and the run before may have ended just then.
        """
        position, state = windows.position, self._run.spec.state
        assert state is not None
        number = 1 if position.has_state else 0
        if windows.repeated is not None:
            after = windows.repeated.after
            log.info("batch %d of windows is landed where it is missing", windows.repeated.serial)
            seed_batch(self._session, checkpoint, number, self._topic, after.ends, after.watermark_ms)
            return
        watermark_ms = position.next_watermark_ms(state.watermark_ms)
        if watermark_ms > position.watermark_ms and all(latest.get(p, end) <= end for p, end in position.ends.items()):
            seed_batch(self._session, checkpoint, number, self._topic, position.ends, watermark_ms)

    @property
    def _topic(self) -> str:
        return self._run.spec.topics[0]

    @property
    def _windows_lander(self) -> WindowLander:
        lander = self._opened.lander
        assert isinstance(lander, WindowLander)
        return lander

    def _check_reached(self, position: WindowPosition, earliest: Ends) -> None:
        gone = gone_before(position, earliest)
        if gone:
            until_ms = max(position.open_until_ms.get(partition, 0) for partition in gone)
            raise WindowsGoneError(self._run.spec.pipeline, self._topic, gone, in_utc(until_ms))

    def _rebuild(self, windows: WindowStart, checkpoint: Path) -> bool:
        """Read the records of open windows again, as one batch that lands nothing; return whether the query may go on."""
        position = windows.position
        if not position.has_state:
            return True
        began = time.perf_counter()
        self._told.show_windows(_progress(position, is_rebuilding=True))
        seed_batch(self._session, checkpoint, 0, self._topic, position.ends, position.watermark_ms)
        query = self._writer(windows, checkpoint, _discard).trigger(once=True).start()
        while not query.awaitTermination(_LOOK_SECONDS):
            if self._stop.is_set():
                query.stop()
                return False
        state = self._run.spec.state
        assert state is not None
        expected, found = position.next_watermark_ms(state.watermark_ms), next_watermark_ms(checkpoint, 0)
        if expected != found:
            raise WatermarkMismatchError(self._run.spec.pipeline, expected, found)
        self._told.show_windows(_progress(position))
        log.info("open windows were rebuilt of %d offsets in %.1f s", position.rebuilt_offsets, time.perf_counter() - began)
        return True

    def _writer(self, windows: WindowStart, checkpoint: Path, each: object) -> DataStreamWriter:
        """Return the query's writer; both queries of one start have the same plan, and so the same state."""
        assembly, spec, position = self._opened.assembly, self._run.spec, windows.position
        begins = {self._topic: {p: position.horizon.get(p, end) for p, end in position.ends.items()}}
        decoded = assembly.decoder.decode(read_stream(self._session, spec, begins))
        rule = AheadRule(None, windows.known.ends, windows.known.far_ahead)
        records = with_watermark(good_columns(with_event_times(decoded, spec, rule)), spec).alias(SOURCE_ALIAS)
        writer = assembly.planned.transform(records).writeStream.outputMode("append").foreachBatch(each)  # type: ignore[arg-type]
        return self._named(writer, checkpoint)

    def _on_windows(self, ending: Event, rows: DataFrame, number: int) -> None:
        """Land a batch: the windows that it closes, and its late records.

        Args:
            ending: Of the query that the batch is of.
            rows: Of the windows that it closes.
            number: Spark's id of it.
        """
        with self._landing(ending) as may_land:
            if not may_land:
                return
            faults.reach("batch_begins")
            query = self._query.result(QUERY_SECONDS)
            ends = planned_ends(query, number)
            session = rows.sparkSession
            read = range_between(self._position, ends, self._topic_ids)
            records = Records(session, read, partial(read_offsets, session, self._run.spec, read))
            batch = WindowBatch(
                number,
                rows,
                records,
                dict(ends[self._topic]),
                planned_watermark_ms(query),
                planned_at_ms(query),
                partial(newest_event_ms, query),
            )
            began = time.perf_counter()
            asked = self._ask_topic_ids()

            def verify() -> None:
                held = {topic: TopicOffsets(topic_id=known, partitions={}) for topic, known in self._topic_ids.items()}
                check_topic_ids(held, asked.result())

            report = self._windows_lander.land(batch, verify)
            self._position = ends
            self.landed_batches += 1
            self._told.add(report, read, time.perf_counter() - began)
            self._told.show_windows(self._windows(query))
            if self._tracer is not None:
                self._tracer.add(report, query)
            faults.reach("batch_ends")
            self._end_in_a_flood()

    def _windows(self, query: StreamingQuery) -> WindowsProgress:
        rows, size = _state_of(query)
        return _progress(self._windows_lander.position).model_copy(update={"open_rows": rows, "state_bytes": size})


def _progress(position: WindowPosition, *, is_rebuilding: bool = False) -> WindowsProgress:
    return WindowsProgress(
        watermark_ms=position.watermark_ms,
        newest_ms=position.newest_ms,
        horizon=position.horizon,
        rebuilt_offsets=position.rebuilt_offsets,
        is_rebuilding=is_rebuilding,
    )


def _state_of(query: StreamingQuery) -> tuple[int | None, int | None]:
    """Return rows and bytes of memory of Spark's state, as of the batch before; None where Spark has not said it yet."""
    progress = query.lastProgress
    states = [] if progress is None else progress["stateOperators"]
    if not states:
        return None, None
    return sum(int(one["numRowsTotal"]) for one in states), sum(int(one["memoryUsedBytes"]) for one in states)


def _discard(rows: DataFrame, number: int) -> None:
    """Evaluate the rows, or the state would not be written: they are of windows that were closed before."""
    rows.write.format("noop").mode("overwrite").save()
