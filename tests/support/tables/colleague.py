"""A colleague who works on the stream's tables with Spark SQL, and what each reader sees afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import polars as pl
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from tests.support.streams.spark_conf import source_of
from tests.support.tables.foreign_hands import foreign_iceberg

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Colleague:
    """Works by SQL in the Spark session of a process (``tests/spark/conftest.py``: ``pool``).

    Attributes:
        process: Has the session.
        table: Whose rows are asked for.
        at: Where it is.
    """

    process: ProcessPoolExecutor
    table: TableSpec
    at: Places

    def does(self, *statements: str) -> Rows:
        """Run statements in which ``{t}`` is the table, and return the rows of the last one.

        Raises:
            RuntimeError: Spark refuses one of them.
        """
        wanted = [one.replace("{t}", source_of(self.table, self.at)) for one in statements]
        return self.process.submit(_run, wanted).result(timeout=500)

    def readers(self, columns: Sequence[str]) -> Iterator[tuple[str, Rows]]:
        """Yield what each reader of an Iceberg table sees of some columns, sorted by the first."""
        yield "spark", _sorted(self.does(f"SELECT {', '.join(columns)} FROM {{t}}"), columns)
        foreign = foreign_iceberg(self.table, self.at)
        yield "pyiceberg", _sorted(foreign.scan(selected_fields=tuple(columns)).to_arrow().to_pylist(), columns)
        yield "polars", _sorted(pl.scan_iceberg(foreign).select(columns).collect().to_dicts(), columns)


def _run(statements: Sequence[str]) -> Rows:
    spark = SparkSession.getActiveSession()
    assert spark is not None
    found: Rows = []
    for one in statements:
        try:
            found = [row.asDict(recursive=True) for row in spark.sql(one).collect()]
        except PySparkException as exc:  # it cannot be pickled
            raise RuntimeError(f"{one}: {exc}") from None
    return found


def _sorted(rows: Rows, columns: Sequence[str]) -> Rows:
    return sorted(
        ({name: row[name] for name in columns} for row in rows), key=lambda row: (row[columns[0]] is None, row[columns[0]])
    )
