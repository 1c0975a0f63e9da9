"""``lakebound try``: what a pipeline would make of its topics' records, without writing anything."""

from __future__ import annotations

import json as json_text
from typing import Annotated, Any

import typer

from lakebound.cli.output import Json, number, print_json, print_rows, printable, say, show

MOST_SHOWN = 40
"""Number of characters of a value that are shown."""

Records = Annotated[int, typer.Option(min=1, max=100_000, help="Number of records to read, over all topics.")]
Oldest = Annotated[bool, typer.Option("--from-beginning", help="Read the oldest records instead of the newest.")]
Against = Annotated[
    bool, typer.Option("--against-landed", help="Read records that have landed, and compare what they give now with the table.")
]
Rows = Annotated[int, typer.Option(min=0, max=100, help="Number of rows to show of each table.")]


def try_records(
    pipeline: Annotated[str, typer.Argument(help="Pipeline name.")],
    records: Records = 1000,
    from_beginning: Oldest = False,
    against_landed: Against = False,
    rows: Rows = 3,
    json: Json = False,
) -> None:
    """Decode and transform some records of a pipeline's topics, and show the rows that would land. Nothing is written.

    --against-landed shows, before a deploy, what the pipeline as it is on disk would change, column by column.

    The result shows how many records give rows, are filtered or are bad, the reasons, and the columns of the tables. Exit
    code 1 if the pipeline could not start. Bad records do not change the exit code.
    """
    from lakebound.cli.trial import try_pipeline
    from lakebound.settings import load_settings
    from lakebound.tables.declared import owned_pipeline

    settings = load_settings()
    spec = owned_pipeline(pipeline, settings)
    which = ("oldest" if from_beginning else "newest") + (" landed" if against_landed else "")
    say(f"try: Spark reads the {which} {number(records)} records of {', '.join(spec.topics)} (it takes some seconds to start)")
    body = try_pipeline(spec, settings, records=records, newest=not from_beginning, rows=rows, against_landed=against_landed)
    if json:
        print_json(body)
    else:
        print_trial(body, against_landed=against_landed)
    raise typer.Exit(1 if body["problems"] else 0)


def print_trial(body: dict[str, Any], *, against_landed: bool = False) -> None:
    """Print what was found.

    Args:
        body: What ``lakebound.cli.trial.try_pipeline`` returns.
        against_landed: Whether the rows were to be compared with those that have landed.
    """
    for problem in body["problems"]:
        show(problem)
    for warning in body["warnings"]:
        show(f"warning: {warning}")
    for line in body["schemas"]:
        show(f"schema: {line}")
    if not body["tables"]:
        return
    for topic, partition, start, end in body["ranges"]:
        show(f"{topic}, partition {partition}: offsets {start} to {end - 1}")
    counts = f"{number(body['landed'])} give {number(body['rows'])} rows, {number(body['filtered'])} are filtered"
    show(f"{number(body['read'])} records: {counts}, {number(body['bad'])} are bad")
    for reason in body["reasons"]:
        show(f"  {reason['reason']}: {number(reason['records'])}")
        for one in reason["examples"]:
            show(f"    {one['topic']}, partition {one['partition']}, offset {one['offset']}: {one['error']}")
    for name, table in body["tables"].items():
        _print_table(name, table)
    if against_landed:
        _print_against(body["against"])
    show("nothing was written")


def _print_against(against: dict[str, Any] | None) -> None:
    if against is None:
        show("no table of the pipeline is there yet: nothing was compared")
        return
    show(
        f"\ncompared with the rows of {against['table']}: {number(against['same'])} are the same, "
        f"{number(against['different'])} differ, {number(against['no_longer'])} would not land any more, "
        f"{number(against['new'])} did not land and would now"
    )
    for name, column in against["columns"].items():
        nulls = f", {number(column['becomes_null'])} of them to null" if column["becomes_null"] else ""
        show(f"  {name}: {number(column['rows'])} rows change{nulls}")
        for one in column["examples"]:
            place = f"{one['topic']}, partition {one['partition']}, offset {one['offset']}"
            show(f"    {place}: {_cell(name, one['landed']) or 'null'} -> {_cell(name, one['now']) or 'null'}")
    if against["not_compared"]:
        show(f"  only in one of the two, and not compared: {', '.join(map(printable, against['not_compared']))}")


def _print_table(name: str, table: dict[str, Any]) -> None:
    show(f"\n{name}" + (f", partitioned by {', '.join(table['partition_by'])}" if table["partition_by"] else ""))
    for change in table["changes"]:
        show(f"  {change}")
    headers = ["column", "type", *(f"row {index + 1}" for index in range(len(table["rows"])))]
    rows = [[column, kind, *(_cell(column, row[column]) for row in table["rows"])] for column, kind in table["columns"]]
    print_rows(headers, rows)


def _cell(column: str, value: Any) -> str:
    if value is None:
        return ""
    if column == "_kafka":
        return f"partition {value['partition']}, offset {value['offset']}"
    text = value if isinstance(value, str) else json_text.dumps(value, ensure_ascii=False)
    cell = printable(text[:MOST_SHOWN], lines=False)
    return cell if len(text) <= MOST_SHOWN else f"{cell}..."
