"""The page /lakebound/metrics of a real API server, read as Prometheus reads it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from lakebound.metrics.page import metrics_page
from tests.support.airflow.real_stack import Stack
from tests.support.airflow.stack_folder import METRICS_TOKEN, PIPELINES, SEARCHES
from tests.support.waiting import HANGS_SECONDS, wait_until

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(420)]

TOKEN = "canary-71c0aa5d"
PAGE = "/lakebound/metrics"


@pytest.fixture
def requests(stack: Stack) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=stack.airflow.url, timeout=HANGS_SECONDS, trust_env=False) as found:
        yield found


def series(page: str) -> set[tuple[str, frozenset[tuple[str, str]]]]:
    """Return the names and labels of all samples."""
    samples = (sample for family in text_string_to_metric_families(page) for sample in family.samples)
    return {(sample.name, frozenset(sample.labels.items())) for sample in samples}


def test_the_page_opens_to_its_token_and_says_what_the_command_says(stack: Stack, requests: httpx.Client) -> None:
    for pipeline in ("orders", "survives"):
        stack.running(pipeline)
    right = {"Authorization": f"Bearer {TOKEN}"}
    for page in (PAGE, f"{PAGE}/"):
        assert requests.get(page, headers=right).status_code == 404, "without a token there is no page"
    file = stack.settings.home / METRICS_TOKEN
    file.write_text(TOKEN)
    try:
        refused = requests.get(PAGE)
        assert refused.status_code == 401 and refused.headers["WWW-Authenticate"].startswith("Bearer")
        assert requests.get(f"{PAGE}/", headers={"Authorization": "Bearer x"}).status_code == 401
        assert requests.get(f"{PAGE}/", headers=right).text.startswith("# HELP lakebound_")
        with stack.requests_of("admin") as admin:
            assert admin.get(PAGE).status_code == 401, "a login to Airflow is no token of this page"
            assert "<title>Lakebound" in admin.get("/lakebound/").raise_for_status().text, "the page of people is beside it"
        assert requests.get("/lakebound/", headers=right).status_code in (401, 403), "its token opens nothing else"

        def told() -> httpx.Response | None:
            answer = requests.get(PAGE, headers=right)
            return answer if series(answer.text) == series(metrics_page(stack.settings).decode()) else None

        answer = wait_until(told, 60, "the same series as those of `lakebound metrics`")
        assert answer is not None and answer.status_code == 200
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        up = {
            sample.labels["pipeline"]: sample.value
            for family in text_string_to_metric_families(answer.text)
            for sample in family.samples
            if sample.name == "lakebound_up"
        }
        assert set(up) - {SEARCHES} == set(PIPELINES) - {SEARCHES} and up["orders"] == up["survives"] == 1
    finally:
        file.unlink()
    assert requests.get(PAGE, headers=right).status_code == 404
    logs = [path for path in stack.airflow.home.rglob("*.log") if path.is_file()]
    assert logs and not [path for path in logs if TOKEN in path.read_text(errors="replace")]


def test_the_plugin_lists_the_page_first_and_loads_nothing_heavy(tmp_path: Path) -> None:
    heavy = {"fastapi", "pyspark", "deltalake", "pyiceberg", "pyarrow", "great_expectations"}
    code = (
        "import sys; from lakebound_airflow.plugin import LakeboundPlugin as plugin; import lakebound.metrics.page; "
        f"print(plugin.fastapi_apps[0]['url_prefix'], sorted({heavy} & set(sys.modules)))"
    )
    environment = {**os.environ, "AIRFLOW_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[-1] == f"{PAGE} []"
