"""Every operation on tables in a bucket, by the commands that a person types; the oracle judges after each that changes rows.

One pipeline goes through all of it, with a Delta table and an Iceberg table behind a REST catalog. The tests run in this order.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable
from tests.oracle import judge_quarantine, judge_table, quarantine_rows, table_rows
from tests.support.catalogs.installations import Installation, in_rest, store_on
from tests.support.kafka.journal import Journal, row_hashes, value_hash
from tests.support.kafka.makers import topic_maker
from tests.support.kafka.producing import JournalingProducer, as_json, event
from tests.support.s3.clients import delta_options
from tests.support.s3.running import S3Server
from tests.support.streams.applications import Applications, applications
from tests.support.streams.command_line import lakebound
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.pipelines import Pipeline, assert_exactly_once, make_pipeline
from tests.support.tables.foreign_hands import forget_entries
from tests.support.tables.rewinding import now_ms

from lakebound.control.incidents import read_incidents
from lakebound.control.person import operating_system_user
from lakebound.local.broker import Broker
from lakebound.spec.table import TableSpec
from lakebound.spec.times import in_utc

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

STRICT = "id BIGINT NOT NULL, body STRING NOT NULL, amount DOUBLE NOT NULL, tags ARRAY<STRING>"
MILD = STRICT.replace("amount DOUBLE NOT NULL", "amount DOUBLE")
SENT, ROUNDS = 120, 3
MAINTENANCE = {
    "cooldown_seconds": 0,
    "max_log_tail_commits": 1,
    "compaction": {"min_small_files": 2, "min_files_removed": 1, "hot_seconds": 0},
}
EXPECTATIONS = {
    "pipeline": "events",
    "on_failure": "quarantine",
    "expectations": [
        {"name": "small", "expect": "rows_to_satisfy", "rule": "id <> 5"},
        {"name": "once", "expect": "unique_over_window", "columns": ["id"], "over_seconds": 3600, "tables": ["delta:events"]},
        {
            "name": "twin",
            "expect": "values_in_table",
            "columns": {"id": "id"},
            "table": "iceberg:events",
            "tables": ["delta:events"],
        },
    ],
}


@dataclass
class Story:
    """The pipeline, its bucket, and what was produced.

    Attributes:
        mild: Hash of each record that a milder schema fixes, and its row.
        middle: Where each partition ended at ``middle_ms``.
    """

    pipeline: Pipeline
    server: S3Server
    catalog: Installation
    starter: Applications
    journal: Journal = field(default_factory=Journal)
    mild: dict[str, dict[str, Any]] = field(default_factory=dict)
    middle: dict[tuple[str, int], int] = field(default_factory=dict)
    middle_ms: int = 0

    def say(self, *arguments: str, code: int = 0) -> str:
        """Run a command, which must show no key, and return what it prints."""
        done = lakebound(*arguments, code=code)
        assert self.server.access_key.secret_access_key not in done.output
        return done.stdout

    def answer(self, *arguments: str, code: int = 0) -> Any:
        """Run a command with ``--json``, and return what it says."""
        return json.loads(self.say(*arguments, "--json", code=code))

    def apply(self, *arguments: str) -> dict[str, Any]:
        """Have a command plan, apply what it planned, and return the plan."""
        plan: dict[str, Any] = self.answer(*arguments)
        self.answer(*arguments, "--apply", plan["hash"], "--by", "on call")
        return plan

    def write_pipeline(self, **changes: Any) -> None:
        """Write the pipeline's file."""
        body = self.pipeline.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
        (self.pipeline.settings.pipelines / "events.yaml").write_text(yaml.safe_dump(body | changes))

    def send(self, numbers: range) -> None:
        """Send events: some are broken, and some lack what only the strict schema asks for."""
        producer = JournalingProducer(self.pipeline.spec.connection.bootstrap_servers, self.journal)
        for number in numbers:
            columns = event(number, amount=None if number % 10 == 3 else number / 8)
            value = as_json(columns)[: -1 if number % 10 == 7 else None]
            if number % 10 == 3:
                self.mild[value_hash(value)] = columns
            rows = [] if number % 10 in (3, 7) else [columns]
            producer.send(self.pipeline.spec.topics[0], value, rows=rows, partition=number % 2)
        producer.flush()

    def delta(self, table: TableSpec) -> DeltaTable:
        """Return a Delta table as deltalake alone opens it."""
        address = f"{self.pipeline.places.root}/delta/{table.namespace}/{table.short_name}"
        return DeltaTable(address, storage_options=delta_options(self.server))

    def iceberg_files(self) -> int:
        """Return how many data files plain PyIceberg finds in the Iceberg table."""
        return len(list(self.catalog.plain().load_table("default.events").scan().plan_files()))

    def judge_released(self) -> list[str]:
        """Return what the oracle finds wrong once the records that a milder schema fixes are in the tables, too."""
        fixed = Journal()
        fixed.write(
            replace(one, fate="table", rows=row_hashes([self.mild[one.sha256]])) if one.sha256 in self.mild else one
            for one in self.journal.records
        )
        spec, read = self.pipeline.spec, self.pipeline.read
        found = [judge_table(fixed, table.id, table_rows(read(table))) for table in spec.tables]
        found.append(judge_quarantine(self.journal, spec.quarantine_table.id, quarantine_rows(read(spec.quarantine_table))))
        return [str(judgement) for judgement in found if not judgement.is_clean]


@pytest.fixture(scope="module")
def story(broker: Broker, shared_s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """The pipeline has landed everything in several commits, and its application has ended."""
    folder, server = tmp_path_factory.mktemp("stored"), shared_s3_server
    (folder / "pipelines").mkdir()
    (folder / "expectations").mkdir()
    (folder / "expectations" / "events.yaml").write_text(yaml.safe_dump(EXPECTATIONS))
    with applications() as starter, pytest.MonkeyPatch.context() as patched:
        catalog = in_rest(folder, store_on(server), patched)
        made = make_pipeline(
            folder,
            broker.bootstrap_servers,
            topic_maker(broker.bootstrap_servers)("stored", partitions=2),
            lane="direct",
            value={"format": "json", "schema": STRICT},
            maintenance=MAINTENANCE,
        )
        pipeline = catalog.holding(made)
        for name, value in pipeline.settings.environment().items():
            patched.setenv(name, value)
        found = Story(pipeline, server, catalog, starter)
        found.write_pipeline()
        application = starter.start(pipeline)
        application.wait_running()
        for number in range(ROUNDS):
            found.send(range(number * SENT, (number + 1) * SENT))
            application.wait_landed(found.journal.ends())
            if number == 0:
                found.middle_ms, ends = now_ms(), found.journal.ends()
                found.middle = {(topic, p): end for topic, parts in ends.items() for p, end in parts.items()}
        assert application.stop().verdict == "stopped", application
        yield found
        catalog.close()


def test_what_looks_at_tables_sees_them_whole(story: Story) -> None:
    assert_exactly_once(story.pipeline, story.journal)
    assert "events: valid" in story.say("check", "--static", "--storage")
    proof = story.answer("prove", "events", "--deep")
    assert (proof["ok"], proof["missing"], proof["duplicated"]) == (True, 0, 0)
    rules = {one["rule"] for one in story.answer("doctor", "events")["findings"]}
    assert rules <= {"application-dead", "quarantine-flood"}, rules
    right = story.journal.count("table")
    tables = {f"{one['format']}:{one['name']}": one["rows"] for one in story.answer("tables")["tables"]}
    assert [tables[table.id] for table in story.pipeline.spec.tables] == [right, right]
    for name in ("delta.events", "iceberg.events"):
        assert story.say("query", f"select count(*) n from {name}", "--csv").split() == ["n", str(right)], name
    assert story.say("health") and story.say("status") and story.say("ledger", "events")
    listing = story.answer("quarantine", "events")
    assert sum(one["records"] for one in listing["reasons"]) == story.journal.count("quarantine")
    assert "to be removed" in story.say("tidy", "--plan")


def test_a_rewind_and_its_undoing(story: Story) -> None:
    plan = story.apply("rewind", "events", "--to", in_utc(story.middle_ms).removesuffix(" UTC"))
    assert plan["replays_records"] == (ROUNDS - 1) * SENT
    assert_exactly_once(story.pipeline, story.journal.before(story.middle))
    story.apply("rewind", "events", "--undo")
    assert_exactly_once(story.pipeline, story.journal)


def test_a_restore_by_hand_a_lost_state_folder_and_a_lost_ledger(story: Story) -> None:
    """Somebody restores the Delta table and takes that back: every row is there, and only the ledger does not know it."""
    (delta, _) = story.pipeline.spec.tables
    newest = story.delta(delta).version()
    story.delta(delta).restore(newest - 4)
    assert story.delta(delta).to_pyarrow_table().num_rows < story.journal.count("table")
    story.delta(delta).restore(newest)
    shutil.rmtree(story.pipeline.control.folder)
    plan = story.apply("recover", "events", "--action", "auto")
    assert plan["action"] == "rebase" and "from the entry of version" in plan["steps"][0]["what"], plan
    assert_exactly_once(story.pipeline, story.journal)
    forget_entries(delta, story.pipeline.places)
    plan = story.apply("recover", "events", "--action", "auto")
    assert plan["action"] == "rebase" and "from a scan of its rows" in plan["steps"][0]["what"], plan
    assert_exactly_once(story.pipeline, story.journal)


def test_rows_that_somebody_deleted_are_replayed(story: Story) -> None:
    (delta, _) = story.pipeline.spec.tables
    story.delta(delta).delete("_kafka.partition = 1")
    assert story.answer("prove", "events", "--deep", code=1)["missing"] > SENT // 2
    done = story.answer("replay", "events", "--missing")
    assert done["result"]["state"] == "completed", done
    took_back = next(one for one in read_incidents(story.pipeline.control) if "taken back" in one.what)
    assert (took_back.asked_by, took_back.approved_by) == (operating_system_user(),) * 2
    assert_exactly_once(story.pipeline, story.journal)


@only_in_long_form  # shortly: test_keys_and_headers.py, and the test above for a side job's commits in a bucket
def test_what_a_milder_schema_fixes_is_released(story: Story) -> None:
    story.write_pipeline(value={"format": "json", "schema": MILD})
    done = story.answer("quarantine", "events", "--replay")["result"]
    assert (done["state"], done["landed"]) == ("completed", len(story.mild)), done
    assert story.judge_released() == []
    assert story.answer("prove", "events", "--deep")["ok"]


@only_in_long_form  # shortly: tests/spark/test_validation_application.py, and tests/local/inspection of a bucket
def test_what_landed_is_validated_and_failing_rows_are_copied(story: Story) -> None:
    report = story.answer("validate", "events", code=2)
    assert report["problems"] == [] and [one["table"] for one in report["ranges"]] == [t.id for t in story.pipeline.spec.tables]
    delta, iceberg = ({result["label"]: result["passed"] for result in one["results"]} for one in report["ranges"])
    assert (delta, iceberg) == ({"small": False, "once": True, "twin": True}, {"small": False})
    assert [one["lost"] for one in report["ranges"]] == [None, None]
    assert report["ranges"][1]["rows"] == story.journal.count("table") + len(story.mild)
    copies = story.delta(story.pipeline.spec.quarantine_table).to_pyarrow_table().to_pylist()
    assert [row["_kafka"]["ordinal"] for row in copies if row["reason"] == "small"] == [-1]
    assert story.answer("prove", "events", "--deep")["ok"]


def test_maintenance_compacts_tables_of_both_formats(story: Story) -> None:
    bad = story.pipeline.spec.quarantine_table  # Each round has left a small file in it, and no replay has joined them.
    before = story.iceberg_files()
    assert before > 2
    rows, files = story.delta(bad).to_pyarrow_table().num_rows, len(story.delta(bad).file_uris())
    report = story.answer("maintain", "events", "--run")
    outcomes = {(one["step"]["table"], one["step"]["kind"]): one["outcome"] for one in report["steps"]}
    assert set(outcomes.values()) <= {"done", "nothing"}, report
    assert (bad.id, "compact") in outcomes and ("iceberg:events", "remove_orphans") in outcomes
    assert outcomes["iceberg:events", "compact"] == "done" and story.iceberg_files() < before
    assert len(story.delta(bad).file_uris()) < files and story.delta(bad).to_pyarrow_table().num_rows == rows
    assert story.answer("prove", "events", "--deep")["ok"]
