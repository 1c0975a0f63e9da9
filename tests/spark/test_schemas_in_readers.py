"""What records in Avro, Protobuf and JSON Schema hold is what every reader of both table formats shows."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.support.formats.avro_schemas import every_leaf, record_schema
from tests.support.formats.every_type import Sent, avro_records, json_records, protobuf_records
from tests.support.readers.plain_values import plain
from tests.support.readers.tables import Format
from tests.support.streams.long_form import LONG_FORM
from tests.support.tables.bad_orders import land, make
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.local_tables import TOPIC, TOPIC_ID

from lakebound.formats.kinds import schema_reader
from lakebound.formats.schemas import SchemaText
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from lakebound.tables.schemas import normalise_schema
from lakebound.tables.table import KAFKA_TYPE

pytestmark = [pytest.mark.spark, pytest.mark.timeout(7_200 if LONG_FORM else 900)]

RECORDS = 25
READ_BY_PYICEBERG = ("pyiceberg", "duckdb")
SEEDS = range(40 if LONG_FORM else 1)
Row = dict[str, Any]


def decoded(records: Sent) -> pa.Table:
    """Return what the product makes of the records, with where they came from."""
    reader, text = schema_reader(records.kind), SchemaText(records.kind, records.text)
    columns = reader.columns_of(text, None)
    found = reader.payload_decoder(text, text, columns, None, is_framed=False).decode(records.payloads)
    assert not found.problems
    kafka = [
        {"topic": TOPIC, "topic_id": TOPIC_ID, "partition": 0, "offset": offset, "timestamp": 10**15, "ordinal": 0}
        for offset in range(len(records.payloads))
    ]
    table = pa.table([found.columns[name] for name in columns.names], schema=columns)
    return table.append_column(pa.field("_kafka", KAFKA_TYPE), pa.array(kafka, KAFKA_TYPE))


def readers(spec: TableSpec, at: Places, pool: ProcessPoolExecutor) -> dict[str, Callable[[], list[Row]]]:
    """Return how each reader gives all rows of a table."""

    def spark() -> list[Row]:
        name = f"delta.`{at.delta_path(spec)}`" if spec.format == "delta" else f"ice.{spec.name}"
        file = at.home / f"{spec.short_name}.arrow"
        pool.submit(_spark_rows, f"SELECT * FROM {name}", str(file)).result(timeout=600)
        with pa.ipc.open_file(file) as kept:
            found: list[Row] = kept.read_all().to_pylist()
        return found

    if spec.format == "delta":
        folder = str(at.delta_path(spec))
        table = DeltaTable(folder)
        by_sql = QueryBuilder().register("t", table)
        return {
            "deltalake dataset": lambda: table.to_pyarrow_dataset().to_table().to_pylist(),
            "deltalake SQL": lambda: pa.table(by_sql.execute("SELECT * FROM t").read_all()).to_pylist(),
            "polars": lambda: pl.scan_delta(folder).collect().to_arrow().to_pylist(),
            "duckdb": lambda: by_duckdb(table.to_pyarrow_dataset()),
            "spark": spark,
        }
    foreign = foreign_iceberg(spec, at)
    return {
        "pyiceberg": lambda: foreign.scan().to_arrow().to_pylist(),
        "polars": lambda: pl.scan_iceberg(foreign).collect().to_arrow().to_pylist(),
        "duckdb": lambda: by_duckdb(foreign.scan().to_arrow()),
        "spark": spark,
    }


def by_duckdb(table: Any) -> list[Row]:
    """Return what DuckDB reads, which reads both formats as Arrow data (docs/how-to/read-tables.md)."""
    found: list[Row] = duckdb.from_arrow(table).to_arrow_table().to_pylist()
    return found


def _spark_rows(query: str, file: str) -> None:
    spark = SparkSession.getActiveSession()
    assert spark is not None
    try:
        found = spark.sql(query).toArrow()
    except PySparkException as exc:  # it cannot be pickled
        raise RuntimeError(f"{str(exc)[:1000]} in {query}") from None
    with pa.OSFile(file, "wb") as sink, pa.ipc.new_file(sink, found.schema) as writer:
        writer.write_table(found)


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_records_of_any_schema_are_the_same_for_every_reader(
    table_format: Format, at: Places, pool: ProcessPoolExecutor
) -> None:
    asked, wrong = 0, []
    avro = {"every_leaf": every_leaf()} | {f"drawn_{seed}": record_schema(random.Random(seed), fields=8) for seed in SEEDS}
    drawn = {name: avro_records(schema, random.Random(name), RECORDS) for name, schema in avro.items()}
    drawn |= {"protobuf": protobuf_records(), "json": json_records()}
    for name, records in drawn.items():
        spec = TableSpec(format=table_format, name=f"schemas.{name}")
        rows = decoded(records)
        make(spec, at, normalise_schema(rows.schema))
        land(spec, at, rows, 0)
        for reader, read in readers(spec, at, pool).items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = sorted(read(), key=lambda row: row["_kafka"]["offset"])
            null_lists = reader not in READ_BY_PYICEBERG or table_format == "delta"
            for offset, (row, right) in enumerate(zip(found, records.rows, strict=True)):
                assert row.pop("_kafka")["offset"] == offset
                for column, value in right.items():
                    asked += 1
                    shown, expected = (plain(one, null_lists=null_lists) for one in (row[column], value))
                    if shown != expected:
                        wrong.append(f"{name}, {reader}, offset {offset}, {column}: {shown!r} instead of {expected!r}")
    assert not wrong, f"{len(wrong)} of {asked}:\n" + "\n".join(wrong[:40])
    assert asked > 4 * RECORDS * len(every_leaf()["fields"])
    print(f"{table_format}: {len(drawn)} schemas, {asked} values read by readers")
