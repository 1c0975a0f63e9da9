"""How to open an Iceberg table with other tools."""

from __future__ import annotations

from lakebound.errors import NoCatalogError
from lakebound.spec.table import TableSpec
from lakebound.spec.warehouse import GlueCatalogSpec, RestCatalogSpec, SqlCatalogSpec
from lakebound.tables.access import IcebergCatalog, TableAccess
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


def access_of(table: TableSpec, places: Places) -> TableAccess:
    """Return how to open a table, which need not exist yet."""
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
