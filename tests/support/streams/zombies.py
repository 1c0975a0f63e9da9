"""An application that is suspended in the middle of a batch, superseded, and wakes up again: judged wherever the tables are."""

from __future__ import annotations

from tests.support.kafka.journal import Journal
from tests.support.kafka.producing import JournalingProducer, send_events
from tests.support.streams.applications import applications
from tests.support.streams.pipelines import Pipeline, assert_exactly_once
from tests.support.waiting import wait_until

TTL_SECONDS = 2.0


def assert_a_zombie_is_refused(pipeline: Pipeline, rule: str) -> None:
    """Suspend the pipeline's application in a batch, start another one, wake the first, and judge the tables.

    Args:
        pipeline: Its one topic is empty, and its tables are not there yet.
        rule: Of ``lakebound.faults``: where the first application suspends itself.
    """
    pipeline, journal = pipeline.with_limits(lease_ttl_seconds=TTL_SECONDS), Journal()
    producer, (name,) = JournalingProducer(pipeline.settings.kafka, journal), pipeline.spec.topics
    with applications() as starter:
        zombie = starter.start(pipeline, faults=rule)
        send_events(producer, name, range(300))
        zombie.wait_landed(journal.ends())
        send_events(producer, name, range(300, 800))
        zombie.wait_suspended()
        wait_until(lambda: not pipeline.lease_is_live, 30, "the end of the zombie's lease")

        successor = starter.start(pipeline)
        send_events(producer, name, range(800, 1000))
        successor.wait_landed(journal.ends())
        zombie.resume()
        outcome = zombie.ended()
        assert (outcome.verdict, zombie.process.returncode) == ("superseded", 4), zombie

        send_events(producer, name, range(1000, 1200))
        successor.wait_landed(journal.ends())
        assert successor.stop().verdict == "stopped", successor
    assert_exactly_once(pipeline, journal)
