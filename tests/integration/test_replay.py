"""A backfill beside the running stream, killed on its way, and rows that somebody deleted; the oracle judges.

In the long form alone: in the short one test_stored_operations.py replays what somebody deleted, and side jobs that are cut
short, and that die, are in tests/local/operations (test_replay_tables.py and test_replay_cli.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import topic_maker
from tests.support.kafka.producing import BAD_EVERY, JournalingProducer, Load, as_json, event
from tests.support.streams.applications import RunningApplication, applications
from tests.support.streams.command_line import answer, environment_of, killed
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.pipelines import ANY_LANE, Pipeline, assert_exactly_once, make_pipeline

from lakebound.control.folder import ControlFolder
from lakebound.control.incidents import read_incidents
from lakebound.control.person import operating_system_user
from lakebound.inspection.proof.collect import prove
from lakebound.local.broker import Broker
from lakebound.tables.places import places_of

pytestmark = [pytest.mark.integration, only_in_long_form]

OLDER, CHUNK, PER_SECOND = 1200, 400, 100
"""Three pieces of what is older: the keys spread it over the topic's four partitions."""
DEADLINE_SECONDS = 450.0


@dataclass
class Backfill:
    """A pipeline that began at the end of its topic, and what is older there."""

    pipeline: Pipeline
    journal: Journal
    producer: JournalingProducer
    application: RunningApplication

    def answer(self, *arguments: str) -> dict[str, Any]:
        """Run the command in this process, check that it ends well, and return what it says."""
        said: dict[str, Any] = answer("replay", "events", *arguments)
        return said

    def killed(self, *arguments: str, faults: str) -> dict[str, Any]:
        """Run the command as a process, whose application the faults kill, and return what it says."""
        return killed("replay", "events", *arguments, faults=faults, timeout_seconds=DEADLINE_SECONDS)

    def missing(self) -> int:
        """Return what the deep proof misses."""
        return prove(self.pipeline.spec, places_of(self.pipeline.settings, "default"), deep=True).missing


@pytest.fixture(scope="module")
def backfill(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backfill]:
    """The stream runs; nothing of what is older has landed."""
    folder, name, journal = tmp_path_factory.mktemp("replay"), topic_maker(broker.bootstrap_servers)("replay"), Journal()
    producer = JournalingProducer(broker.bootstrap_servers, journal)
    for number in range(OLDER):
        columns = event(number)
        bad = number % BAD_EVERY == 0
        producer.send(name, as_json(columns)[: -1 if bad else None], rows=[] if bad else [columns], key=str(number).encode())
    producer.flush()
    # The replay reads with Spark, whichever lane the stream takes: it has no direct one.
    pipeline = make_pipeline(
        folder, broker.bootstrap_servers, name, lane=ANY_LANE, start_from="latest", freshness="1s"
    ).with_limits(max_records_per_batch=CHUNK)
    file = pipeline.settings.home / "events.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(pipeline.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)))
    with applications() as starter, environment_of(pipeline.settings, file.parent):
        application = starter.start(pipeline)
        application.wait_running()
        yield Backfill(pipeline, journal, producer, application)


def test_a_backfill_beside_the_stream_killed_and_repeated_lands_everything_once(backfill: Backfill) -> None:
    pipeline, journal = backfill.pipeline, backfill.journal
    with Load(backfill.producer, pipeline.spec.topics[0], PER_SECOND):
        wanted = ("--from", "earliest")
        assert_died(backfill.killed(*wanted, faults="kill@after_data_files#1"))
        assert backfill.missing() == 2 * OLDER, "what was announced and has not landed is missing, in both tables"
        wanted = ("--missing",)
        assert_died(backfill.killed(*wanted, faults="kill@after_commit/delta#1,hold@before_commit/iceberg#1"))
        assert OLDER < backfill.missing() < 2 * OLDER, "all of it is missing in one table, and what is left in the other"

        done = backfill.answer("--missing")
        assert done["result"]["state"] == "completed"
        delta, iceberg = (done["result"]["tables"][table]["rows"] for table in ("delta:events", "iceberg:events"))
        assert 0 < delta < iceberg == OLDER - OLDER // BAD_EVERY, "not killed between the commits of the two tables"
        again = backfill.answer("--from", "earliest")
        assert again["result"] is None and again["plan"]["wanted"] == {}
    backfill.application.wait_landed(journal.ends())
    assert backfill.application.stop().verdict == "stopped"
    said = backfill.application.log.read_text(errors="replace")
    assert "the query ended and starts again" not in said, said
    assert_exactly_once(pipeline, journal)


def assert_died(answer: dict[str, Any]) -> None:
    """The application was killed before its first piece was in both tables."""
    died = answer["result"]
    assert (died["state"], died["chunks_done"]) == ("failed", 0) and "the application died" in died["reason"]


def test_rows_that_somebody_deleted_land_again(backfill: Backfill) -> None:
    pipeline, journal = backfill.pipeline, backfill.journal
    places = places_of(pipeline.settings, "default")
    DeltaTable(str(places.delta_path(pipeline.spec.tables[0]))).delete("_kafka.partition = 1 and _kafka.offset < 200")
    DeltaTable(str(places.delta_path(pipeline.spec.quarantine_table))).delete("_kafka.partition = 0")
    control = ControlFolder(pipeline.settings.home, pipeline.spec.pipeline)
    deleted = backfill.missing()
    assert deleted > 150

    done = backfill.answer("--missing")
    taken = {share["table"]: share["takes_back"] for share in done["plan"]["tables"]}
    assert taken["delta:events"] and taken["iceberg:events"], "the bad records are missing from both"
    took_back = next(one for one in read_incidents(control) if "taken back" in one.what)
    assert (took_back.asked_by, took_back.approved_by) == (operating_system_user(),) * 2
    assert done["result"]["state"] == "completed" and done["result"]["quarantined"] > 0
    assert_exactly_once(pipeline, journal)
