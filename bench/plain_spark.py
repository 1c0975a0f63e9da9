"""Kafka into one table by plain Structured Streaming: what most people write first, and the same tuned. For spark-submit."""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def main() -> None:
    """Run until the process is ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--format", choices=("delta", "iceberg"), required=True)
    parser.add_argument("--schema", required=True, help="of the values, as DDL")
    parser.add_argument("--tuned", action="store_true")
    args = parser.parse_args()
    session = SparkSession.builder.getOrCreate()
    reader = session.readStream.format("kafka").option("kafka.bootstrap.servers", args.bootstrap_servers)
    records = reader.option("subscribe", args.topic).option("startingOffsets", "earliest").load()
    body = F.from_json(F.col("value").cast("string"), args.schema).alias("body")
    located = ("topic", "partition", "offset", F.col("timestamp").alias("kafka_ts"))
    rows = records.select(body, *located).select("body.*", "topic", "partition", "offset", "kafka_ts")
    if args.tuned:
        rows = rows.coalesce(1)
    writer = rows.writeStream.option("checkpointLocation", f"file://{args.folder}/checkpoint").outputMode("append")
    if args.format == "delta":
        query = writer.format("delta").start(f"{args.folder}/events")
    else:
        session.sql("CREATE NAMESPACE IF NOT EXISTS ice.bench")
        located_columns = "topic STRING, partition INT, offset BIGINT, kafka_ts TIMESTAMP"
        properties = " TBLPROPERTIES ('write.distribution-mode'='none')" if args.tuned else ""
        session.sql(f"CREATE TABLE ice.bench.events ({args.schema}, {located_columns}) USING iceberg{properties}")
        query = writer.toTable("ice.bench.events")
    query.awaitTermination()


if __name__ == "__main__":
    main()
