"""kill -9 at every named point of a batch, in both lanes, under load; the oracle judges.

The pipeline has a Delta and an Iceberg table, so each kill strikes both formats. Each start is also the recovery from
the kill before it. The long form (LAKEBOUND_CHAOS=full) adds pipelines of one table and other batches.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.applications import applications
from tests.conftest import TopicMaker
from tests.journal import Journal
from tests.pipelines import LANES, Lane, Pipeline, assert_exactly_once, make_pipeline
from tests.producing import JournalingProducer, Load

from lakebound.embedded.broker import Broker

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(3600)]

FULL = os.environ.get("LAKEBOUND_CHAOS") == "full"
PER_SECOND = 200


def crash_points(lane: Lane, batch: int) -> dict[str, str]:
    """Return the rules per crash point, for the how many-th batch of an application (its first has no lane of its choice)."""
    in_lane = batch - 1 if lane == "driver" else batch
    return {
        "before the offset log": f"kill@before_offset_log#{batch - 1}",
        "after the offset log": f"kill@after_offset_log#{batch}",
        "after the data files": f"kill@after_data_files/{lane}#{in_lane}",
        "after the quarantine's commit": f"kill@after_commit/land#{batch - 1}",
        "Delta committed, Iceberg not": f"kill@after_commit/delta#{batch},hold@before_commit/iceberg#{batch}",
        "Iceberg committed, Delta not": f"kill@after_commit/iceberg#{batch},hold@before_commit/delta#{batch}",
        "all committed, before the commit log": f"kill@before_commit_log#{batch}",
    }


def one_table_points(lane: Lane, batch: int, table: str) -> dict[str, str]:
    """Return the rules that mean something in a pipeline with one table."""
    rules = {name: rule for name, rule in crash_points(lane, batch).items() if "," not in rule}
    return {
        **rules,
        "before the commit": f"kill@before_commit/{table}#{batch}",
        "after it": f"kill@after_commit/{table}#{batch}",
    }


@pytest.mark.parametrize("lane", LANES)
def test_killed_at_every_point_lands_everything_once(lane: Lane, tmp_path: Path, broker: Broker, topic: TopicMaker) -> None:
    batches = (2, 3, 5) if FULL else (2,)
    pipeline = make_pipeline(tmp_path, broker.bootstrap_servers, topic("crash"), lane=lane)
    kill_at(pipeline, [rule for batch in batches for rule in crash_points(lane, batch).items()])


@pytest.mark.skipif(not FULL, reason="only in make chaos")
@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("table", ["delta", "iceberg"])
def test_killed_at_every_point_with_one_table(
    table: str, lane: Lane, tmp_path: Path, broker: Broker, topic: TopicMaker
) -> None:
    pipeline = make_pipeline(tmp_path, broker.bootstrap_servers, topic("crash"), lane=lane, formats=(table,))
    kill_at(pipeline, list(one_table_points(lane, 2, table).items()))


def kill_at(pipeline: Pipeline, points: list[tuple[str, str]]) -> None:
    """Start the pipeline once per crash point, have it killed there under load, then land the rest and judge."""
    journal = Journal()
    name = pipeline.spec.topics[0]
    with applications() as starter:
        with Load(JournalingProducer(pipeline.settings.kafka, journal), name, PER_SECOND):
            for point, rules in points:
                application = starter.start(pipeline, faults=rules)
                application.wait_killed(point)
                if "," in rules:
                    assert_only_one_table_has_the_batch(pipeline, committed=rules.split("/")[1].split("#")[0])
        last = starter.start(pipeline)
        last.wait_landed(journal.ends())
        assert last.stop().verdict == "stopped", last
    assert_exactly_once(pipeline, journal)


def assert_only_one_table_has_the_batch(pipeline: Pipeline, committed: str) -> None:
    """Check that the kill struck between the two commits, in the order that was meant."""
    rows = {table.format: pipeline.read(table).num_rows for table in pipeline.spec.tables}
    other = next(name for name in rows if name != committed)
    assert rows[committed] > rows[other], f"not killed between the commits: {rows}"
