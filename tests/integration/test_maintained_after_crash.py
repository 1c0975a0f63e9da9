"""Tables that are compacted and expired between a crash and the restart: plain Spark doubles records, Lakebound does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.applications import applications
from tests.conftest import TopicMaker
from tests.journal import Journal
from tests.maintenance import carried_entry, compact_delta, expire_iceberg
from tests.native_streams import NativeSpark, NativeStream, native_spark, produce
from tests.pipelines import assert_exactly_once, make_pipeline
from tests.producing import JournalingProducer, send_events

from lakebound.embedded.broker import Broker
from lakebound.ledger import ENTRY_KEY
from lakebound.run_spec import places_of

pytestmark = pytest.mark.integration

RECORDS = 300
PLAIN = "hadoop.db.plain"
FAR_AHEAD = "TIMESTAMP '2999-01-01 00:00:00'"


def test_compacted_and_expired_between_crash_and_restart(tmp_path: Path, jars: Path, broker: Broker, topic: TopicMaker) -> None:
    journal, own, plain = Journal(), topic("maintained"), topic("plain", partitions=1)
    producer = JournalingProducer(broker.bootstrap_servers, journal)
    pipeline = make_pipeline(tmp_path / "own", broker.bootstrap_servers, own)
    at = places_of(pipeline.settings)
    delta, iceberg = sorted(pipeline.spec.tables, key=lambda table: table.format)
    catalog = {
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "jdbc",
        "spark.sql.catalog.ice.uri": f"jdbc:{at.iceberg_catalog_uri.replace('sqlite:///', 'sqlite:')}",
        "spark.sql.catalog.ice.warehouse": f"file://{at.iceberg_warehouse}",
        "spark.sql.catalog.ice.cache-enabled": "false",
    }
    with applications() as starter:
        crashing = starter.start(pipeline, faults="kill@before_commit_log#3")
        sent = 0
        while crashing.process.poll() is None:
            send_events(producer, own, range(sent, sent + 20))
            sent += 20
        crashing.wait_killed("after the commits of the third batch, before the commit log")

        with native_spark(tmp_path / "plain", jars, catalog) as spark:
            assert _doubled_by_plain_spark(spark, broker, plain, tmp_path / "checkpoint") > 0
            spark.rewrite(f"ice.{iceberg.namespace}.{iceberg.short_name}", {ENTRY_KEY: carried_entry(iceberg, at)})
        assert expire_iceberg(iceberg, at) >= 3
        assert compact_delta(delta, at) >= 3

        last = starter.start(pipeline)
        send_events(producer, own, range(sent, sent + 50))
        last.wait_landed(journal.ends())
        assert last.stop().verdict == "stopped", last
    assert_exactly_once(pipeline, journal)


def _doubled_by_plain_spark(spark: NativeSpark, broker: Broker, topic: str, checkpoint: Path) -> int:
    """Do the same to Spark's own sink, and return how many records it then holds twice."""
    produce(broker.bootstrap_servers, topic, {0: RECORDS})
    spark.sql(f"CREATE TABLE {PLAIN} (partition INT, offset BIGINT, value STRING) USING iceberg")
    stream = NativeStream(broker.bootstrap_servers, topic, "iceberg", PLAIN, str(checkpoint), batch_offsets=RECORDS // 3)
    spark.run(stream)
    newest = max((checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    newest.unlink()
    newest.with_name(f".{newest.name}.crc").unlink()
    spark.sql("CALL hadoop.system.rewrite_data_files(table => 'db.plain', options => map('rewrite-all', 'true'))")
    spark.sql(f"CALL hadoop.system.expire_snapshots(table => 'db.plain', older_than => {FAR_AHEAD}, retain_last => 1)")
    spark.run(stream)
    ((rows, distinct),) = spark.sql(f"SELECT count(*), count(DISTINCT offset) FROM {PLAIN}")
    assert distinct == RECORDS
    return int(rows - distinct)
