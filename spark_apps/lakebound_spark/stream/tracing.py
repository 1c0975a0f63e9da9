"""Writes where each batch's milliseconds go, when the run was asked to (``lakebound run --trace``)."""

from __future__ import annotations

import logging
from pathlib import Path

from pyspark.sql.streaming.query import StreamingQuery

from lakebound.landing.trace import BatchSpans, append_spans, spark_spans
from lakebound_spark.batch.report import BatchReport

log = logging.getLogger(__name__)


class Tracer:
    """Writes the spans of each batch. A disk that is full must not stop the stream.

    It asks Spark about the batch before, instead of listening: what PySpark's listener does for each trigger takes half of a
    core at 15 batches per second, which is then missing where the batch's time is measured.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last_of_spark = -1

    def add(self, report: BatchReport, query: StreamingQuery) -> None:
        """Write what the driver did for a batch that is about to end, and what Spark did for the one before."""
        progress = query.lastProgress
        if progress is not None and progress["batchId"] > self._last_of_spark:
            self._last_of_spark = progress["batchId"]
            self._write(spark_spans(progress))
        spans = BatchSpans(batch=report.batch, track="driver", records=report.counts.read, spans=tuple(report.spans))
        self._write(spans)

    def _write(self, spans: BatchSpans) -> None:
        try:
            append_spans(self._path, spans)
        except OSError as exc:
            log.warning("the trace could not be written: %s", exc)
