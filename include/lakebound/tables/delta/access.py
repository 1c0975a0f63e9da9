"""How to open a Delta table with other tools."""

from __future__ import annotations

import json

from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.tables.access import TableAccess
from lakebound.tables.places import Places


def access_of(table: TableSpec, places: Places) -> TableAccess:
    """Return how to open a table, which need not exist yet."""
    folder = places.folder(table)
    return TableAccess(folder.address, None, delta_snippets(folder))


def delta_snippets(folder: Location) -> dict[str, str]:
    """Return per tool the lines that read the Delta table in a folder; of a store they name no key, but where keys are."""
    path, keys, options = folder.address, "", ""
    if not folder.is_local:
        endpoint = folder.store.endpoint if folder.store is not None else None
        known = {"aws_endpoint": endpoint, "aws_allow_http": "true"} if endpoint else {}
        keys = f"# keys: the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION\nstore = {json.dumps(known)}\n"
        options = ", storage_options=store"
    opened = f'from deltalake import DeltaTable\n{keys}table = DeltaTable("{path}"{options})'
    in_spark = path.replace("s3://", "s3a://", 1)
    return {
        "Spark SQL": "-- with the package io.delta:delta-spark, and these two settings:\n"
        "--   spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension\n"
        "--   spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog\n"
        f"SELECT * FROM delta.`{in_spark}`",
        "pandas": f"{opened}\nframe = table.to_pandas()",
        "Polars": f'import polars as pl\n{keys}frame = pl.scan_delta("{path}"{options}).collect()',
        "DuckDB": f'import duckdb\n{opened}\norders = table.to_pyarrow_dataset()\nframe = duckdb.sql("SELECT * FROM orders")',
    }
