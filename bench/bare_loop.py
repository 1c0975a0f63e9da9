"""The same loop without ledger, lease, fences, counts and progress: what Lakebound is held against.

Entry point for spark-submit: Kafka, the same decoding and transform, ``toArrow()``, and the two libraries' own writers in
two threads.
"""

from __future__ import annotations

import argparse
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame

from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.run_spec import RunSpec
from lakebound.ledger.entry import Entry, new_commit_id
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.table import open_table
from lakebound_spark.batch.decode import good_columns, make_decoder
from lakebound_spark.batch.schema import table_schema
from lakebound_spark.batch.transform import load_transform, planned_output
from lakebound_spark.session import make_session
from lakebound_spark.stream.source import read_stream


def main() -> None:
    """Run until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run-spec", required=True)
    run = RunSpec.model_validate_json(parser.parse_args().run_spec)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    session = make_session("bare loop")
    facts = KafkaFacts(run.spec.connection).topics(run.spec.topics)
    transform = load_transform(run.spec)
    output = planned_output(session, run.spec, transform)
    for spec in run.spec.tables:
        genesis = Entry(kind="genesis", pipeline=run.spec.pipeline, epoch=0, commit=new_commit_id())
        open_table(spec, run.places).create(table_schema(output.schema, spec), genesis)
    delta_spec = next(spec for spec in run.spec.tables if spec.format == "delta")
    iceberg_spec = next(spec for spec in run.spec.tables if spec.format == "iceberg")
    delta = DeltaTable(str(run.places.delta_path(delta_spec)))
    iceberg = open_catalog(run.places).load_table((iceberg_spec.namespace, iceberg_spec.short_name))
    arrow_schema = table_schema(output.schema, delta_spec)
    decoder = make_decoder(run.spec, {topic: known.topic_id for topic, known in facts.items()})
    pool = ThreadPoolExecutor(max_workers=2)

    def on_batch(records: DataFrame, _: int) -> None:
        rows = transform(good_columns(decoder.decode(records))).toArrow().cast(arrow_schema)
        for future in [pool.submit(write_deltalake, delta, rows, mode="append"), pool.submit(iceberg.append, rows)]:
            future.result()

    start = {topic: known.earliest for topic, known in facts.items()}
    writer = read_stream(session, run.spec, start).writeStream.foreachBatch(on_batch)
    checkpoint = run.control.checkpoint(run.app_id)
    query = writer.option("checkpointLocation", f"file://{checkpoint}").trigger(processingTime="0 seconds").start()
    while query.isActive and not stop.wait(0.2):
        pass
    query.stop()
    session.stop()


if __name__ == "__main__":
    main()
