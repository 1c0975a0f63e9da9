"""A query that is started again from the ledger when it fails: the next attempt reads what the last one left behind."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Protocol

from lakebound.errors import FilesOutdatedError, KafkaRefusalError, LeaseLostError
from lakebound.formats.registered import NewSchemasError
from lakebound.landing.kafka_errors import refusal_in
from lakebound.ledger.marks import NextOffsets
from lakebound.ledger.topics import TopicFacts
from lakebound.redaction import redacted
from lakebound.spec.connection import ConnectionSpec
from lakebound.tables.commit import BatchOverlapError
from lakebound.tables.outages import is_outage
from lakebound_spark.session import SessionStart
from lakebound_spark.stream.ending import is_refusal, verdict_on
from lakebound_spark.stream.signs import ProgressBoard
from lakebound_spark.stream.stop_signal import StopSignal

log = logging.getLogger(__name__)

_FRESH_STARTS = 3
"""Queries in a row that may fail without landing a batch before the application gives up."""

_FREE_RESTARTS = 3
"""Queries in a row that may end for schemas that records name without landing a batch before the next one waits: of key and
value, and of what a registry has had for a moment only. More of them get nowhere."""


class Stream(Protocol):
    """What runs one query."""

    landed_batches: int

    def run(self, start: NextOffsets, checkpoint: Path) -> None:
        """Run the query from there in a fresh checkpoint folder; return when it ended gracefully, and raise what ended it."""


@dataclass(frozen=True)
class RepeatedQuery:
    """One of an application's queries.

    Attributes:
        name: By which the application tells it from its others.
        stream: Runs the query.
        connection: Kafka's.
        planned: Returns where to start, as the ledgers and Kafka's facts say.
        reopen: Reads the ledgers again.
        wait_for_kafka: Returns Kafka's facts; None when the application is asked to end meanwhile.
        has_died: Whether an error comes of Spark's JVM, which is not there any more.
        told: Returns an error as it is told: where a disk is full, with the disk.
        board: For failures.
        stop: Is set when the application is to end.
        checkpoints: Folder for Spark's files; each attempt of each query has one of its own there, which nothing is read from
            later.
    """

    name: str
    stream: Stream
    connection: ConnectionSpec
    planned: Callable[[dict[str, TopicFacts]], NextOffsets]
    reopen: Callable[[], None]
    wait_for_kafka: Callable[[], dict[str, TopicFacts] | None]
    has_died: Callable[[BaseException], bool]
    told: Callable[[Exception], Exception]
    board: ProgressBoard
    stop: StopSignal
    checkpoints: Path

    def run(self, facts: dict[str, TopicFacts]) -> None:
        """Run the query, each time in a fresh checkpoint from the ledger, until it ends gracefully.

        Args:
            facts: Kafka's, for the first attempt.

        Raises:
            LeaseLostError: Another application has taken over.
            LakeboundError: A refusal, which the next attempt would meet again.
            Exception: What ended the last of too many attempts in a row.
        """
        failures, attempt, in_vain = 0, 0, 0
        found: dict[str, TopicFacts] | None = facts
        while found is not None and not self.stop.is_set():
            checkpoint = self.checkpoints / f"{self.name.replace(' ', '-')}-{attempt}"
            landed = self.stream.landed_batches
            try:
                if attempt:
                    self.reopen()  # What is away here is waited for as what the query meets.
                start = self.planned(found)
                log.info("the ledger says: start at %s (%s)", start, self.name)
                self.stream.run(start, checkpoint)
                return
            except NewSchemasError as new:
                log.info("the query ends for schemas that are not read yet, and goes on with them (%s)", self.name)
                attempt += 1
                in_vain = 0 if self.stream.landed_batches > landed else in_vain + bool(new.ids)
                self._wait_in_vain(in_vain)
                found = self.wait_for_kafka()
                continue
            except Exception as caught:
                failures = 1 if self.stream.landed_batches > landed else failures + 1
                self._raise_last(caught, failures)
            finally:
                shutil.rmtree(checkpoint, ignore_errors=True)
            attempt += 1
            self.stop.wait(min(2.0**failures / 2, 10.0))
            found = self.wait_for_kafka()

    def _wait_in_vain(self, in_vain: int) -> None:
        """Wait where queries end again and again for schemas that records name, and none of them lands a batch."""
        if in_vain > _FREE_RESTARTS:
            log.warning("records name schemas that are not read yet, %d times in a row (%s)", in_vain, self.name)
            self.stop.wait(min(2.0 ** (in_vain - _FREE_RESTARTS) / 2, 10.0))

    def _raise_last(self, caught: Exception, failures: int) -> None:
        """Note a failure, or raise it where no further attempt follows."""
        error = refusal_in(self.connection, caught) or caught
        if isinstance(error, LeaseLostError) or (is_refusal(error) and not isinstance(error, KafkaRefusalError)):
            raise caught
        if self.has_died(caught) or (failures > _FRESH_STARTS and not _comes_right(error)):
            if error is caught:
                raise error
            raise error from caught
        log.warning(
            "the query ended and starts again from the ledger (%s, %d in a row): %s", self.name, failures, redacted(error)
        )
        told = self.told(error)
        self.board.fail(self.name, told, redacted(told))


def _comes_right(error: BaseException) -> bool:
    return isinstance(error, (BatchOverlapError, FilesOutdatedError)) or is_outage(error)


class QueriesTogether:
    """An application's queries. When one ends, the others are asked to end, too."""

    def __init__(
        self,
        queries: Sequence[RepeatedQuery],
        session: SessionStart,
        stop: StopSignal,
        told: Callable[[Exception], Exception],
    ) -> None:
        """Run nothing yet.

        Args:
            queries: The first one runs in the thread that runs them.
            session: Spark's.
            stop: Is set when the application is to end.
            told: Returns the error by which the end of the application is judged.
        """
        self._queries = queries
        self._session = session
        self._stop = stop
        self._told = told
        self._errors: list[Exception] = []
        self.stuck: str | None = None
        """The query that ended the others and had landed nothing; None: no other one is kept from landing by it."""

    def run(self, facts: dict[str, TopicFacts]) -> None:
        """Run them until each has ended.

        Args:
            facts: Kafka's, for the first attempts.

        Raises:
            Exception: What ended one of them.
        """
        first, *others = self._queries
        if not others:
            first.run(facts)
            return
        threads = [Thread(target=self._run_beside, args=(one, facts), name=one.name) for one in others]
        for thread in threads:
            thread.start()
        self._run(first, facts)
        for thread in threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _run_beside(self, query: RepeatedQuery, facts: dict[str, TopicFacts]) -> None:
        self._session.wait()  # is the active session of this thread from now on
        self._run(query, facts)

    def _run(self, query: RepeatedQuery, facts: dict[str, TopicFacts]) -> None:
        try:
            query.run(facts)
        except Exception as exc:
            log.exception("the query ended (%s)", query.name)
            if not self._stop.is_set() and not query.stream.landed_batches:
                self.stuck = query.name
            self._errors.append(exc)
            self._stop.set(*verdict_on(self._told(exc)))
        else:
            self._stop.set("completed", "nothing more to read")
