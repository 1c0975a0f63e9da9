"""The metrics page of Airflow's API server opens to its token alone."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from lakebound.control.folder import ControlFolder
from lakebound.control.progress import Progress, write_progress
from lakebound.metrics.page import CONTENT_TYPE, metrics_page
from lakebound.settings import load_settings
from lakebound_airflow import metrics_mount

TOKEN = "canary-2f7e61aa"
PAGE = "/lakebound/metrics"


@pytest.fixture
def token_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAKEBOUND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LAKEBOUND_METRICS_TOKEN_FILE", str(tmp_path / "token"))
    started = Progress(pipeline="orders", app_id="a", started_at=1, updated_at=2)
    write_progress(ControlFolder(tmp_path / "home", "orders"), started)
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    return tmp_path / "token"


@pytest.fixture
def client() -> TestClient:
    """The page as Airflow mounts it: before another application, and before a page for everything else."""
    root = FastAPI()
    others = FastAPI()
    others.add_api_route("/{path:path}", lambda path: "others")
    root.mount(metrics_mount.URL_PREFIX, metrics_mount.FASTAPI_APP["app"])
    root.mount("/lakebound", others)
    root.add_api_route("/{path:path}", lambda path: "the UI")
    root.add_middleware(metrics_mount.WithoutSlash)
    return TestClient(root, follow_redirects=False)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("page", [PAGE, f"{PAGE}/"])
def test_with_its_token_it_is_what_the_command_prints(client: TestClient, token_file: Path, page: str) -> None:
    answer = client.get(page, headers=bearer(TOKEN))
    assert answer.status_code == 200 and answer.headers["Content-Type"] == CONTENT_TYPE
    assert answer.content == metrics_page(load_settings())
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    assert [sample.labels for sample in families["lakebound_up"].samples] == [{"pipeline": "orders"}]


@pytest.mark.parametrize(
    "header",
    ["", f"Basic {TOKEN}", TOKEN, "Bearer", "Bearer ", "Bearer x", f"Bearer {TOKEN}x", "Bearer é".encode().decode("latin-1")],
)
def test_without_it_nothing_is_told(client: TestClient, token_file: Path, header: str) -> None:
    answer = client.get(PAGE, headers={"Authorization": header.encode("latin-1")})
    assert answer.status_code == 401 and answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert "orders" not in answer.text


def test_it_is_off_without_a_token(
    client: TestClient, token_file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        for text in ("", " \n"):
            token_file.write_text(text)
            assert client.get(PAGE, headers=bearer("")).status_code == 404
            assert client.get(PAGE, headers=bearer(TOKEN)).status_code == 404
        token_file.unlink()
        assert client.get(PAGE, headers=bearer(TOKEN)).status_code == 404
        monkeypatch.delenv("LAKEBOUND_METRICS_TOKEN_FILE")
        assert client.get(PAGE, headers=bearer(TOKEN)).status_code == 404
    assert "is empty" in caplog.text and "cannot be read: FileNotFoundError" in caplog.text and TOKEN not in caplog.text


def test_other_paths_and_methods_are_not_its_own(client: TestClient, token_file: Path) -> None:
    assert client.post(PAGE, headers=bearer(TOKEN)).status_code == 405
    for page in (f"{PAGE}/docs", f"{PAGE}/openapi.json"):
        assert client.get(page, headers=bearer(TOKEN)).status_code == 404
    assert client.get("/lakebound/other").json() == "others"
    assert client.get("/other").json() == "the UI"
