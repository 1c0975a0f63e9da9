"""kill -9 at every named point of a batch, in every lane, under load; the oracle judges.

The pipeline has a Delta and an Iceberg table, so each kill strikes both formats. Each start is also the recovery from
the kill before it, at the change of lanes also from the other lane's.

A lane is what makes the files; whoever made them, one function commits them (docs/decisions/0004). So the short form kills
once, in the cluster lane, with a transform, when both tables have the batch, and goes on where the driver reads. Short forms
of other tests kill where the driver reads, behind a catalog, when Iceberg alone has the batch (``test_cataloged_streams.py``),
in a round of topics (``test_rounds.py``), and anywhere, where the driver writes, too (``test_soak.py``). The long form
(LAKEBOUND_CHAOS=full) kills at every point of every lane, and adds other batches and pipelines of one table.

Between the last kill, when both tables have the batch, and the restart the tables are compacted and expired: nothing lands
twice. The plain restart after such a kill is in the long form. What plain Spark makes of the same shows
``test_plain_spark_after_crash.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer, Load, RowsOf, as_one_row
from tests.support.streams.applications import applications
from tests.support.streams.landing_transforms import expected_tag_rows
from tests.support.streams.long_form import LONG_FORM, only_in_long_form
from tests.support.streams.pipelines import LANES, TAG_ROWS, Lane, Pipeline, assert_exactly_once, make_pipeline
from tests.support.tables.maintained import rewrite_iceberg
from tests.support.tables.maintenance import compact_delta, expire_iceberg

from lakebound.inspection.proof.collect import prove
from lakebound.local.broker import Broker

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(3600)]

PER_SECOND = 200


@dataclass(frozen=True)
class CrashPoint:
    """Where a batch of one lane is killed.

    Attributes:
        name: For messages.
        lane: Of the batch.
        rules: For ``lakebound.faults``.
        committed: The table that has the batch then, where the other one has not.
    """

    name: str
    lane: Lane
    rules: str
    committed: str | None = None


def before_the_lane(lane: Lane, batch: int) -> list[CrashPoint]:
    """Return the points of an application's how many-th batch at which its lane is not chosen yet."""
    return [
        CrashPoint("between two batches", lane, f"kill@between_batches#{batch - 1}"),
        CrashPoint("a batch begins", lane, f"kill@batch_begins#{batch}"),
    ]


def in_the_lane(lane: Lane, batch: int) -> list[CrashPoint]:
    """Return the points of an application's how many-th batch in its lane; where Spark reads, the first is the cluster's."""
    in_lane = batch - 1 if lane == "driver" else batch
    written = "cluster" if lane == "cluster" else "driver"
    committed, held = "kill@after_commit/{}#" + str(batch), "hold@before_commit/{}#" + str(batch)
    return [
        CrashPoint("after the data files", lane, f"kill@after_data_files/{written}#{in_lane}"),
        CrashPoint("after the quarantine's commit", lane, f"kill@after_commit/land#{batch}"),
        CrashPoint("Delta alone committed", lane, f"{committed.format('delta')},{held.format('iceberg')}", "delta"),
        CrashPoint("Iceberg alone committed", lane, f"{committed.format('iceberg')},{held.format('delta')}", "iceberg"),
        CrashPoint("all committed, the batch ends", lane, f"kill@batch_ends#{batch}"),
    ]


def test_killed_when_both_tables_have_the_batch_and_maintained_before_the_restart_everything_lands_once(
    tmp_path: Path, broker: Broker, topic: TopicMaker
) -> None:
    points = in_the_lane("cluster", 4)[-1:]
    if LONG_FORM:
        before = (("cluster", "after the quarantine's commit"), ("driver", "Delta alone committed"), ("direct", points[0].name))
        points = [point for lane, name in before for point in in_the_lane(lane, 2) if point.name == name]
    pipeline = make_pipeline(tmp_path, broker.bootstrap_servers, topic("crash"), lane="direct", transform=TAG_ROWS)
    kill_at(pipeline, points, expected_tag_rows, before_the_last_start=compact_and_expire)


@only_in_long_form
def test_killed_while_spark_reads_lands_everything_once(tmp_path: Path, broker: Broker, topic: TopicMaker) -> None:
    places = [(lane, batch) for batch in (2, 3, 5) for lane in LANES]
    points = [point for where in places for point in (*before_the_lane(*where), *in_the_lane(*where))]
    kill_at(make_pipeline(tmp_path, broker.bootstrap_servers, topic("crash")), points, before_the_last_start=compact_and_expire)


@only_in_long_form
@pytest.mark.parametrize("transform", [pytest.param(None, id="plain"), pytest.param(TAG_ROWS, id="transform")])
def test_killed_where_the_driver_reads_by_itself_lands_everything_once(
    transform: str | None, tmp_path: Path, broker: Broker, topic: TopicMaker
) -> None:
    points = [point for batch in (2, 3, 5) for point in in_the_lane("direct", batch)]
    pipeline = make_pipeline(tmp_path, broker.bootstrap_servers, topic("crash"), transform=transform)
    kill_at(pipeline, points, expected_tag_rows if transform else as_one_row)


@only_in_long_form
@pytest.mark.parametrize("table", ["delta", "iceberg"])
def test_killed_at_every_point_with_one_table(table: str, tmp_path: Path, broker: Broker, topic: TopicMaker) -> None:
    points = [
        point
        for lane in LANES
        for point in (
            *before_the_lane(lane, 2),
            *(point for point in in_the_lane(lane, 2) if point.committed is None),
            CrashPoint("before the commit", lane, f"kill@before_commit/{table}#2"),
            CrashPoint("after the commit", lane, f"kill@after_commit/{table}#2"),
        )
    ]
    kill_at(make_pipeline(tmp_path, broker.bootstrap_servers, topic("crash"), formats=(table,)), points)


def kill_at(
    pipeline: Pipeline,
    points: list[CrashPoint],
    rows_of: RowsOf = as_one_row,
    before_the_last_start: Callable[[Pipeline], None] = lambda _: None,
) -> None:
    """Start the pipeline once per crash point, have it killed there under load, then land the rest and judge.

    Args:
        pipeline: What is killed.
        points: Where, one application after the other.
        rows_of: What the tables must have of an event.
        before_the_last_start: What is done to the tables after the last kill, while nothing runs and nothing is sent.
    """
    journal = Journal()
    name = pipeline.spec.topics[0]
    with applications() as starter:
        with Load(JournalingProducer(pipeline.settings.kafka, journal), name, PER_SECOND, rows_of=rows_of):
            for point in points:
                application = starter.start(pipeline.with_lane(point.lane), faults=point.rules)
                application.wait_killed(f"at {point.name!r} in the {point.lane} lane")
                if point.committed:
                    assert_only_one_table_has_the_batch(pipeline, point.committed)
        before_the_last_start(pipeline)
        last = starter.start(pipeline)
        last.wait_landed(journal.ends())
        assert last.stop().verdict == "stopped", last
    assert_exactly_once(pipeline, journal)


def compact_and_expire(pipeline: Pipeline) -> None:
    """Compact both tables and delete their history; what that tells of the kills is proved before."""
    proof = prove(pipeline.spec, pipeline.places, deep=True)
    problems = [f"{table.table}: {problem}" for table in proof.tables for problem in table.problems]
    assert proof.ok and not problems, f"{proof.sentence}: {problems}"
    assert (proof.missing, proof.duplicated) == (0, 0)
    delta, iceberg = sorted(pipeline.spec.tables, key=lambda table: table.format)
    rewrite_iceberg(iceberg, pipeline.places)
    assert expire_iceberg(iceberg, pipeline.places) >= 3
    assert compact_delta(delta, pipeline.places) >= 3


def assert_only_one_table_has_the_batch(pipeline: Pipeline, committed: str) -> None:
    """Check that the kill struck between the two commits, in the order that was meant."""
    rows = {table.format: pipeline.read(table).num_rows for table in pipeline.spec.tables}
    other = next(name for name in rows if name != committed)
    assert rows[committed] > rows[other], f"not killed between the commits: {rows}"
