"""The command ``lakebound``. What a command needs is imported when it runs, so that ``--help`` answers at once."""

from __future__ import annotations

from typing import Annotated

import typer

from lakebound import __version__
from lakebound.cli.acknowledge import acknowledge
from lakebound.cli.alerts import alerts
from lakebound.cli.backup import backup, restore
from lakebound.cli.bind_secrets import bind_secrets
from lakebound.cli.check import check, schema
from lakebound.cli.control import control
from lakebound.cli.create_topic import create_topic
from lakebound.cli.doctor import doctor
from lakebound.cli.erase import erase
from lakebound.cli.health import health
from lakebound.cli.incidents import incidents
from lakebound.cli.late import late
from lakebound.cli.maintain import maintain
from lakebound.cli.metrics import metrics
from lakebound.cli.new import new
from lakebound.cli.output import OneSentence
from lakebound.cli.produce import produce
from lakebound.cli.prove import prove
from lakebound.cli.quarantine import quarantine
from lakebound.cli.query import query
from lakebound.cli.rebuild_store import rebuild_store
from lakebound.cli.recover import recover
from lakebound.cli.redo import redo
from lakebound.cli.replay import replay
from lakebound.cli.report import report
from lakebound.cli.rewind import rewind
from lakebound.cli.run import run
from lakebound.cli.services import demo, down, up
from lakebound.cli.start import start
from lakebound.cli.status import status
from lakebound.cli.stop import stop
from lakebound.cli.tables import ledger, tables
from lakebound.cli.tidy import tidy
from lakebound.cli.try_pipeline import try_records
from lakebound.cli.validate import validate
from lakebound.cli.watch import watch

app = typer.Typer(
    name="lakebound",
    cls=OneSentence,
    help="Lands Kafka topics in Delta Lake and Apache Iceberg tables under Airflow, and proves that every record arrived.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

SERVICES, PIPELINES, LANDED = "Embedded services", "Pipelines", "What landed"

app.command(rich_help_panel=SERVICES)(demo)
app.command(rich_help_panel=SERVICES)(up)
app.command(rich_help_panel=SERVICES)(down)
app.command("produce", rich_help_panel=SERVICES)(produce)
app.command(rich_help_panel=PIPELINES)(new)
app.command("create-topic", rich_help_panel=PIPELINES)(create_topic)
app.command(rich_help_panel=PIPELINES)(check)
app.command("try", rich_help_panel=PIPELINES)(try_records)
app.command(rich_help_panel=PIPELINES)(schema)
app.command("bind-secrets", rich_help_panel=PIPELINES)(bind_secrets)
app.command(rich_help_panel=PIPELINES)(status)
app.command(rich_help_panel=PIPELINES)(metrics)
app.command(rich_help_panel=PIPELINES)(report)
app.command(rich_help_panel=PIPELINES)(start)
app.command(rich_help_panel=PIPELINES)(stop)
app.command(rich_help_panel=PIPELINES)(control)
app.command(rich_help_panel=PIPELINES)(run)
app.command(rich_help_panel=PIPELINES)(replay)
app.command(rich_help_panel=PIPELINES)(doctor)
app.command(rich_help_panel=PIPELINES)(recover)
app.command(rich_help_panel=PIPELINES)(rewind)
app.command(rich_help_panel=PIPELINES)(redo)
app.command(rich_help_panel=PIPELINES)(erase)
app.command("rebuild-store", rich_help_panel=PIPELINES)(rebuild_store)
app.command(rich_help_panel=PIPELINES)(incidents)
app.command(rich_help_panel=PIPELINES)(acknowledge)
app.command(rich_help_panel=PIPELINES)(backup)
app.command(rich_help_panel=PIPELINES)(restore)
app.command(rich_help_panel=PIPELINES)(alerts)
app.command(rich_help_panel=PIPELINES)(watch)
app.command(rich_help_panel=PIPELINES)(tidy)
app.command(rich_help_panel=LANDED)(prove)
app.command(rich_help_panel=LANDED)(quarantine)
app.command(rich_help_panel=LANDED)(late)
app.command(rich_help_panel=LANDED)(ledger)
app.command(rich_help_panel=LANDED)(tables)
app.command(rich_help_panel=LANDED)(query)
app.command(rich_help_panel=LANDED)(health)
app.command(rich_help_panel=LANDED)(maintain)
app.command(rich_help_panel=LANDED)(validate)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def main(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Lands Kafka topics in Delta Lake and Apache Iceberg tables under Airflow, and proves that every record arrived."""
    import sys

    import structlog

    # What a command answers is on the standard output, perhaps as JSON: a warning must not stand in it.
    structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))
