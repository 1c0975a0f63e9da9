"""The page inside a real Airflow, in a real browser: in its frame, with the values of the command; what it costs the server."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import psutil
import pytest

from lakebound_airflow.page.navigation import URL_PREFIX
from tests.support.airflow.real_stack import Stack
from tests.support.airflow.stack_folder import REPOSITORY
from tests.support.live_processes import asked_of_each, family_of
from tests.support.waiting import HANGS_SECONDS

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(300)]

MAX_GROWN_BYTES = 150 << 20


def test_the_api_server_grows_by_little(stack: Stack) -> None:
    port = stack.airflow.ports.api
    before = _memory(port)
    with stack.requests_of("ada") as requests:
        for _ in range(25):
            for path in ("api/overview", "api/pipelines/orders", "api/pipelines/orders/charts", "api/pipelines/orders/quality"):
                requests.get(f"{URL_PREFIX}/{path}").raise_for_status()
    grown = _memory(port) - before
    print(f"API server: {before >> 20} MiB before, {grown >> 20} MiB more after 100 requests of the page")
    assert grown < MAX_GROWN_BYTES


def test_airflow_shows_the_page_in_its_frame_with_the_values_of_the_command(stack: Stack, browser: Any) -> None:
    stack.running("orders")
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    with stack.requests_of("ada") as requests:
        token = requests.headers["Authorization"].removeprefix("Bearer ")
    context.add_cookies([{"name": "_token", "value": token, "url": stack.airflow.url}])
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" and URL_PREFIX in _url(said) else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(f"{stack.airflow.url}/plugin/lakebound")
    frame = page.frame_locator("iframe")
    frame.locator("tbody tr").first.wait_for(timeout=60_000)
    command = [sys.executable, "-c", "from lakebound.cli import app; app()", "status", "--json"]
    ran = subprocess.run(
        command, env=stack.airflow.environment(), cwd=REPOSITORY, capture_output=True, text=True, timeout=HANGS_SECONDS
    )
    said = {one["pipeline"] for one in json.loads(ran.stdout)["pipelines"]}
    assert {*frame.locator("tbody th").all_inner_texts()} == said
    frame.get_by_role("link", name="orders", exact=True).click()
    frame.locator("#now, #head-now").first.wait_for(timeout=60_000)
    assert frame.locator("h1").inner_text() == "orders"
    assert page.url.startswith(f"{stack.airflow.url}/plugin/lakebound"), "Airflow is still around it"
    context.close()
    assert wrong == []


def _url(said: Any) -> str:
    return str(said.location.get("url", ""))


def _memory(port: int) -> int:
    """Return the resident bytes of who listens on a port, and of its children."""
    listening = {one.pid for one in psutil.net_connections("tcp") if one.status == "LISTEN" and one.laddr.port == port}
    family = {process for pid in listening if pid for process in family_of(pid)}
    return sum(asked_of_each(family, lambda process: process.memory_info().rss).values())
