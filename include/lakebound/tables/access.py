"""Where a table lies, and the lines that open it in Spark SQL, pandas, Polars, DuckDB and PyIceberg. Nothing is opened."""

from __future__ import annotations

import json
from dataclasses import dataclass

from lakebound.errors import NoCatalogError
from lakebound.spec.table import TableSpec
from lakebound.spec.warehouse import GlueCatalogSpec, RestCatalogSpec, SqlCatalogSpec
from lakebound.storage.location import Location
from lakebound.tables.places import Places

_SQLITE = "sqlite:///"
_KEYS = "# user, password or token, and the keys of the store: as properties of the catalog, see PyIceberg's page of settings\n"
_OPENED = {
    "sql": 'from pyiceberg.catalog.sql import SqlCatalog\ncatalog = SqlCatalog("{catalog.name}", uri="{catalog.uri}")',
    "rest": _KEYS
    + 'from pyiceberg.catalog.rest import RestCatalog\ncatalog = RestCatalog("{catalog.name}", uri="{catalog.uri}")',
    "glue": "from pyiceberg.catalog.glue import GlueCatalog\n"
    'catalog = GlueCatalog("{catalog.name}", **{{"glue.region": "{catalog.uri}"}})',
}
_DRIVERS = {
    "sql": "the JDBC driver of the database (org.xerial:sqlite-jdbc, org.postgresql:postgresql)",
    "rest": "org.apache.iceberg:iceberg-aws-bundle",
    "glue": "org.apache.iceberg:iceberg-aws-bundle",
}


@dataclass(frozen=True)
class IcebergCatalog:
    """The catalog of the Iceberg tables. Names no secret.

    Attributes:
        name: By which PyIceberg and Spark know it.
        kind: ``sql``, ``rest`` or ``glue``.
        uri: Its address, as PyIceberg takes it; of Glue its region.
        jdbc_uri: Its address as Spark takes it; empty where it is not of SQL.
        warehouse: The folder below which its tables lie.
    """

    name: str
    kind: str
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
    # As PyIceberg's SQL catalog lays out what it creates; where a REST catalog puts a table, it decides itself.
    path = (places.iceberg_folder / table.namespace / table.short_name).address
    return TableAccess(path, catalog, iceberg_snippets(catalog, f"{table.namespace}.{table.short_name}"))


def catalog_of(places: Places) -> IcebergCatalog:
    """Return the catalog of the Iceberg tables, without the password that its address may hold.

    Raises:
        NoCatalogError: The warehouse has none.
    """
    from sqlalchemy import make_url

    from lakebound.tables.iceberg.catalog import CATALOG_NAME

    folder = places.iceberg_folder.uri
    match places.warehouse.catalog:
        case SqlCatalogSpec():
            uri = make_url(places.iceberg_catalog_uri).render_as_string(hide_password=True)
            jdbc = (
                f"jdbc:sqlite:{uri.removeprefix(_SQLITE)}" if uri.startswith(_SQLITE) else f"jdbc:{uri.replace('+psycopg', '')}"
            )
            return IcebergCatalog(CATALOG_NAME, "sql", uri, jdbc, folder)
        case RestCatalogSpec() as rest:
            return IcebergCatalog(CATALOG_NAME, "rest", rest.uri, "", rest.warehouse or "")
        case GlueCatalogSpec() as glue:
            return IcebergCatalog(CATALOG_NAME, "glue", glue.region, "", folder)
        case None:
            raise NoCatalogError(places.warehouse.location)


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
    opened = f'{_OPENED[catalog.kind].format(catalog=catalog)}\ntable = catalog.load_table("{name}")'
    spark = f"spark.sql.catalog.{catalog.name}"
    return {
        "Spark SQL": f"-- with the packages org.apache.iceberg:iceberg-spark-runtime and {_DRIVERS[catalog.kind]}, and these:\n"
        f"--   {spark}=org.apache.iceberg.spark.SparkCatalog\n"
        f"--   {spark}.type={'jdbc' if catalog.kind == 'sql' else catalog.kind}\n"
        + (f"--   {spark}.uri={catalog.jdbc_uri or catalog.uri}\n" if catalog.kind != "glue" else "")
        + (f"--   {spark}.warehouse={catalog.warehouse}\n" if catalog.warehouse else "")
        + f"SELECT * FROM {catalog.name}.{name}",
        "PyIceberg": f"{opened}\nframe = table.scan().to_arrow()",
        "pandas": f"{opened}\nframe = table.scan().to_pandas()",
        "Polars": f"import polars as pl\n{opened}\nframe = pl.scan_iceberg(table).collect()",
        "DuckDB": f'{opened}\norders = table.scan().to_duckdb("orders")\nframe = orders.sql("SELECT * FROM orders")',
    }
