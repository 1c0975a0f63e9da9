"""A bad deploy is made good beside the running stream: the redo is killed at every point, repeated, and read all the while.

The oracle knows today's transform and the records. Short form: two kills. Long form: each named point in each format, and 20
moments that chance chooses (LAKEBOUND_CHAOS_SEED repeats a run).
"""

from __future__ import annotations

import os
import random
import shlex
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import topic_maker
from tests.support.kafka.producing import JournalingProducer, Load, as_json, event
from tests.support.streams.applications import applications
from tests.support.streams.command_line import answer, environment_of, killed
from tests.support.streams.landing_transforms import expected_tag_rows
from tests.support.streams.long_form import LONG_FORM
from tests.support.streams.pipelines import TAG_ROWS, Pipeline, assert_exactly_once, make_pipeline

from lakebound.inspection.proof.collect import prove
from lakebound.local.broker import Broker

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600 if LONG_FORM else 900)]

DEPLOYED_WRONGLY, CHUNK, PER_SECOND, PARTITIONS = 2_400, 400, 100, 4
WRONG = "transforms.landing_transforms.tag_rows_wrongly"
POINTS = ["after_trim", "after_data_files"]
POINTS += [f"{point}/{of}" for point in ("before_commit", "after_commit") for of in ("delta", "iceberg")]
RANDOM_KILLS = 20
DEADLINE_SECONDS = 450.0


def kills() -> list[str]:
    """Return the faults, one after another."""
    if not LONG_FORM:
        return ["kill@after_data_files#1", "kill@after_commit/delta#2"]
    seed = int(os.environ.get("LAKEBOUND_CHAOS_SEED", time.time_ns() % 1_000_000))
    print(f"LAKEBOUND_CHAOS_SEED={seed}")
    dice = random.Random(seed)
    return [f"kill@{point}#1" for point in POINTS] + [
        f"kill@{dice.choice(POINTS)}#{dice.randint(1, 2)}" for _ in range(RANDOM_KILLS)
    ]


@dataclass
class Scene:
    """The rows of a bad deploy; the YAML on disk names the right transform again."""

    pipeline: Pipeline
    journal: Journal
    producer: JournalingProducer

    def send(self, numbers: range) -> None:
        """Send records, of which some give no row, some several."""
        for number in numbers:
            columns = event(number)
            rows = expected_tag_rows(columns)
            key, fate = str(number).encode(), "table" if rows else "nothing"
            self.producer.send(self.pipeline.spec.topics[0], as_json(columns), rows=rows, key=key, fate=fate)
        self.producer.flush()


@dataclass
class Reader:
    """Reads a table all the time; within one table no row is seen twice, and no record that has rows is seen without any."""

    pipeline: Pipeline
    always: dict[str, set[tuple[int, int]]]
    looks: int = 0
    wrong: list[str] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Read until ``end``."""
        while not self._ended.is_set():
            for table in self.pipeline.spec.tables:
                read = self.pipeline.read(table).to_pylist()
                places = Counter((r["_kafka"]["partition"], r["_kafka"]["offset"], r["_kafka"]["ordinal"]) for r in read)
                twice = [place for place, times in places.items() if times > 1]
                seen = {place[:2] for place in places}
                lacking = self.always[table.id] - seen
                if twice or lacking:
                    self.wrong.append(f"{table.id}: twice {twice[:3]}, lacking {sorted(lacking)[:3]}")
            self.looks += 1

    def end(self) -> None:
        """Read no more."""
        self._ended.set()


@pytest.fixture(scope="module")
def scene(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """2,400 records have landed wrongly; no application runs."""
    folder, journal = tmp_path_factory.mktemp("redo"), Journal()
    name = topic_maker(broker.bootstrap_servers)("redo", PARTITIONS)
    right = make_pipeline(folder, broker.bootstrap_servers, name, transform=TAG_ROWS, freshness="500ms").with_limits(
        max_records_per_batch=CHUNK
    )
    wrong = Pipeline(right.spec.model_copy(update={"transform": WRONG}), right.settings)
    found = Scene(right, journal, JournalingProducer(broker.bootstrap_servers, journal))
    file = right.settings.home / "events.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(right.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)))
    found.send(range(DEPLOYED_WRONGLY))
    with applications() as starter, environment_of(right.settings, file.parent):
        application = starter.start(wrong)
        application.wait_landed(journal.ends())
        assert application.stop().verdict == "stopped"
        assert any(not judgement.is_clean for judgement in right.judge(journal)), "the deploy did no damage"
        yield found


def test_a_bad_deploy_is_redone_beside_the_stream_whatever_kills_it(scene: Scene) -> None:
    pipeline, journal = scene.pipeline, scene.journal
    both = {table.id: _records(pipeline, table) & _expected(journal) for table in pipeline.spec.tables}
    assert all(both.values())
    reader = Reader(pipeline, both)
    watching = threading.Thread(target=reader.run, daemon=True)
    with applications() as starter:
        application = starter.start(pipeline)
        application.wait_running()
        with Load(scene.producer, pipeline.spec.topics[0], PER_SECOND, rows_of=expected_tag_rows):
            watching.start()
            plan = answer("redo", "events", "--from", "earliest")
            wanted = _arguments(plan)
            died = 0
            for faults in kills():
                result = _killed_or_done(wanted, faults)
                died += result == "failed"
                assert prove(pipeline.spec, pipeline.places, deep=True).ok, f"after {faults}"
            assert died, "no fault was reached"
            done = answer("redo", *wanted)
            assert done["result"] is None or done["result"]["state"] == "completed"
            again = answer("redo", *wanted)
            assert again["result"]["chunks"] == 0, "there is nothing left to do"
        application.wait_landed(journal.ends())
        assert application.stop().verdict == "stopped"
    reader.end()
    watching.join(DEADLINE_SECONDS)
    assert reader.looks > 1 and not reader.wrong, reader.wrong[:5]
    assert_exactly_once(pipeline, journal)


def _arguments(plan: dict[str, Any]) -> list[str]:
    """Return what the printed command says, without ``lakebound redo``."""
    return shlex.split(plan["apply"])[2:]


def _killed_or_done(wanted: list[str], faults: str) -> str:
    """Run the redo with a fault that is perhaps not reached any more, and return how it ended."""
    try:
        said = killed("redo", *wanted, faults=faults, timeout_seconds=DEADLINE_SECONDS)
    except AssertionError as exc:
        if "exit code 0" in str(exc):
            return "completed"
        raise
    return str(said["result"]["state"])


def _records(pipeline: Pipeline, table: Any) -> set[tuple[int, int]]:
    return {(row["_kafka"]["partition"], row["_kafka"]["offset"]) for row in pipeline.read(table).to_pylist()}


def _expected(journal: Journal) -> set[tuple[int, int]]:
    """Return where the records are that have rows by today's transform."""
    return {record.place[1:] for record in journal.records if record.fate == "table"}
