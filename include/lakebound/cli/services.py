"""``lakebound up``, ``down``, ``demo``: the embedded services."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from lakebound.cli.output import Json, print_json, say, show

if TYPE_CHECKING:
    from lakebound.local.stack import Services

KafkaPort = Annotated[int, typer.Option(help="Kafka's port. If it is in use, another port is chosen and printed.")]
AirflowPort = Annotated[int, typer.Option(help="Port of Airflow's UI. If it is in use, another port is chosen and printed.")]


def up(kafka_port: KafkaPort = 9092, airflow_port: AirflowPort = 8080, json: Json = False) -> None:
    """Start Kafka and Airflow and leave them running. Services that already run are not restarted."""
    from lakebound.local import stack
    from lakebound.settings import load_settings

    services = stack.up(load_settings(), say, kafka_port=kafka_port, airflow_port=airflow_port)
    if json:
        print_json(asdict(services))
        return
    show(f"Kafka:   {services.kafka}")
    show(f"Airflow: {services.airflow_url}  user {services.airflow_user}, password {_password(services)}")
    show("Next: `lakebound start PIPELINE` (such as orders), `lakebound produce`, and `lakebound status`.")


def down(json: Json = False) -> None:
    """Stop Airflow, the streams and Kafka gracefully, and a demo that runs. Tables and state stay on disk."""
    from lakebound.local import stack
    from lakebound.local.earlier_demo import end_demo
    from lakebound.settings import load_settings

    settings = load_settings()
    try:
        end_demo(settings, say, "down")
    finally:
        stack.down(settings, say)
    if json:
        print_json({"services": [asdict(service) for service in stack.status(settings)]})


Running = Annotated[
    bool, typer.Option("--running", help="Use the Kafka and the Airflow that already run, and do not stop them.")
]


def demo(running: Running = False) -> None:
    """Start Kafka and Airflow, land a stream for a minute, prove it, and stop everything."""
    from lakebound.local.demo import run_demo, run_demo_on_running
    from lakebound.settings import load_settings

    code = run_demo_on_running(load_settings()) if running else run_demo(load_settings())
    say("Next: `make up`, then docs/getting-started.md.")
    raise typer.Exit(code)


def _password(services: Services) -> str:
    """Return the password for a person at a terminal; a log gets the name of the file instead."""
    from json import loads

    if not sys.stdout.isatty():
        return f"in {services.airflow_password_file}"
    return str(loads(services.airflow_password_file.read_text())[services.airflow_user])
