"""A bad deploy is made good in the held pipeline and beside the running stream, killed at every point and read all the while.

The wrong deploy drops records, changes values, and takes bad records for good and good ones for bad. The oracle knows today's
transform and the records. Short form: one kill. Long form: each named point, and 20 moments that chance chooses
(LAKEBOUND_CHAOS_SEED repeats a run), in tables with and without partitions.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import yaml
from tests.oracle import judge_quarantine, judge_table, quarantine_rows, table_rows
from tests.support.kafka.journal import Journal, value_hash
from tests.support.kafka.makers import topic_maker
from tests.support.kafka.producing import EVENT_SCHEMA, JournalingProducer, Load, as_json, event
from tests.support.streams.applications import applications, go_on
from tests.support.streams.command_line import answer, environment_of, killed
from tests.support.streams.landing_transforms import expected_tag_rows
from tests.support.streams.long_form import LONG_FORM
from tests.support.streams.pipelines import TAG_ROWS, Pipeline, make_pipeline

from lakebound.control.desired import change_desired
from lakebound.inspection.proof.collect import prove
from lakebound.local.broker import Broker
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600 if LONG_FORM else 900)]

DEPLOYED_WRONGLY, CHUNK, PARTITIONS = 2_400, 800, 4
PER_SECOND = 100 if LONG_FORM else 20
FIRST_NUMBER = 1_000_000
"""The load beside it counts from 0."""
NO_BODY_EVERY = 41
WRONG = "transforms.landing_transforms.tag_rows_wrongly"
WRONG_SCHEMA = "id BIGINT NOT NULL, body STRING, amount DOUBLE NOT NULL, tags ARRAY<STRING>"
"""It takes records without a body, and refuses those without an amount."""
# Entries without rows, by which each table says that the redo begins, come first.
POINTS = ["before_commit/redo", "after_commit/redo", "after_trim", "after_data_files"]
POINTS += [f"{point}/{of}" for point in ("before_commit", "after_commit") for of in ("recall", "delta", "iceberg")]
RANDOM_KILLS = 20
DEADLINE_SECONDS = 450.0


def kills() -> list[str]:
    """Return the faults, one after another."""
    if not LONG_FORM:
        return ["kill@after_commit/delta#2"]
    seed = int(os.environ.get("LAKEBOUND_CHAOS_SEED", time.time_ns() % 1_000_000))
    print(f"LAKEBOUND_CHAOS_SEED={seed}")
    dice = random.Random(seed)
    return [f"kill@{point}#1" for point in POINTS] + [
        f"kill@{dice.choice(POINTS)}#{dice.randint(1, 3)}" for _ in range(RANDOM_KILLS)
    ]


@dataclass
class Scene:
    """The rows of a bad deploy; the YAML on disk names the right transform and schema again."""

    pipeline: Pipeline
    journal: Journal
    producer: JournalingProducer
    refused_wrongly: set[str] = field(default_factory=set)

    def send(self, numbers: range) -> None:
        """Send records, of which some give no row, some several, and some are bad."""
        for number in numbers:
            columns = event(number)
            if number % NO_BODY_EVERY == 0:
                columns["body"] = None
            value = as_json(columns)
            is_bad = columns["body"] is None
            rows = [] if is_bad else expected_tag_rows(columns)
            if columns["amount"] is None:
                self.refused_wrongly.add(value_hash(value))
            fate = "quarantine" if is_bad else "table" if rows else "nothing"
            self.producer.send(self.pipeline.spec.topics[0], value, rows=rows, key=str(number).encode(), fate=fate)
        self.producer.flush()

    def judge(self) -> list[str]:
        """Return what the oracle finds wrong; what was refused wrongly stays in quarantine."""
        quarantined = Journal()
        quarantined.write(
            replace(record, fate="quarantine") if record.sha256 in self.refused_wrongly else record
            for record in self.journal.records
        )
        read, quarantine = self.pipeline.read, self.pipeline.spec.quarantine_table
        found = [judge_table(self.journal, table.id, table_rows(read(table))) for table in self.pipeline.spec.tables]
        found.append(judge_quarantine(quarantined, quarantine.id, quarantine_rows(read(quarantine))))
        return [str(judgement) for judgement in found if not judgement.is_clean]

    def records_with_rows(self, table: TableSpec) -> set[tuple[int, int]]:
        """Return where the records are that have rows in a table."""
        return {(row["_kafka"]["partition"], row["_kafka"]["offset"]) for row in self.pipeline.read(table).to_pylist()}


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
        try:
            while not self._ended.is_set():
                for table in self.pipeline.spec.tables:
                    self._look(table)
                self.looks += 1
                self._ended.wait(1.0)
        except Exception as exc:
            self.wrong.append(f"it ended: {type(exc).__name__}: {exc}")

    def end(self) -> None:
        """Read no more."""
        self._ended.set()

    def _look(self, table: TableSpec) -> None:
        read = self.pipeline.read(table)["_kafka"].to_pylist()
        places = Counter((one["partition"], one["offset"], one["ordinal"]) for one in read)
        twice = [place for place, times in places.items() if times > 1]
        lacking = self.always[table.id] - {place[:2] for place in places}
        if twice or lacking:
            self.wrong.append(f"{table.id}: twice {twice[:3]}, lacking {sorted(lacking)[:3]}")


@pytest.fixture(
    scope="module", params=[True, False] if LONG_FORM else [True], ids=lambda one: "partitioned" if one else "plain"
)
def scene(request: pytest.FixtureRequest, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Records have landed wrongly; the pipeline is held."""
    folder, journal = tmp_path_factory.mktemp("redo"), Journal()
    name = topic_maker(broker.bootstrap_servers)("redo", PARTITIONS)
    partitions = {"partition_by": ["tag"]} if request.param else {}
    tables = [{"format": of, "name": "events", **partitions} for of in ("delta", "iceberg")]
    right = make_pipeline(
        folder, broker.bootstrap_servers, name, transform=TAG_ROWS, freshness="500ms", tables=tables
    ).with_limits(max_records_per_batch=CHUNK)
    found = Scene(right, journal, JournalingProducer(broker.bootstrap_servers, journal))
    file = right.settings.home / "events.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    body = right.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    file.write_text(yaml.safe_dump(body))
    assert body["value"]["schema"] == EVENT_SCHEMA
    deployed = body | {"transform": WRONG, "value": body["value"] | {"schema": WRONG_SCHEMA}}
    wrong = replace(right, spec=PipelineSpec.model_validate(deployed))
    found.send(range(FIRST_NUMBER, FIRST_NUMBER + DEPLOYED_WRONGLY))
    with applications() as starter, environment_of(right.settings, file.parent):
        application = starter.start(wrong)
        application.wait_landed(journal.ends())
        assert application.stop().verdict == "stopped"
        assert len(found.judge()) == 3, "the deploy did no damage"
        change_desired(right.control, "held", reason="rows are wrong", by="test")
        yield found


def test_a_bad_deploy_is_redone_whatever_kills_it(scene: Scene) -> None:
    pipeline = scene.pipeline
    right = {record.place[1:] for record in scene.journal.records if record.fate == "table"}
    always = {table.id: scene.records_with_rows(table) & right for table in pipeline.spec.tables}
    assert all(always.values())
    reader = Reader(pipeline, always)
    watching = threading.Thread(target=reader.run, daemon=True)
    watching.start()
    try:
        _redo_and_kill(scene)
    finally:
        reader.end()
        watching.join(DEADLINE_SECONDS)
    assert reader.looks > 1 and not reader.wrong, reader.wrong[:5]
    wrong, proof = scene.judge(), prove(pipeline.spec, pipeline.places, deep=True)
    problems = [problem for table in proof.tables for problem in table.problems]
    assert not wrong, f"{wrong}; the proof says: {problems or proof.sentence}"
    assert proof.ok and not problems and (proof.missing, proof.duplicated) == (0, 0), problems


def _redo_and_kill(scene: Scene) -> None:
    """Redo under the hold until it is killed, and then beside the stream and more records."""
    pipeline, (first, *further) = scene.pipeline, kills()
    plans = _plans()
    assert _killed_or_done(plans[0], first) == "failed"
    _assert_proved(pipeline, first)
    go_on(pipeline)
    with applications() as starter:
        application = starter.start(pipeline)
        application.wait_running()
        died = 0
        with Load(scene.producer, pipeline.spec.topics[0], PER_SECOND, rows_of=expected_tag_rows):
            for faults in further:
                if _killed_or_done(plans[0], faults) == "failed":
                    died += 1
                else:
                    plans.reverse()  # what the other plan has done is for this one to do again
                _assert_proved(pipeline, faults)
            assert 2 * died >= len(further), "few faults were reached"
            done = answer("redo", *plans[0])
            assert done["result"]["state"] == "completed"
            if LONG_FORM:
                assert answer("redo", *plans[0])["result"]["chunks"] == 0, "there is nothing left to do"
        application.wait_landed(scene.journal.ends())
        assert application.stop().verdict == "stopped"


def _assert_proved(pipeline: Pipeline, after: str) -> None:
    proof = prove(pipeline.spec, pipeline.places, deep=True)
    assert proof.ok, f"after {after}: {[problem for table in proof.tables for problem in table.problems]}"


def _plans() -> list[list[str]]:
    """Return the arguments of two plans, of which one leaves out a record: what one has done, the other does again."""
    whole = _arguments(answer("redo", "events", "--from", "earliest"))
    less = _arguments(answer("redo", "events", "--from", _one_later(whole), "--to", whole[whole.index("--to") + 1]))
    return [whole, less] if LONG_FORM else [whole]


def _one_later(arguments: list[str]) -> str:
    ((topic, partitions),) = json.loads(arguments[arguments.index("--from") + 1]).items()
    return json.dumps({topic: partitions | {"0": partitions["0"] + 1}})


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
