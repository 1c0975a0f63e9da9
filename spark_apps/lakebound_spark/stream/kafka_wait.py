"""Waiting for Kafka: an outage is waited out, and a topic that is not there is waited for."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from lakebound.control.situations import Situation, topic_missing
from lakebound.errors import BrokerUnavailableError, KafkaRefusalError, LakeboundError, MissingTopicError
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.run_spec import RunSpec
from lakebound.ledger.topics import TopicFacts
from lakebound.spec.real_time import REAL_TIME
from lakebound.tables.landed import landed_topics
from lakebound_spark.stream.signs import ProgressBoard
from lakebound_spark.stream.stop_signal import StopSignal

log = logging.getLogger(__name__)


class KafkaWait:
    """Asks Kafka until it has what the pipeline needs; the board says meanwhile what is waited for."""

    def __init__(
        self, run: RunSpec, facts: KafkaFacts, board: ProgressBoard, stop: StopSignal, is_dead: Callable[[], bool]
    ) -> None:
        """Ask nothing yet.

        Args:
            run: The orders.
            facts: Asks Kafka.
            board: For what is waited for.
            stop: Ends the wait.
            is_dead: Whether Spark's JVM has died, so that waiting is of no use.
        """
        self._run = run
        self._facts = facts
        self._board = board
        self._stop = stop
        self._is_dead = is_dead

    def __call__(self) -> dict[str, TopicFacts] | None:
        """Return Kafka's facts of the topics that are read; None when the application is asked to end meanwhile.

        Raises:
            BrokerUnavailableError: The outage lasts longer than ``limits.outage_seconds``.
            KafkaRefusalError: So long Kafka has refused the login, or what was asked.
        """
        deadline = time.monotonic() + self._run.spec.limits.outage_seconds
        landed: frozenset[str] | None = None
        while not self._stop.is_set():
            try:
                facts = self._facts.topics(self._run.spec.topics)
                if written := self._written_topics():
                    self._facts.topic_ids(written)
            except (BrokerUnavailableError, KafkaRefusalError) as exc:
                if time.monotonic() > deadline or self._is_dead():
                    raise
                self._wait_out(exc, str(exc))
            except MissingTopicError as exc:
                deadline = time.monotonic() + self._run.spec.limits.outage_seconds
                landed = landed_topics(self._run.spec, self._run.places) if landed is None else landed
                self._wait_out(exc, str(self._topic_missing(exc, landed)))
            else:
                self._board.wait_no_more("starting")
                return facts
        return None

    def _written_topics(self) -> list[str]:
        """Return the names of the topics that rows or bad records go to."""
        spec = self._run.spec
        bad = [spec.quarantine_topic] if self._run.freshness == REAL_TIME else []
        return [*(one.topic for one in spec.to_topics), *bad]

    def _wait_out(self, error: LakeboundError, sentence: str) -> None:
        if self._board.latest.waiting_for != sentence:
            log.warning("waiting: %s", sentence)
        self._board.wait_for(error, sentence)
        self._stop.wait(1.0)

    def _topic_missing(self, error: MissingTopicError, landed: frozenset[str]) -> Situation:
        spec, gone = self._run.spec, [error.topic]
        return topic_missing(gone, spec.connection.bootstrap_servers, spec.pipeline, [one for one in gone if one in landed])
