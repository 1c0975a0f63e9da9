"""Every route asks the auth manager: 401 to strangers, 403 where a role may not; readers see no value of a record."""

from __future__ import annotations

import time
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from lakebound.control.findings import Finding, Severity, write_findings
from lakebound.control.folder import ControlFolder
from lakebound_airflow.page.headers import HEADERS
from tests.support.airflow.page_app import ROLE, app_of_the_page
from tests.support.airflow.page_routes import addresses
from tests.support.airflow.shown_history import write_history
from tests.support.airflow.shown_pipelines import shown_settings, write_many

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(120)]

SECRET = "canary-5d1e"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    settings = shown_settings(tmp_path_factory.mktemp("shown"))
    for name in write_many(settings, 2):
        control = ControlFolder(settings.home, name)
        write_history(control, time.time())
        finding = Finding(cause="c", severity=Severity.WARNING, what="w", since=1.0, evidence={"observed": SECRET, "rows": 7})
        write_findings(control, "validation", [finding])
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in settings.environment().items():
            patch.setenv(variable, value)
        with app_of_the_page(patch) as app:
            yield TestClient(app)


@pytest.mark.parametrize("pipeline", ["pipeline_000", "pipeline_001"])
@pytest.mark.parametrize("role", [None, "nobody", "reader", "reader-of-one", "editor"])
def test_each_route_answers_a_role_as_it_should(client: TestClient, role: str | None, pipeline: str) -> None:
    asked = [*addresses(pipeline)]
    assert sum(one.is_of_a_pipeline for one in asked) >= 8 and sum(one.holds_values for one in asked) == 1
    for one in asked:
        is_others = role == "reader-of-one" and one.is_of_a_pipeline and pipeline != "pipeline_001"
        is_refused = role == "nobody" or is_others or (one.holds_values and role != "editor")
        answer = client.get(one.path, headers={} if role is None else {ROLE: role})
        assert answer.status_code == (401 if role is None else 403 if is_refused else 200), one
        assert HEADERS.items() <= {name: answer.headers.get(name) for name in HEADERS}.items()
        if role != "editor":
            assert SECRET not in answer.text and "SECRET-VALUE" not in answer.text, one


@pytest.mark.parametrize("path", ["/", "/pipelines/pipeline_000", "/runbooks/stall"])
def test_a_browser_without_a_login_is_sent_to_airflows_login_which_leads_back(client: TestClient, path: str) -> None:
    answer = client.get(path, headers={"Accept": "text/html,application/xhtml+xml"}, follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/api/v2/auth/login?next={quote(path, safe='')}"
    assert client.get(path, headers={"Accept": "application/json"}, follow_redirects=False).status_code == 401
    refused = client.get(path, headers={"Accept": "text/html", ROLE: "nobody"}, follow_redirects=False)
    assert refused.status_code == 403, "a login would not help"


def test_what_is_not_there_is_not_found_by_those_who_may_look(client: TestClient) -> None:
    headers = {ROLE: "editor"}
    for role, status in (("editor", 404), ("reader-of-one", 403)):
        for path in ("/api/pipelines/pipeline_000/tables/delta:lake.a/b", "/api/pipelines/pipeline_000/tables/lake%2F..%2Fx"):
            assert client.get(path, headers={ROLE: role}).status_code == status, path
    assert client.get("/pipelines/pipeline_000/tables/delta:lake%2Forders", headers=headers).status_code == 200
    for path in ("/api/pipelines/none", "/api/pipelines/none/samples", "/api/pipelines/pipeline_000/tables/delta:lake.other"):
        assert client.get(path, headers=headers).status_code == 404, path
    assert SECRET in client.get("/api/pipelines/pipeline_000", headers=headers).text
    overview = client.get("/api/overview", headers={ROLE: "reader-of-one"}).json()["pipelines"]
    assert [row["pipeline"] for row in overview] == ["pipeline_001"]
