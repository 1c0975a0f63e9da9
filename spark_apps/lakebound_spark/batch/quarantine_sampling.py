"""A few bad records of each batch, cut and escaped, for who looks at the pipeline: only where its YAML asks for it."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from lakebound.control.quarantine_samples import MOST_REASONS, QuarantineSample
from lakebound.landing.sample_recorder import SampleRecorder
from lakebound.operations.release.listing import escaped, shown_headers
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound_spark.batch.bad_reasons import column_names, short_reason

log = logging.getLogger(__name__)

_MOST_LOOKED_AT = 2000
"""Rows of one batch, the last ones: reasons that only others have get their samples from a later batch."""
_MOST_COLLECTED = 100
_COLLECTED_EVERY_SECONDS = 60.0
"""A batch that only the executors hold is asked for samples by a job of its own."""
_ERROR_BYTES, _KEY_BYTES, _VALUE_BYTES = 300, 60, 120
"""Shown at most, and as many characters at most after what is no text was escaped."""


class QuarantineSampling:
    """Takes samples of what goes to quarantine. Nothing here can fail a batch."""

    def __init__(self, recorder: SampleRecorder, per_reason: int, schema: StructType | None, parts: Sequence[str] = ()) -> None:
        """Take nothing yet.

        Args:
            recorder: Gets the samples.
            per_reason: How many of each reason.
            schema: Of the pipeline's values; None where they are texts or bytes.
            parts: The key and headers that become columns, as errors name them.
        """
        self._recorder = recorder
        self._per_reason = per_reason
        self._columns = column_names(schema, parts)
        self._collected_at = -_COLLECTED_EVERY_SECONDS

    def take(self, rows: pa.Table | DataFrame) -> None:
        """Take samples of rows of the quarantine table, which are about to be written."""
        try:
            if isinstance(rows, DataFrame):
                if time.monotonic() - self._collected_at < _COLLECTED_EVERY_SECONDS:
                    return
                self._collected_at = time.monotonic()
                rows = rows.limit(_MOST_COLLECTED).toArrow()
            self._recorder.add(list(self._samples(rows, time.time())))
        except Exception as exc:
            log.warning("no samples are taken of this batch's bad records: %s", type(exc).__name__)

    def _samples(self, rows: pa.Table, now: float) -> Iterator[QuarantineSample]:
        """Yield the last rows of each reason, of as many reasons as are kept; of other rows no more than the error is read."""
        rows = _cut(rows.slice(max(0, rows.num_rows - _MOST_LOOKED_AT)))
        chosen = self._chosen(rows["reason"].to_pylist(), rows["error"].to_pylist())
        for row, reason in zip(rows.take(pa.array(chosen, pa.int64())).to_pylist(), chosen.values(), strict=True):
            yield _sample(row, reason, now)

    def _chosen(self, reasons: list[str], errors: list[str | None]) -> dict[int, str]:
        """Return the reason of each row that is taken, by its number, the last one first."""
        found, counts, filled = dict[int, str](), Counter[str](), 0
        for number in range(len(reasons) - 1, -1, -1):
            reason = short_reason(reasons[number], errors[number] or "", self._columns)
            if counts[reason] == self._per_reason or (reason not in counts and len(counts) == MOST_REASONS):
                continue
            counts[reason] += 1
            found[number] = reason
            filled += counts[reason] == self._per_reason
            if filled == MOST_REASONS:
                break
        return found


def _cut(rows: pa.Table) -> pa.Table:
    """Return the rows with the beginnings of their texts: one byte more than is shown, so that a cut is seen."""
    return pa.table(
        {
            KAFKA_COLUMN: rows[KAFKA_COLUMN],
            "reason": rows["reason"],
            "error": pc.utf8_slice_codeunits(rows["error"], 0, _ERROR_BYTES + 1),
            "key": pc.binary_slice(rows["key"], 0, _KEY_BYTES + 1),
            "value": pc.binary_slice(rows["value"], 0, _VALUE_BYTES + 1),
            "value_bytes": pc.binary_length(rows["value"]),
            "headers": rows["headers"],
        }
    )


def _sample(row: dict[str, Any], reason: str, now: float) -> QuarantineSample:
    kafka = row[KAFKA_COLUMN]
    return QuarantineSample(
        reason=reason,
        at=now,
        topic=kafka["topic"],
        partition=kafka["partition"],
        offset=kafka["offset"],
        error=escaped(row["error"] or "", _ERROR_BYTES, _ERROR_BYTES) or "",
        key=escaped(row["key"], _KEY_BYTES, _KEY_BYTES),
        value=escaped(row["value"], _VALUE_BYTES, _VALUE_BYTES),
        value_bytes=row["value_bytes"],
        headers=shown_headers(row["headers"]),
    )
