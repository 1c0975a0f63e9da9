"""The page's app with an auth manager of a test's own in place of Airflow's; no database is asked.

Airflow's API server takes 2 s of CPU to import. So it is imported where it is used: every process of a run collects all tests.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi import FastAPI, HTTPException, Request

ROLE = "X-Role"
"""The header by which a request says whose it is; without it, it is a stranger's."""


@dataclass(frozen=True)
class Person:
    """Who asks: an editor may do all, a reader may see all, a reader of one DAG that one, and nobody else anything."""

    role: str


class Manager:
    """Answers as Airflow's auth managers do."""

    def is_authorized_dag(self, *, method: str, user: Person, details: Any = None, access_entity: Any = None) -> bool:
        if user.role == "reader-of-one":
            return method == "GET" and (details.id is None or details.id == "ingest__pipeline_001")
        return user.role == "editor" or (user.role == "reader" and method == "GET")

    def filter_authorized_dag_ids(
        self, *, dag_ids: Collection[str], user: Person, method: str = "GET", team_name: str | None = None
    ) -> set[str]:
        from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails

        return {dag_id for dag_id in dag_ids if self.is_authorized_dag(method=method, user=user, details=DagDetails(id=dag_id))}


@contextmanager
def app_of_the_page(monkeypatch: pytest.MonkeyPatch) -> Iterator[FastAPI]:
    """Yield the app; requests name their role."""
    from airflow.api_fastapi.core_api import security
    from airflow.models.dag import DagModel

    from lakebound_airflow.page import access
    from lakebound_airflow.page import app as page_app

    def user(request: Request) -> Person:
        if ROLE not in request.headers:
            raise HTTPException(401, "Not authenticated")
        return Person(request.headers[ROLE])

    for module in (security, access):
        monkeypatch.setattr(module, "get_auth_manager", Manager)
    monkeypatch.setattr(DagModel, "get_team_name", staticmethod(lambda dag_id: None))
    monkeypatch.setattr(page_app, "paused_dags", lambda dag_ids: {})
    app = page_app.make_app()
    app.dependency_overrides[security.get_user] = user
    yield app
