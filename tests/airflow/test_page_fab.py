"""The page with Airflow's FAB auth manager, on a real API server: roles of that manager get what they may, on every route."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
import yaml

from lakebound.control.folder import ControlFolder
from lakebound.control.ports import free_port
from lakebound.control.progress import Progress, write_progress
from lakebound_airflow.page.navigation import URL_PREFIX
from tests.support.airflow.page_routes import addresses
from tests.support.airflow.shown_pipelines import shown_settings
from tests.support.streams.stand_ins import ORDERS
from tests.support.waiting import HANGS_SECONDS, wait_until

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(600)]

pytest.importorskip(
    "airflow.providers.fab",
    reason="the package apache-airflow-providers-fab is not installed: it wants python-dateutil below 3, and the lock has 4",
)

REPOSITORY = Path(__file__).parents[2]
PASSWORD = "canary-4b1d0c7e"
ROLES = {"viewer": "Viewer", "op": "Op", "one": "ReadsOrders", "nobody": "Nobody"}
"""Who may log in, and in which role. The last two are made here: one may read the DAG of one pipeline, one nothing."""
MAKE_USERS = f"""
from airflow.providers.fab.auth_manager.cli_commands.utils import get_application_builder

with get_application_builder() as builder:
    manager = builder.sm
    manager.sync_roles()
    manager.add_role("Nobody")
    reads = manager.add_role("ReadsOrders")
    manager.add_permission_to_role(reads, manager.create_permission("can_read", "DAG:ingest__orders"))
    for name, role in {ROLES!r}.items():
        assert manager.add_user(name, name, name, f"{{name}}@example.org", manager.find_role(role), {PASSWORD!r})
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an API server with two pipelines in its state."""
    folder, port = tmp_path_factory.mktemp("fab"), free_port()
    settings = shown_settings(folder)
    for name in ("orders", "others"):
        spec = {**ORDERS, "pipeline": name, "tables": [{"format": "delta", "name": f"lake.{name}"}]}
        (settings.pipelines / f"{name}.yaml").write_text(yaml.safe_dump(spec))
        control = ControlFolder(settings.home, name)
        write_progress(control, Progress(pipeline=name, app_id="a", started_at=1.0, updated_at=2.0))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW__")}
    environment |= {
        **settings.environment(),
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__AUTH_MANAGER": "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(REPOSITORY / "plugins"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
        "AIRFLOW__API__SECRET_KEY": secrets.token_hex(16),
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{folder}/airflow.db",
    }
    (folder / "dags").mkdir()
    for command in (["-m", "airflow", "db", "migrate"], ["-c", MAKE_USERS]):
        ran = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=HANGS_SECONDS)
        assert ran.returncode == 0, ran.stderr[-3000:]
    with (folder / "server.log").open("w") as log:
        command = [sys.executable, "-m", "airflow", "api-server", "--port", str(port), "--host", "127.0.0.1", "--workers", "1"]
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: _is_up(address), 180, "the API server")
        yield address
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(HANGS_SECONDS)


def _is_up(address: str) -> bool:
    try:
        return httpx.get(f"{address}/api/v2/monitor/health", timeout=5.0, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def requests_of(address: str, user: str) -> httpx.Client:
    """A client that is logged in."""
    requests = httpx.Client(base_url=address, timeout=HANGS_SECONDS, trust_env=False)
    answer = requests.post("/auth/token", json={"username": user, "password": PASSWORD})
    assert answer.status_code == 201, answer.text
    requests.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
    return requests


def test_strangers_get_nothing(server: str) -> None:
    with httpx.Client(base_url=server, timeout=HANGS_SECONDS, trust_env=False) as stranger:
        for one in addresses("orders"):
            assert stranger.get(URL_PREFIX + one.path).status_code == 401, one


@pytest.mark.parametrize("user", ROLES)
def test_each_role_gets_what_it_may(server: str, user: str) -> None:
    with closing(requests_of(server, user)) as requests:
        for pipeline in ("orders", "others"):
            for one in addresses(pipeline):
                is_others = user == "one" and one.is_of_a_pipeline and pipeline == "others"
                is_refused = user == "nobody" or is_others or (one.holds_values and user != "op")
                answer = requests.get(URL_PREFIX + one.path)
                assert answer.status_code == (403 if is_refused else 200), (one, answer.text[:300])
        if user != "nobody":
            rows = requests.get(f"{URL_PREFIX}/api/overview").json()["pipelines"]
            assert [row["pipeline"] for row in rows] == (["orders"] if user == "one" else ["orders", "others"])
            offered = requests.get(f"{URL_PREFIX}/api/pipelines/orders").json()["actions"]
            assert bool(offered) is (user == "op")
