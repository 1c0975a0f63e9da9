"""Whether a service of docker-compose.yaml works, by what it says itself; ends with 0 when it does.

``python -m lakebound.local.container.health airflow triggerer`` asks Airflow's API server, ``… spark http://…/json/`` the page
of Spark's master or worker. It only uses the standard library: it runs every few seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any
from urllib.request import ProxyHandler, build_opener

TIMEOUT_SECONDS = 5.0
AIRFLOW_URL = "http://airflow-api-server:8080"


def component_is_healthy(body: Any, component: str) -> bool:
    """Whether Airflow's answer of ``/api/v2/monitor/health`` says that a component gives signs of life."""
    found = body.get(component) if isinstance(body, dict) else None
    return isinstance(found, dict) and found.get("status") == "healthy"


def daemon_is_healthy(body: Any) -> bool:
    """Whether the JSON page of Spark's master says that it leads, or that of a worker that it knows a master."""
    if not isinstance(body, dict):
        return False
    return body.get("status") == "ALIVE" if "status" in body else bool(body.get("masterwebuiurl"))


def main(arguments: list[str] | None = None) -> int:
    """Run ``python -m lakebound.local.container.health``; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lakebound.local.container.health", description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    airflow = kinds.add_parser("airflow", help="a component of Airflow")
    airflow.add_argument("component", choices=("metadatabase", "scheduler", "triggerer", "dag_processor"))
    airflow.add_argument("--url", default=AIRFLOW_URL, help="address of the API server")
    spark = kinds.add_parser("spark", help="Spark's master or a worker")
    spark.add_argument("url", help="address of its JSON page")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.kind == "spark":
            return 0 if daemon_is_healthy(_ask(chosen.url)) else 1
        return 0 if component_is_healthy(_ask(f"{chosen.url}/api/v2/monitor/health"), chosen.component) else 1
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1


def _ask(url: str) -> Any:
    # The services are in one network: a proxy of the environment would not find them.
    with build_opener(ProxyHandler({})).open(url, timeout=TIMEOUT_SECONDS) as answer:
        return json.load(answer)


if __name__ == "__main__":
    sys.exit(main())
