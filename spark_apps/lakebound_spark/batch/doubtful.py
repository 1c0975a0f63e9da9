"""Records that the driver's decoder doubts: which of a slice they are, and what Spark's decoder makes of them alone.

So Spark's decoder stays the one place that says what is bad, and a bad record costs no other record its short way.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from lakebound.landing.direct_read import DirectReadRefusedError, RecordColumns
from lakebound.redaction import redacted
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound_spark.batch.decode import PROBLEM, SKIPPED, VALUE, Decoder
from lakebound_spark.batch.direct_decode import ValueDecoder
from lakebound_spark.batch.kept_plan import KeptPlan, kept
from lakebound_spark.batch.local_relation import LocalRelations, arrow_of
from lakebound_spark.batch.rescue import kafka_columns
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA
from lakebound_spark.batch.transform import KAFKA_SCHEMA

log = logging.getLogger(__name__)

MOST_DOUBTS = 4_096
"""Of one slice. Where there are more, Spark's lanes decode the batch, on all cores."""
_FEW = 4
"""Records that are not told apart any more: to find the doubtful one among them costs more than to have Spark decode all."""


@dataclass(frozen=True)
class Decoded:
    """What Spark made of records.

    Attributes:
        rows: Of those without a problem: the value's columns and ``_kafka``, as the driver's decoder gives them.
        positions: Which of the records these are.
        bad: Rows of the quarantine table.
        skipped: ``_kafka`` and ``_key`` of tombstones that give no row; None where nobody asks for them.
    """

    rows: pa.Table
    positions: list[int]
    bad: pa.Table
    skipped: pa.Table | None = None


class SparkDecoding:
    """Decodes records that the driver holds by Spark's decoder of one pipeline, whose plan is compiled once.

    Two records take 9 ms; Spark needs 50 to analyse and optimise four columns for them, and 105 for twenty.
    """

    def __init__(self, decoder: Decoder, *, keeps_skipped: bool = False) -> None:
        self._decoder = decoder
        self._keeps_skipped = keeps_skipped
        self._relation = LocalRelations(KAFKA_SCHEMA)
        self._known: _Known | None = None

    def __call__(self, session: SparkSession, records: RecordColumns) -> Decoded:
        """Return what Spark makes of the records.

        Args:
            session: That of the batch.
            records: Few.
        """
        try:
            found = self._decoded(session, kafka_columns(records))
        except Exception:
            self._known = None  # Expressions may keep what they had when they raised (``PlanKeeper.forget``).
            raise
        is_good = pc.is_null(found[PROBLEM])
        good = found.filter(is_good)
        values = pa.Table.from_struct_array(good["_parsed"].combine_chunks())
        rows = values.append_column(KAFKA_COLUMN, good[KAFKA_COLUMN])
        skipped = _skipped_rows(found) if self._keeps_skipped else None
        return Decoded(rows, np.flatnonzero(is_good.to_numpy()).tolist(), _quarantine_rows(found), skipped)

    def _decoded(self, session: SparkSession, rows: pa.Table) -> pa.Table:
        plan = self._plan(session, rows)
        if plan is None:
            return arrow_of(self._decoder.decode(self._relation(session, rows)))
        return plan.made(session, rows, self._relation)

    def _plan(self, session: SparkSession, rows: pa.Table) -> KeptPlan | None:
        """Return the decoder's plan in a session; None where it cannot be kept."""
        of = str(session._jsparkSession.sessionUUID())
        known = self._known
        if known is None or known.of != of or known.is_of_another_day:
            known = self._known = _Known(of, self._made_plan(session, rows))
        return known.plan

    def _made_plan(self, session: SparkSession, rows: pa.Table) -> KeptPlan | None:
        frame = self._relation(session, rows)
        try:
            plan = kept(frame, self._decoder.decode(frame))
            return plan if plan is None else plan.compiled_once(session)
        except Exception as exc:
            log.info("Spark plans the decoding of each slice with doubtful records: %s", redacted(exc))
            return None


@dataclass(frozen=True)
class _Known:
    """The decoder's plan.

    Attributes:
        of: The session.
        plan: None where it cannot be kept.
    """

    of: str
    plan: KeptPlan | None

    @property
    def is_of_another_day(self) -> bool:
        """Whether it was compiled, and that day has ended."""
        return self.plan is not None and self.plan.compiled is not None and self.plan.code is None


def _skipped_rows(found: pa.Table) -> pa.Table:
    """Return ``_kafka`` and ``_key`` of the tombstones among decoded records that give no row."""
    return found.filter(pc.equal(found[PROBLEM], SKIPPED)).select([KAFKA_COLUMN, "_key"])


def _quarantine_rows(found: pa.Table) -> pa.Table:
    """Return the bad ones of decoded records, as ``lakebound_spark.batch.quarantine.quarantine_columns`` does."""
    bad = found.filter(pc.not_equal(found[PROBLEM], SKIPPED))
    told = pc.split_pattern(bad[PROBLEM], "\t", max_splits=1)
    reason, error = (pc.list_element(told, part) for part in (0, 1))
    columns = [bad[KAFKA_COLUMN], reason, error, bad["_key"], bad[VALUE]]
    return pa.table(columns, names=QUARANTINE_SCHEMA.names).cast(QUARANTINE_SCHEMA)


def doubted(records: RecordColumns, decode: ValueDecoder) -> list[int]:
    """Return the positions of the records that the driver's decoder does not take, and perhaps of some beside them.

    Args:
        records: A slice, which it did not take as a whole.
        decode: The decoder. Whether it takes a record does not depend on the others.

    Raises:
        DirectReadRefusedError: There are too many.
    """
    found: list[int] = []
    parts = [(0, len(records))]
    while parts:
        first, end = parts.pop()
        if end - first <= _FEW:
            if not _is_taken(records, first, end, decode):
                found += range(first, end)
            if len(found) > MOST_DOUBTS:
                raise DirectReadRefusedError(f"the driver doubts more than {MOST_DOUBTS} records of {len(records)}")
            continue
        if not _is_taken(records, first, end, decode):
            middle = (first + end) // 2
            parts += [(middle, end), (first, middle)]
    return found


def _is_taken(records: RecordColumns, first: int, end: int, decode: ValueDecoder) -> bool:
    try:
        decode(records.at(range(first, end)))
    except DirectReadRefusedError:
        return False
    return True
