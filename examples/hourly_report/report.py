"""A report of one hour of orders: ``python report.py --hour 2026-11-24T13 --output FOLDER``.

It reads one partition of the table and replaces one file, so it can be made again at any time, with the same result.
"""

from __future__ import annotations

import argparse
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import And, GreaterThanOrEqual, LessThan

TABLE = "shop.hourly_orders"


def main() -> None:
    """Make the report that the command line asks for."""
    parser = argparse.ArgumentParser(description="Write the orders of one hour, by currency and status, as CSV.")
    parser.add_argument("--hour", type=hour_of, required=True, help="in UTC, such as 2026-11-24T13")
    parser.add_argument("--output", type=Path, default=Path("reports"), help="folder of the reports")
    options = parser.parse_args()
    warehouse = os.environ.get("LAKEBOUND_WAREHOUSE") or f"{os.environ.get('LAKEBOUND_HOME', '.lakebound')}/warehouse"
    file = write_report(report_of(read_hour(Path(warehouse), options.hour)), options.output, options.hour)
    print(f"{file}:\n{file.read_text()}", end="")


def hour_of(text: str) -> datetime:
    """Return when an hour begins, from such text as ``2026-11-24T13``."""
    return datetime.strptime(text, "%Y-%m-%dT%H").replace(tzinfo=UTC)


def read_hour(warehouse: Path, hour: datetime) -> pa.Table:
    """Return the orders of one hour; Iceberg reads the files of its partition alone.

    Args:
        warehouse: ``LAKEBOUND_WAREHOUSE``; the catalog is in it.
        hour: When the hour begins. Its end belongs to the next one.
    """
    catalog = SqlCatalog("ice", uri=f"sqlite:///{warehouse}/iceberg/catalog.db")
    of_hour = And(
        GreaterThanOrEqual("placed_at", hour.isoformat()), LessThan("placed_at", (hour + timedelta(hours=1)).isoformat())
    )
    return catalog.load_table(TABLE).scan(row_filter=of_hour, selected_fields=("status", "currency", "total")).to_arrow()


def report_of(orders: pa.Table) -> pl.DataFrame:
    """Return the number of orders and their total, by currency and status."""
    found = pl.from_arrow(orders)
    assert isinstance(found, pl.DataFrame)
    return (
        found.group_by("currency", "status")
        .agg(pl.len().alias("orders"), pl.col("total").sum())
        .sort("currency", "status", nulls_last=True)
    )


def write_report(report: pl.DataFrame, folder: Path, hour: datetime) -> Path:
    """Replace the report of an hour in one step, and return its file: a reader sees the old or the new one whole."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{hour:%Y-%m-%dT%H}.csv"
    unfinished = file.with_suffix(".unfinished")
    report.write_csv(unfinished)
    unfinished.replace(file)
    return file


if __name__ == "__main__":
    main()
