"""``lakebound report``."""

from __future__ import annotations

import sys
import time
from datetime import date, datetime
from pathlib import Path
from typing import Annotated

import typer

from lakebound.cli.output import Json, print_json, printable


def report(
    day: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"], help="Day in UTC, such as 2026-11-24. Default: yesterday; on the first day, today so far."
        ),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write the report to this file, as Markdown. An existing file is replaced.")
    ] = None,
    json: Json = False,
) -> None:
    """Show the report of a day: rows, bad records, freshness, incidents, files. It reads only the state, and no table."""
    from lakebound.alerts.load import load_alerts_or_default
    from lakebound.alerts.wording import Links
    from lakebound.report.kept import report_of_day
    from lakebound.report.page import markdown_of
    from lakebound.settings import load_settings

    settings = load_settings()
    chosen: date | None = None if day is None else day.date()
    found = report_of_day(settings, chosen, time.time())
    page = markdown_of(found, Links(runbooks=load_alerts_or_default(settings)[0].runbooks))
    if markdown is not None:
        markdown.write_text(page, encoding="utf-8")
    if json:
        print_json(found.model_dump(mode="json"))
    elif markdown is None:
        _print(page)


def _print(page: str) -> None:
    """Print the page: laid out for a person, as it is for a pipe."""
    if not sys.stdout.isatty():
        typer.echo(page, nl=False)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(printable(page)))
