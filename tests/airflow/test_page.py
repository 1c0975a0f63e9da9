"""The page in a real Airflow: it is in the navigation, asks for rights everywhere, and says what ``lakebound status`` says."""

from __future__ import annotations

import json
import subprocess
import sys

import httpx
import pytest

from lakebound_airflow.page.headers import HEADERS
from lakebound_airflow.page.navigation import URL_PREFIX
from tests.support.airflow.page_routes import addresses
from tests.support.airflow.real_stack import Stack, request_until_taken
from tests.support.airflow.stack_folder import REPOSITORY
from tests.support.waiting import HANGS_SECONDS

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(240)]

SAME = ("desired", "alive", "situation", "outdated", "app")
"""What does not change between two looks at the pipeline that lives."""


def test_strangers_get_nothing_and_a_viewer_sees_every_route(stack: Stack) -> None:
    asked = list(addresses("orders"))
    assert len(asked) >= 12
    with (
        httpx.Client(base_url=stack.airflow.url, timeout=HANGS_SECONDS, trust_env=False) as stranger,
        stack.requests_of("guest") as guest,
        stack.requests_of("ada") as ada,
    ):
        for address in asked:
            for requests, status in ((stranger, 401), (guest, 403 if address.holds_values else 200), (ada, 200)):
                answer = requests.get(URL_PREFIX + address.path)
                assert answer.status_code == status, address
                assert HEADERS.items() <= {name: answer.headers.get(name) for name in HEADERS}.items(), address
        forged = stranger.get(f"{URL_PREFIX}/api/overview", headers={"Authorization": "Bearer forged"})
        assert forged.status_code in (401, 403)


def test_airflow_has_it_in_its_navigation(stack: Stack) -> None:
    with stack.requests_of("admin") as requests:
        plugins = requests.get("/api/v2/plugins").raise_for_status().json()["plugins"]
    found = next(one for one in plugins if one["name"] == "lakebound")
    assert [(one["name"], one["href"], one["url_route"]) for one in found["external_views"]] == [
        ("Lakebound", "lakebound/", "lakebound")
    ]


def test_the_page_says_what_status_says(stack: Stack) -> None:
    stack.running("orders")
    command = [sys.executable, "-c", "from lakebound.cli import app; app()", "status", "--json"]
    with stack.requests_of("guest") as requests:
        ran = subprocess.run(
            command, env=stack.airflow.environment(), cwd=REPOSITORY, capture_output=True, text=True, timeout=HANGS_SECONDS
        )
        rows = {
            row["pipeline"]: row for row in requests.get(f"{URL_PREFIX}/api/overview").raise_for_status().json()["pipelines"]
        }
    assert ran.returncode == 0, ran.stderr
    said = {one["pipeline"]: one for one in json.loads(ran.stdout)["pipelines"]}
    assert rows.keys() == said.keys() and "broken" in rows
    assert {name: rows["orders"][name] for name in SAME} == {name: said["orders"][name] for name in SAME}
    assert rows["broken"]["need"] == "today"


def test_a_viewer_is_offered_no_action_and_an_operator_starts_one_as_the_page_does(stack: Stack) -> None:
    address = f"{URL_PREFIX}/api/pipelines/orders"
    with stack.requests_of("guest") as guest, stack.requests_of("ada") as ada:
        assert guest.get(address).raise_for_status().json()["actions"] == []
        offered = {one["name"]: one for one in ada.get(address).raise_for_status().json()["actions"]}
        assert offered.keys() == {"start", "stop", "restart", "hold", "prove", "recover"}
        start = offered["start"]
        # The session of the browser is a cookie, not a header.
        token = ada.headers.pop("Authorization").removeprefix("Bearer ")
        ada.cookies.set("_token", token)
        body = {"logical_date": None, "conf": {**start["conf"], "reason": "from the page"}}
        answer = request_until_taken(ada, "POST", f"/api/v2/dags/{start['dag_id']}/dagRuns", body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["triggering_user_name"] == "ada"
