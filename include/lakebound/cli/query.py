"""``lakebound query``: SQL on what landed."""

from __future__ import annotations

import csv
import json as json_text
import math
import sys
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakebound.cli.output import Json, print_json, print_rows, printable, say, show
from lakebound.spec.table_format import TableFormat

if TYPE_CHECKING:
    from lakebound.inspection.query import Answer

DEFAULT_ROWS = 100
NULL = "NULL"


Sql = Annotated[str, typer.Argument(help='For example: "select status, count(*) from sales.orders group by status".')]
Limit = Annotated[int, typer.Option(min=0, help="Maximum number of rows to show. 0: all.")]
FormatOption = Annotated[
    TableFormat | None, typer.Option("--format", help="Format of a table whose name exists in both formats.")
]
Csv = Annotated[
    bool,
    typer.Option(
        "--csv",
        help="Print CSV instead of text. Control characters are escaped. A text that a spreadsheet would take for a "
        "formula gets a ' before it.",
    ),
]
Raw = Annotated[bool, typer.Option("--raw", help="With --csv: print texts as they are, for programs that read them.")]
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The beginnings of what a spreadsheet calculates, as OWASP lists them; the last four are those of East Asian keyboards."""


def query(
    sql: Sql, format_: FormatOption = None, limit: Limit = DEFAULT_ROWS, csv: Csv = False, raw: Raw = False, json: Json = False
) -> None:
    """Run a read-only SQL query on the tables of all pipelines, without Spark. It reads no other files and no addresses.

    Write a table as NAMESPACE.TABLE. If both formats have a table of that name, write delta.NAMESPACE.TABLE or
    iceberg.NAMESPACE.TABLE, or give --format. The SQL dialect is that of Polars.
    """
    from lakebound.cli.tables import chosen_tables
    from lakebound.inspection.query import PipelineTables, run_query
    from lakebound.settings import load_settings
    from lakebound.tables.declared import shown_pipelines
    from lakebound.tables.places import places_of

    if csv and json:
        raise typer.BadParameter("give either --csv or --json", param_hint="--csv")
    if raw and not csv:
        raise typer.BadParameter("it goes with --csv", param_hint="--raw")
    settings = load_settings()
    loaded = shown_pipelines(settings)
    tables = {
        name: PipelineTables(chosen_tables(spec, None), places_of(settings, spec.warehouse))
        for name, spec in loaded.specs.items()
    }
    answer = run_query(sql, tables, chosen=format_, limit=limit)
    _print(answer, as_csv=csv, as_json=json, as_it_is=raw)
    if answer.is_cut:
        say(f"only the first {limit:,} rows are shown; use --limit 0 to show all")


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: times in ISO 8601, decimals and numbers that are none as text, bytes escaped."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, Decimal | timedelta) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value


def text(value: Any) -> str:
    """Return a value as one cell."""
    found = plain(value)
    if isinstance(found, dict | list):
        return json_text.dumps(found, ensure_ascii=False)
    return str(found).lower() if isinstance(found, bool) else str(found)


def csv_cell(value: Any) -> str:
    """Return a value as one cell of CSV that does nothing to a terminal and nothing in a spreadsheet."""
    if value is None:
        return ""
    found = printable(text(value))
    is_number = isinstance(value, int | float | Decimal)
    return f"'{found}" if not is_number and found.startswith(_FORMULA) else found


def _print(answer: Answer, *, as_csv: bool, as_json: bool, as_it_is: bool) -> None:
    names = [name for name, _ in answer.columns]
    if as_json:
        columns = [{"name": name, "type": kind} for name, kind in answer.columns]
        rows = [dict(zip(names, map(plain, row), strict=True)) for row in answer.rows]
        print_json({"columns": columns, "rows": rows, "is_cut": answer.is_cut})
    elif as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        if as_it_is:
            writer.writerow(names)
            writer.writerows(["" if value is None else text(value) for value in row] for row in answer.rows)
        else:
            writer.writerow(map(csv_cell, names))
            writer.writerows(map(csv_cell, row) for row in answer.rows)
    else:
        numbers = [name for name, kind in answer.columns if kind.startswith(("Int", "UInt", "Float", "Decimal"))]
        shown = [[NULL if value is None else printable(text(value), lines=False) for value in row] for row in answer.rows]
        print_rows(names, shown, right=numbers)
        show(f"{len(answer.rows):,} row" + ("" if len(answer.rows) == 1 else "s"))
