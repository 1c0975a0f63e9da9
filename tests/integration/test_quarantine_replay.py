"""Quarantined records, half of which a new schema fixes, beside the running stream; the release is tried, killed and repeated.

In the long form alone: in the short one test_keys_and_headers.py releases records beside what landed, and
tests/local/operations has trials, and rows that decide what is still to be landed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import yaml
from tests.oracle import judge_quarantine, judge_table, quarantine_rows, table_rows
from tests.support.kafka.journal import Journal, value_hash
from tests.support.kafka.makers import topic_maker
from tests.support.kafka.producing import JournalingProducer, as_json, event
from tests.support.streams.applications import RunningApplication, applications
from tests.support.streams.command_line import answer, environment_of, killed
from tests.support.streams.landing_transforms import expected_tag_rows
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.pipelines import TAG_ROWS, Pipeline, make_pipeline

from lakebound.inspection.proof.collect import prove
from lakebound.local.broker import Broker
from lakebound.tables.places import places_of

pytestmark = [pytest.mark.integration, only_in_long_form]

FIXED, HOPELESS, GOOD, CHUNK = 5_000, 5_000, 500, 4_000
PARTITIONS = 4
"""The held records are spread evenly over them: a release takes a share of each in a piece."""
KILLS = ("kill@after_data_files#1", "kill@after_commit/delta#2")
"""The last of them leaves a piece of the Iceberg table's alone, and a further piece of both."""
STRICT = "id BIGINT NOT NULL, body STRING NOT NULL, amount DOUBLE NOT NULL, tags ARRAY<STRING>"
MILD = STRICT.replace("amount DOUBLE NOT NULL", "amount DOUBLE")
DEADLINE_SECONDS = 450.0


@dataclass
class Scene:
    """The stream runs with the strict schema; the commands read a file that says the mild one."""

    pipeline: Pipeline
    landed: Journal
    producer: JournalingProducer
    application: RunningApplication
    fixed: set[str]

    def answer(self, *arguments: str) -> dict[str, Any]:
        """Run the command in this process, check that it ends well, and return what it says."""
        said: dict[str, Any] = answer("quarantine", "events", *arguments)
        return said

    def killed(self, *arguments: str, faults: str) -> dict[str, Any]:
        """Run the command as a process, whose application the faults kill, and return what it says."""
        return killed("quarantine", "events", *arguments, faults=faults, timeout_seconds=DEADLINE_SECONDS)

    def send_good(self, numbers: range) -> None:
        """Send records that land at once."""
        for number in numbers:
            columns = event(number, amount=1.5)
            rows = expected_tag_rows(columns)
            self.producer.send(self.pipeline.spec.topics[0], as_json(columns), rows=rows, fate="table" if rows else "nothing")
        self.producer.flush()

    def judge(self) -> list[str]:
        """Return what the oracle finds wrong: a record that was fixed is in the tables and stays in the quarantine."""
        quarantined = Journal()
        quarantined.write(
            replace(record, fate="quarantine" if record.sha256 in self.fixed else record.fate) for record in self.landed.records
        )
        read, quarantine = self.pipeline.read, self.pipeline.spec.quarantine_table
        found = [judge_table(self.landed, table.id, table_rows(read(table))) for table in self.pipeline.spec.tables]
        found.append(judge_quarantine(quarantined, quarantine.id, quarantine_rows(read(quarantine))))
        return [str(judgement) for judgement in found if not judgement.is_clean]


@pytest.fixture(scope="module")
def scene(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Everything is dealt with, and the stream goes on."""
    folder, journal = tmp_path_factory.mktemp("release"), Journal()
    name = topic_maker(broker.bootstrap_servers)("release", PARTITIONS)
    producer, fixed = JournalingProducer(broker.bootstrap_servers, journal), set()
    pipeline = make_pipeline(
        folder,
        broker.bootstrap_servers,
        name,
        value={"format": "json", "schema": STRICT},
        transform=TAG_ROWS,
        freshness="500ms",
    ).with_limits(max_records_per_batch=CHUNK)
    file = pipeline.settings.home / "events.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    body = pipeline.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    file.write_text(yaml.safe_dump(body | {"value": {"format": "json", "schema": MILD}}))
    for number in range(FIXED + HOPELESS):
        columns, partition = event(number, amount=None), number // 2 % PARTITIONS
        if number % 2:
            producer.send(name, as_json(columns)[:-1], partition=partition)
            continue
        rows = expected_tag_rows(columns)
        fixed.add(value_hash(as_json(columns)))
        producer.send(name, as_json(columns), rows=rows, fate="table" if rows else "nothing", partition=partition)
    producer.flush()
    with applications() as starter, environment_of(pipeline.settings, file.parent):
        application = starter.start(pipeline)
        found = Scene(pipeline, journal, producer, application, fixed)
        found.send_good(range(100_000, 100_000 + GOOD))
        application.wait_running()
        application.wait_landed(journal.ends())
        yield found


def counts(listing: dict[str, Any]) -> dict[str, tuple[int, int]]:
    return {one["reason"]: (one["records"], one["open"]) for one in listing["reasons"]}


def test_exactly_what_the_new_schema_fixes_lands_and_once(scene: Scene) -> None:
    before = scene.answer()
    assert counts(before) == {"missing_field": (FIXED, FIXED), "malformed_json": (HOPELESS, HOPELESS)}
    verdicts = {"missing_field": {"fit": FIXED, "stay": 0}, "malformed_json": {"fit": 0, "stay": HOPELESS}}
    trial = scene.answer("--replay", "--plan")["result"]
    assert trial["verdicts"] == verdicts
    assert trial["tables"] == {} and scene.judge(), "a trial lands nothing"

    for rules in KILLS:
        scene.send_good(range(200_000 + len(rules), 200_000 + len(rules) + 50))
        died = scene.killed("--replay", faults=rules)["result"]
        assert died["state"] == "failed" and "the application died" in died["reason"]
    assert prove_all(scene) == [], "between two runs every record is accounted for"

    scene.send_good(range(300_000, 300_000 + GOOD))
    done = scene.answer("--replay")["result"]
    assert (done["state"], done["verdicts"]) == ("completed", verdicts), "of the table that lacks most, which lacks all"
    landed = {table: found["rows"] for table, found in done["tables"].items()}
    assert 0 < landed["delta:events"] < landed["iceberg:events"], "not killed between the commits of the two tables"

    again = scene.answer("--replay")["result"]
    assert (again["state"], again["tables"], again["landed"]) == ("completed", {}, 0)
    assert counts(scene.answer()) == {"missing_field": (FIXED, 0), "malformed_json": (HOPELESS, HOPELESS)}

    scene.application.wait_landed(scene.landed.ends())
    assert scene.application.stop().verdict == "stopped"
    assert scene.judge() == []
    assert prove_all(scene) == []
    said = scene.application.log.read_text(errors="replace")
    assert "the query ended and starts again" not in said, said


def prove_all(scene: Scene) -> list[str]:
    """Return the problems of both proofs."""
    proofs = [prove(scene.pipeline.spec, places_of(scene.pipeline.settings, "default"), deep=deep) for deep in (False, True)]
    return [f"{table.table}: {problem}" for proof in proofs for table in proof.tables for problem in table.problems]
