"""Where a table lies, and the lines that open it in Spark SQL, pandas, Polars, DuckDB and PyIceberg. Nothing is opened."""

from __future__ import annotations

import json
from dataclasses import dataclass

from lakebound.spec.pipeline import TableSpec
from lakebound.storage.location import Location
from lakebound.tables.places import Places

_SQLITE = "sqlite:///"


@dataclass(frozen=True)
class IcebergCatalog:
    """The catalog of the Iceberg tables.

    Attributes:
        name: By which PyIceberg and Spark know it.
        uri: Its SQLAlchemy address, as PyIceberg takes it.
        jdbc_uri: Its address as Spark takes it.
        warehouse: The folder below which its tables lie.
    """

    name: str
    uri: str
    jdbc_uri: str
    warehouse: str


@dataclass(frozen=True)
class TableAccess:
    """How to open one table.

    Attributes:
        path: Its folder.
        catalog: Of an Iceberg table; None of a Delta table, whose folder says all.
        snippets: Per tool, the lines that read it.
    """

    path: str
    catalog: IcebergCatalog | None
    snippets: dict[str, str]


def access_of(table: TableSpec, places: Places) -> TableAccess:
    """Return how to open a table, which need not exist yet."""
    if table.format == "delta":
        folder = places.folder(table)
        return TableAccess(folder.address, None, delta_snippets(folder))
    catalog = catalog_of(places)
    # As PyIceberg's SQL catalog lays out what it creates.
    path = str(places.iceberg_warehouse / table.namespace / table.short_name)
    return TableAccess(path, catalog, iceberg_snippets(catalog, f"{table.namespace}.{table.short_name}"))


def catalog_of(places: Places) -> IcebergCatalog:
    """Return the catalog of the Iceberg tables, without the password that its address may hold."""
    from sqlalchemy import make_url

    from lakebound.tables.iceberg.catalog import CATALOG_NAME

    uri = make_url(places.iceberg_catalog_uri).render_as_string(hide_password=True)
    jdbc = f"jdbc:sqlite:{uri.removeprefix(_SQLITE)}" if uri.startswith(_SQLITE) else f"jdbc:{uri}"
    return IcebergCatalog(CATALOG_NAME, uri, jdbc, f"file://{places.iceberg_warehouse}")


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


def iceberg_snippets(catalog: IcebergCatalog, name: str) -> dict[str, str]:
    """Return per tool the lines that read an Iceberg table.

    Args:
        catalog: In which it is.
        name: ``namespace.table``.
    """
    opened = (
        f"from pyiceberg.catalog.sql import SqlCatalog\n"
        f'catalog = SqlCatalog("{catalog.name}", uri="{catalog.uri}")\n'
        f'table = catalog.load_table("{name}")'
    )
    spark = f"spark.sql.catalog.{catalog.name}"
    return {
        "Spark SQL": "-- with the packages org.apache.iceberg:iceberg-spark-runtime and org.xerial:sqlite-jdbc, and these:\n"
        f"--   {spark}=org.apache.iceberg.spark.SparkCatalog\n"
        f"--   {spark}.type=jdbc\n"
        f"--   {spark}.uri={catalog.jdbc_uri}\n"
        f"--   {spark}.warehouse={catalog.warehouse}\n"
        f"SELECT * FROM {catalog.name}.{name}",
        "PyIceberg": f"{opened}\nframe = table.scan().to_arrow()",
        "pandas": f"{opened}\nframe = table.scan().to_pandas()",
        "Polars": f"import polars as pl\n{opened}\nframe = pl.scan_iceberg(table).collect()",
        "DuckDB": f'{opened}\norders = table.scan().to_duckdb("orders")\nframe = orders.sql("SELECT * FROM orders")',
    }
