"""What a user with the role of a viewer may do under a real Airflow: look."""

from __future__ import annotations

import re

import pytest

from lakebound.local.airflow_client import AirflowAnswerError
from lakebound_airflow.plugin import LakeboundPlugin
from tests.support.airflow.real_stack import Stack, request_until_taken

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(240)]

READS = {"/api/v2/dags/{dag_id}/dagRuns/list", "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/list"}
"""Routes that are asked by POST and change nothing."""
OWN = {f"/api/v2/dags/{{dag_id}}/{word}" for word in ("favorite", "unfavorite")}
"""Routes that change what the user sees first, and nothing for others."""
FOUND_FIRST = re.compile(r"/api/v2/(backfills/\{backfill_id\}/|parseDagFile/)")
"""Routes that look for the thing before they ask who the user is: what is not there is not found."""
DELETION = {"actions": [{"action": "delete", "entities": ["some"]}]}
BODIES = {
    "/api/v2/connections/enqueue-test": {"connection_id": "some", "conn_type": "http"},
    "/api/v2/dags/{dag_id}/clearDagRuns": {"dag_runs": [{"dag_run_id": "some"}]},
    **dict.fromkeys(("/api/v2/connections", "/api/v2/pools", "/api/v2/variables"), DELETION),
    **dict.fromkeys(("/api/v2/dags/{dag_id}/dagRuns", "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances"), DELETION),
}
"""For routes that look into the request before they refuse it."""
OF_NO_DAG = {"backfill_id": "1", "asset_id": "1", "job_id": "1", "map_index": "-1"}


def test_a_viewer_sees_every_dag_and_changes_none(stack: Stack) -> None:
    with stack.client_of("guest") as guest:
        dags = guest.dags()
        assert set(dags) == set(stack.client.dags())
        assert {"recover", "control__orders", "maintain__orders", "ingest__orders"} <= set(dags)
        for dag_id in dags:
            with pytest.raises(AirflowAnswerError, match="403"):
                guest.trigger(dag_id)
            with pytest.raises(AirflowAnswerError, match="403"):
                guest.pause(dag_id)


def test_every_route_that_changes_something_is_refused_to_a_viewer(stack: Stack) -> None:
    known = {"Lakebound", "lakebound metrics"}  # test_page.py and test_metrics_page.py ask their routes
    assert {one["name"] for one in LakeboundPlugin.fastapi_apps} <= known, "routes of our own need a test of their own"
    with stack.requests_of("guest") as requests:
        paths = requests.get("/openapi.json").raise_for_status().json()["paths"]
        routes = [
            (method, path)
            for path, methods in paths.items()
            for method in methods
            if method in ("post", "put", "patch", "delete") and path.startswith("/api/v2/") and path not in READS | OWN
        ]
        assert len(routes) > 30
        given = {
            (method, path): request_until_taken(requests, method.upper(), _filled(path), BODIES.get(path, {})).status_code
            for method, path in routes
        }
    passed = {
        (method, path): status
        for (method, path), status in given.items()
        if status != (404 if FOUND_FIRST.match(path) else 403)
    }
    assert not passed, "\n".join(map(str, passed.items()))


def _filled(path: str) -> str:
    """Return the path of a route with a value in place of each parameter."""
    named = {"dag_id": "recover", "task_id": "repair", **OF_NO_DAG}
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda match: named.get(match[1], "some"), path)
