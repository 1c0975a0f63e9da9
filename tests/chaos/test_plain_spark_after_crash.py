"""The peer's behaviour: plain Spark doubles records when an Iceberg table was expired between a crash and the restart.

Lakebound's own stream under the same: tests/chaos/test_crash_points.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.kafka.makers import TopicMaker
from tests.support.streams.long_form import only_in_long_form
from tests.support.worlds.native_streams import NativeStream, native_spark, produce

from lakebound.local.broker import Broker

pytestmark = [pytest.mark.chaos, only_in_long_form]

RECORDS = 300
TABLE = "hadoop.db.plain"
FAR_AHEAD = "TIMESTAMP '2999-01-01 00:00:00'"


def test_plain_spark_doubles_records(tmp_path: Path, jars: Path, broker: Broker, topic: TopicMaker) -> None:
    name, checkpoint = topic("plain", partitions=1), tmp_path / "checkpoint"
    produce(broker.bootstrap_servers, name, {0: RECORDS})
    stream = NativeStream(broker.bootstrap_servers, name, "iceberg", TABLE, str(checkpoint), batch_offsets=RECORDS // 3)
    with native_spark(tmp_path / "plain", jars) as spark:
        spark.sql(f"CREATE TABLE {TABLE} (partition INT, offset BIGINT, value STRING) USING iceberg")
        spark.run(stream)
        newest = max((checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
        newest.unlink()
        newest.with_name(f".{newest.name}.crc").unlink()
        spark.sql("CALL hadoop.system.rewrite_data_files(table => 'db.plain', options => map('rewrite-all', 'true'))")
        spark.sql(f"CALL hadoop.system.expire_snapshots(table => 'db.plain', older_than => {FAR_AHEAD}, retain_last => 1)")
        spark.run(stream)
        ((rows, distinct),) = spark.sql(f"SELECT count(*), count(DISTINCT offset) FROM {TABLE}")
    assert distinct == RECORDS
    assert rows > distinct
