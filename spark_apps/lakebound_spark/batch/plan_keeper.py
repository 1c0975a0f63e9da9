"""When a function is called: its plan of the last call serves for two seconds, and is renewed beside the batches.

To call a function of DataFrames costs more than to compute a few hundred rows by it: each of its expressions crosses py4j, and
each of its steps is analysed. So its plan is kept where two calls one after the other have made the same of the same rows. What
it reads besides its rows may be older by these two seconds, such as a table, or the day that Python says; reference data of
the YAML is never.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from threading import Thread
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakebound.redaction import redacted
from lakebound_spark.batch.kept_plan import KeptPlan, analysed, are_same, kept, make_the_same
from lakebound_spark.batch.narrow_plan import narrowed
from lakebound_spark.batch.transform import Transform

log = logging.getLogger(__name__)

_KEPT_SECONDS = 2.0
_RENEWED_SECONDS = 1.5
"""So old is a plan that is renewed beside the batches: the call and the tables take less than the half second that is left."""
_MOST_DIFFERENT = 3
"""Calls in a row that may make another plan before no more plans are compared: the function depends on something else."""

Beside = Callable[[SparkSession, Callable[[], Any]], Future[Any]]
"""Begins some work, and returns what will hold its result."""


@dataclass(frozen=True)
class _Known:
    """What the last call of the function has shown.

    Attributes:
        of: The session, and the versions of the reference data.
        since: When the function was called, in seconds of the keeper's clock.
        plan: The plan that it made; None where no rows can be replaced in it.
        used: The same, or what is left of it where the columns that it only passes on stay in Python.
        with_tables: That with small tables in it that it reads, compiled; None where they were not read, or cannot be.
        tables: Those tables.
        is_read: Whether these tables are of this call, and not of the one before.
        is_sure: Whether the call before has made the same of the same rows.
        different: Calls in a row until this one that have made another plan than the one before.
    """

    of: tuple[str, Mapping[str, str]]
    since: float
    plan: KeptPlan | None = None
    used: KeptPlan | None = None
    with_tables: KeptPlan | None = None
    tables: Sequence[Any] | None = None
    is_read: bool = False
    is_sure: bool = False
    different: int = 0


class PlanKeeper:
    """Keeps the plan that one function made last. Used by one thread at a time; no two calls of the function run at once."""

    def __init__(
        self,
        function: Transform,
        versions: Callable[[], Mapping[str, str]],
        *,
        monotonic: Callable[[], float] = time.monotonic,
        beside: Beside | None = None,
    ) -> None:
        """Call nothing yet.

        Args:
            function: The pipeline's.
            versions: The versions of the reference data that it reads at present, by name.
            monotonic: Seconds.
            beside: Calls the function while batches use its plan; by default a thread does.
        """
        self._function = function
        self._versions = versions
        self._monotonic = monotonic
        self._beside = beside or _in_a_thread
        self._known: _Known | None = None
        self._renewal: Future[Any] | None = None

    def plan(self, session: SparkSession, *, by_job: bool, records: Callable[[], DataFrame]) -> KeptPlan | None:
        """Return the plan of the next rows; None where the function is to be called.

        Args:
            session: That of the rows.
            by_job: Spark makes a scan of them, where their plan is not compiled.
            records: Returns some of them, or all, for a call beside the batches.
        """
        of, now = (str(session._jsparkSession.sessionUUID()), dict(self._versions())), self._monotonic()
        known = self._known_of(of, now)
        if known.used is None or not _is_usable(known, now):
            return None
        if _is_left_to_jobs(session):
            return known.used
        if not known.is_read:
            known = self._known = _with_tables(known, session, by_job=by_job)
        if self._renewal is None and now >= known.since + _RENEWED_SECONDS:
            self._renewal = self._beside(session, lambda: self._renewed(known, records(), by_job=by_job))
        if by_job and (known.with_tables is None or known.with_tables.code is None):
            return known.used
        return known.with_tables or known.used

    def forget(self, session: SparkSession) -> None:
        """Have the function called for the next rows: computing some by its plan has failed.

        Some of Spark's expressions keep what they had when they raised, such as the keys of a map that had one twice. In a
        query they end with the task; here they would give it to the next rows. The plan stays to be compared with.

        Args:
            session: That of the rows. Where it leaves them to jobs, tasks had expressions of their own.
        """
        if self._known is None or _is_left_to_jobs(session):
            return
        self._renewal = None
        self._known = _Known(self._known.of, self._known.since, self._known.plan, different=self._known.different)

    def called(self, records: DataFrame) -> DataFrame:
        """Call the function, and look at its plan where that may be kept."""
        assert self._known is not None, "it was asked for a plan before"
        if self._known.different >= _MOST_DIFFERENT:
            return self._function(records)
        output, self._known = self._called(self._known, records)
        return output

    def _known_of(self, of: tuple[str, Mapping[str, str]], now: float) -> _Known:
        """Return what is known at present; what is being found out is waited for where batches cannot do without it."""
        if self._known is None or self._known.of != of:
            # A call that is not over yet is of no use any more, and its function is not called before it is over.
            self._renewal = None
            self._known = _Known(of, now, different=0 if self._known is None else self._known.different)
        elif self._renewal is not None and (self._renewal.done() or not _is_usable(self._known, now)):
            self._known = self._outcome_of(self._renewal, self._known)
            self._renewal = None
        return self._known

    def _outcome_of(self, renewal: Future[Any], known: _Known) -> _Known:
        """Wait for a call beside the batches, and return what is known then."""
        try:
            found: _Known = renewal.result()
            return found
        except Exception as exc:
            # Where it was not by chance, the next call raises it, in the batch that needs it.
            log.info("the function is called by the next batch, as it failed beside the batches: %s", redacted(exc))
            return replace(known, is_sure=False)

    def _renewed(self, before: _Known, records: DataFrame, *, by_job: bool) -> _Known:
        """Call the function, read the tables that it reads, and return what is known then."""
        _, known = self._called(before, records)
        # Newer reference data may have come while the function was called.
        known = replace(known, is_sure=known.is_sure and dict(self._versions()) == before.of[1])
        return _with_tables(known, records.sparkSession, by_job=by_job) if known.is_sure else known

    def _called(self, before: _Known, records: DataFrame) -> tuple[DataFrame, _Known]:
        """Call the function; return its output, and what the call shows."""
        since = self._monotonic()
        output = self._function(records)
        try:
            return output, _shown(before, since, records, output)
        except Exception as exc:
            log.info("the function is called for each slice, as its plan cannot be kept: %s", redacted(exc))
            return output, _Known(before.of, since, different=_MOST_DIFFERENT)


def _shown(before: _Known, since: float, records: DataFrame, output: DataFrame) -> _Known:
    """Return what a call of the function shows, beside what the call before has shown."""
    plan = kept(records, output)
    if plan is None:
        return _Known(before.of, since, different=_MOST_DIFFERENT)
    if before.plan is None:
        return _Known(before.of, since, plan, different=before.different)
    if not make_the_same(before.plan.over(records.sparkSession, analysed(records)), output):
        return _Known(before.of, since, plan, different=before.different + 1)
    used = narrowed(records.sparkSession, plan)
    return _Known(before.of, since, plan, used, before.with_tables, before.tables, is_sure=True)


def _is_usable(known: _Known, now: float) -> bool:
    return known.is_sure and now < known.since + _KEPT_SECONDS


def _with_tables(known: _Known, session: SparkSession, *, by_job: bool) -> _Known:
    """Return the same with the small tables read that the plan reads; as it was for a job that reads them by itself."""
    before = known.with_tables
    if known.used is None or (by_job and before is not None and before.compiled is None):
        return known
    try:
        tables = known.used.tables_now(session)
        # To make a lookup takes longer than to read the table. The plan before makes the same of the same rows.
        is_current = before is not None and (before.compiled is None or before.code is not None)
        if is_current and known.tables is not None and are_same(tables, known.tables):
            return replace(known, is_read=True)
        with_tables = _compiled(known.used.with_tables(session, tables), session)
        return replace(known, with_tables=with_tables, tables=tables, is_read=True)
    except Exception as exc:
        log.info("a table that the function reads is read for each slice: %s", redacted(exc))
        return replace(known, with_tables=None, tables=None, is_read=True)


def _compiled(plan: KeptPlan, session: SparkSession) -> KeptPlan:
    try:
        return plan.compiled_once(session)
    except Exception as exc:
        log.info("a plan is not compiled, and Spark plans each slice: %s", redacted(exc))
        return plan


def _is_left_to_jobs(session: SparkSession) -> bool:
    """Whether Spark is not to evaluate local relations while it plans: then a lookup would raise where a join does not."""
    return "ConvertToLocalRelation" in str(session.conf.get("spark.sql.optimizer.excludedRules", ""))


def _in_a_thread(session: SparkSession, work: Callable[[], Any]) -> Future[Any]:
    """Begin some work in a thread that works in the same session. Its jobs belong to no batch."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            SparkSession._get_j_spark_session_class(session._jvm).setActiveSession(session._jsparkSession)
            future.set_result(work())
        except BaseException as exc:
            future.set_exception(exc)

    try:
        # Not one of a pool: the process does not wait for it when it ends.
        Thread(target=run, name="renews-a-plan", daemon=True).start()
    except RuntimeError as exc:
        future.set_exception(exc)
    return future
