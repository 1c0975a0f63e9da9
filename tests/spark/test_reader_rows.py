"""Spark's readers find, by every predicate, the rows that the predicate finds among the unfiltered ones.

Iceberg's files are compacted by Spark here, as maintenance does it; then the readers without a JVM are asked once more.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.support.readers.bounds import delta_wrongs, iceberg_wrongs
from tests.support.readers.engines import readers_of
from tests.support.readers.predicates import Predicate, Semantics
from tests.support.readers.questions import Tally, answered, judge, questions, shapes
from tests.support.readers.spark import VIEW, query, source
from tests.support.readers.tables import Format, Generated, Shape, Stage, generate
from tests.support.streams.long_form import ALL_READERS, READERS_SEED
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.local_tables import genesis, lander, rows
from tests.support.waiting import HANGS_SECONDS

from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.places import Places
from lakebound.tables.table import KAFKA_TYPE, open_table

pytestmark = pytest.mark.spark

COUNTS = {"delta": 1, "iceberg": 2}
"""In a sample. Delta's reader takes some 0.3 s per predicate, Iceberg's 0.05."""
CASES = [(table_format, shape) for table_format in ("delta", "iceberg") for shape in shapes(table_format, COUNTS[table_format])]  # type: ignore[arg-type]
IDS = [f"{table_format}-{shape.name}" for table_format, shape in CASES]
FAST = {"spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.sql.adaptive.enabled": "false"}
"""The rows are few, and each predicate is another plan."""
FLAT = {"write.object-storage.enabled": "true", "write.object-storage.partitioned-paths": "false"}
"""No folder is named after a partition's text, which may be too long for that."""
PREDICATES = 8
AT_ONCE = 60
"""Predicates in one query: the plan of several hundred costs more than it saves."""


def _find(rows: str, text: str) -> list[tuple[int, int]]:
    spark = SparkSession.getActiveSession()
    assert spark is not None
    try:
        for name, value in FAST.items():
            spark.conf.set(name, value)
        spark.sql(rows).createOrReplaceTempView(VIEW)
        return [(row["n"], row["id"]) for row in spark.sql(text).collect()]
    except PySparkException as exc:  # it cannot be pickled
        raise RuntimeError(f"{str(exc)[:1000]} in {rows}: {text}") from None


def _compact(table: str) -> None:
    spark = SparkSession.getActiveSession()
    assert spark is not None
    spark.sql(f"ALTER TABLE ice.{table} SET TBLPROPERTIES ({', '.join(f'{key!r} = {value!r}' for key, value in FLAT.items())})")
    spark.sql(f"CALL ice.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))").collect()
    spark.sql(f"ALTER TABLE ice.{table} UNSET TBLPROPERTIES ({', '.join(map(repr, FLAT))})")


def answers(pool: ProcessPoolExecutor, table: Generated, stage: Stage, asked: list[Predicate]) -> dict[str, list[int]]:
    """Return what Spark finds by each predicate."""
    found: dict[str, list[int]] = defaultdict(list)
    for start in range(0, len(asked), AT_ONCE):
        part = asked[start : start + AT_ONCE]
        for number, row in pool.submit(_find, source(table, stage), query(part)).result(timeout=600):
            found[str(part[number])].append(row)
    return {name: sorted(ids) for name, ids in found.items()}


def _ids(text: str) -> list[int]:
    spark = SparkSession.getActiveSession()
    assert spark is not None
    return sorted(row["id"] for row in spark.sql(text).collect())


def test_dot_beside_struct(tmp_path: Path, pool: ProcessPoolExecutor) -> None:
    """A plain file, which nothing of Lakebound wrote: Spark mistakes the statistics of one column for the other's."""
    largest = 2**63 - 1
    struct = pa.array([{"b": 0}, {"b": 1}], pa.struct([("b", pa.int64())]))
    pq.write_table(pa.table({"id": [0, 1], "a.b": pa.array([largest, 1]), "a": struct}), tmp_path / "plain.parquet")
    question = f"SELECT id FROM parquet.`{tmp_path}` WHERE `a.b` = {largest}"
    assert pool.submit(_ids, question).result(timeout=HANGS_SECONDS) == []
    pushdown = "spark.sql.parquet.filterPushdown"
    pool.submit(_set, pushdown, "false").result(timeout=HANGS_SECONDS)
    try:
        assert pool.submit(_ids, question).result(timeout=HANGS_SECONDS) == [0]
    finally:
        pool.submit(_set, pushdown, "true").result(timeout=HANGS_SECONDS)


def _set(name: str, value: str) -> None:
    spark = SparkSession.getActiveSession()
    assert spark is not None
    spark.conf.set(name, value)


def test_nan_beside_numbers(at: Places, pool: ProcessPoolExecutor) -> None:
    """Iceberg's own bounds leave NaN out: Spark does not find it in what Iceberg compacted. See docs/readers.md."""
    spec = TableSpec(format="iceberg", name="bugs.nan")
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("d", pa.float64()), pa.field("_kafka", KAFKA_TYPE)])
    open_table(spec, at).create(schema, genesis())
    app = lander(spec, at)
    for offset, value in enumerate([1.0, math.nan]):
        batch = rows(offset, offset + 1)
        held = pa.table([batch["id"], pa.array([value]), batch["_kafka"]], schema=schema)
        app.land(offset, offset + 1, write_data_files(held, app.table.layout(), "t"))
    question = f"SELECT id FROM ice.{spec.name} WHERE d > 5"
    assert pool.submit(_ids, question).result(timeout=HANGS_SECONDS) == [1]
    pool.submit(_compact, spec.name).result(timeout=HANGS_SECONDS)
    assert pool.submit(_ids, question).result(timeout=HANGS_SECONDS) == []


@pytest.mark.parametrize(("table_format", "shape"), CASES, ids=IDS)
def test_spark_finds_what_is_there(
    table_format: Format, shape: Shape, at: Places, pool: ProcessPoolExecutor, record_property: Callable[[str, object], None]
) -> None:
    def compact(spec: TableSpec, _: Places) -> None:
        pool.submit(_compact, spec.name).result(timeout=600)

    table = generate(shape, table_format, at, READERS_SEED + 1, compact if table_format == "iceberg" else None)
    leaves = table.stages[2].leaves
    if table_format == "delta":
        checked, wrong = delta_wrongs(at.delta_path(table.spec), leaves, table.spec.partition_by)
    else:
        checked, wrong = iceberg_wrongs(foreign_iceberg(table.spec, at), leaves)
    assert checked and not wrong, "\n".join(wrong[:20])
    tally = Tally(columns=len(leaves))
    for stage in table.stages:
        asked = questions(table, stage, PREDICATES)
        found = answers(pool, table, stage, asked)
        judge(tally, "spark", Semantics(), answered(table, stage, asked, lambda one, found=found: found.get(str(one), [])))
        if table_format == "iceberg" and stage.name == "compacted":
            for reader in readers_of(table, stage) if ALL_READERS else ():
                answerable = [one for one in asked if reader.takes_nan or not one.has_nan]
                judge(tally, reader.name, reader.semantics, answered(table, stage, answerable, reader.find))
    for name, value in {"tables": 1, "statements": checked, **tally.properties()}.items():
        record_property(f"readers {name}", value)
    assert tally.queries and not tally.wrong, "\n".join(tally.wrong[:20])
