"""Writes where each batch's milliseconds go, when the run was asked to (``lakebound run --trace``)."""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from lakebound.landing.trace import BatchSpans, append_spans, spark_spans
from lakebound_spark.batch.report import BatchReport

log = logging.getLogger(__name__)


class Tracer(StreamingQueryListener):
    """Hears of every trigger from Spark, and of every batch from the driver. A disk that is full must not stop the stream."""

    def __init__(self, session: SparkSession, query: str, path: Path) -> None:
        self._query = query
        self._path = path
        self._lock = threading.Lock()
        session.streams.addListener(self)

    def add(self, report: BatchReport) -> None:
        """Write what the driver did for a batch."""
        spans = BatchSpans(batch=report.batch, track="driver", records=report.counts.read, spans=tuple(report.spans))
        self._write(spans)

    def onQueryStarted(self, event: Any) -> None:
        """Nothing to write."""

    def onQueryProgress(self, event: Any) -> None:
        """Write how long each step of the trigger took; one without records has none."""
        progress = json.loads(event.progress.json)
        if progress["name"] != self._query:
            return
        if progress["numInputRows"] or "addBatch" in progress["durationMs"]:
            self._write(spark_spans(progress))

    def onQueryIdle(self, event: Any) -> None:
        """Nothing to write."""

    def onQueryTerminated(self, event: Any) -> None:
        """Nothing to write."""

    def _write(self, spans: BatchSpans) -> None:
        try:
            with self._lock:
                append_spans(self._path, spans)
        except OSError as exc:
            log.warning("the trace could not be written: %s", exc)
