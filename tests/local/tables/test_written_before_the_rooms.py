"""What an application wrote before the modules moved into rooms is read, and gone on from: tables, state, a deferred trigger.

Recorded under a running Airflow, of the pipeline `orders` of the demo: 300 records, 6 of them bad. The application was alive
then; here it is one that died without a last word. Iceberg's metadata holds absolute paths, so everything is restored to the
same place.
"""

from __future__ import annotations

import csv
import json
import shutil
import tarfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from tests.oracle import read_delta, read_iceberg

from lakebound.control.applications import living_submission
from lakebound.control.desired import Desired, read_desired
from lakebound.control.last_end import read_last_end
from lakebound.control.status import pipeline_statuses
from lakebound.inspection.doctor.examine import examine_pipeline
from lakebound.landing.run_spec import RunSpec, make_run_spec
from lakebound.ledger.topics import TopicFacts
from lakebound.settings import Settings, load_settings
from lakebound.spec.load import load_pipeline
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import places_of
from lakebound.tables.table import open_table
from lakebound_spark.stream.opening import make_writer, open_targets, start_offsets, take_lease

RECORDINGS = Path(__file__).parents[2] / "recordings"
HOME = Path("/tmp/lakebound-recorded")
LANDED, BAD = 294, 6


@pytest.fixture(scope="module")
def settings() -> Iterator[Settings]:
    """The recorded home, where it was recorded."""
    shutil.rmtree(HOME, ignore_errors=True)
    with tarfile.open(RECORDINGS / "written-before-the-rooms.tar.gz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python has it from 3.11.4 on
        archive.extractall(HOME)
    (HOME / "yaml").mkdir()
    shutil.move(HOME / "orders.yaml", HOME / "yaml" / "orders.yaml")
    yield load_settings(
        {"LAKEBOUND_HOME": str(HOME), "LAKEBOUND_PIPELINES": str(HOME / "yaml"), "LAKEBOUND_KAFKA": "127.0.0.1:1"}
    )
    shutil.rmtree(HOME)


@pytest.fixture(scope="module")
def spec(settings: Settings) -> PipelineSpec:
    return load_pipeline("orders", settings)


@pytest.fixture(scope="module")
def run(spec: PipelineSpec, settings: Settings) -> RunSpec:
    return make_run_spec(spec, settings, Desired(), "orders-after")


def ends() -> dict[int, int]:
    """Return the offset after the last one of each partition, as the producer's journal has it."""
    found: dict[int, int] = {}
    for row in csv.DictReader((HOME / "journal.csv").open()):
        found[int(row["partition"])] = max(found.get(int(row["partition"]), 0), int(row["offset"]) + 1)
    return found


def check_the_trigger_of_a_deferred_task_is_found_and_says_the_same(settings: Settings) -> None:
    recorded = json.loads((HOME / "trigger.json").read_text())
    module, _, name = recorded["classpath"].rpartition(".")
    trigger = getattr(import_module(module), name)(**recorded["kwargs"])
    assert trigger.serialize() == (recorded["classpath"], recorded["kwargs"])


def check_the_state_is_read(spec: PipelineSpec, run: RunSpec, settings: Settings) -> None:
    assert read_desired(run.control).state == "running"
    assert living_submission(run.control) is None
    last = read_last_end(run.control)
    assert last is not None and last.landed and last.is_unclean
    assert last.progress is not None and last.progress.high_water_marks == {"orders": ends()}
    status = next(one for one in pipeline_statuses(settings) if one.pipeline == "orders")
    assert not status.alive
    rules = {finding.rule for finding in examine_pipeline(spec, settings).findings}
    assert rules >= {"broker-unavailable"} and not any("ledger" in rule or "table" in rule for rule in rules)


def check_the_tables_hold_what_was_sent(spec: PipelineSpec, settings: Settings) -> None:
    places = places_of(settings, "default")
    for table in spec.tables:
        ledger = open_table(table, places).read_ledger()
        assert ledger.coverage["orders"].partitions == {p: ((0, end),) for p, end in ends().items()}
        rows = (
            read_delta(places.delta_path(table))
            if table.format == "delta"
            else read_iceberg(places.root.path / "iceberg" / "catalog.db", table.namespace, table.short_name)
        )
        assert rows.num_rows == LANDED
    assert read_delta(places.delta_path(spec.quarantine_table)).num_rows == BAD


def check_the_next_application_goes_on_where_it_ended(spec: PipelineSpec, run: RunSpec, settings: Settings) -> None:
    tables = [open_table(table, run.places) for table in (*spec.tables, spec.quarantine_table)]
    before = [table.read_ledger() for table in tables]
    topic = before[0].coverage["orders"].topic_id
    facts = {"orders": TopicFacts(topic_id=topic, earliest=dict.fromkeys(ends(), 0), latest=ends())}
    lease = take_lease(run)
    assert lease.epoch > max(view.epoch for view in before)
    schemas = {table.spec.id: table.schema() for table in tables}
    targets, quarantine = open_targets(run, schemas, make_writer(run, lease), facts)
    assert start_offsets(targets, quarantine, facts) == {"orders": ends()}
    for table, view in zip(tables, before, strict=True):
        after = table.read_ledger()
        assert (after.coverage, after.epoch) == (view.coverage, lease.epoch)


def test_what_older_code_wrote_is_read_and_gone_on_from(spec: PipelineSpec, run: RunSpec, settings: Settings) -> None:
    """One test, because the recording has one place on a machine, and the last check changes its tables."""
    check_the_trigger_of_a_deferred_task_is_found_and_says_the_same(settings)
    check_the_state_is_read(spec, run, settings)
    check_the_tables_hold_what_was_sent(spec, settings)
    check_the_next_application_goes_on_where_it_ended(spec, run, settings)
