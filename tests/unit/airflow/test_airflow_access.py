"""Owners of a pipeline become roles of its DAGs only where Airflow reads that, and only roles that are surely there."""

from __future__ import annotations

import pytest
from tests.support.streams.pipeline_files import RIGHT, settings, write

from lakebound.settings import Settings, airflow_roles
from lakebound.spec.load import load_file
from lakebound.spec.pipeline import PipelineSpec
from lakebound_airflow.access import access_of, access_problems, granted
from lakebound_airflow.pipelines import problems

__all__ = ["settings"]
FAB = "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager"
SIMPLE = "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager"
RIGHTS = {"DAGs": {"can_read", "can_edit"}, "DAG Runs": {"can_create"}}


def owned_by(settings: Settings, *owners: str) -> PipelineSpec:
    """Return the pipeline with these owners in its YAML."""
    return load_file(write(settings, f"{RIGHT}owners: [{', '.join(owners)}]\n"), settings)


def test_only_named_roles_are_granted_anything() -> None:
    assert granted(("Sales Team", "misspelt"), {"Sales Team", "Others"}) == {"Sales Team": RIGHTS}


def test_no_owners_leave_the_rights_alone_and_empty_ones_take_them_back() -> None:
    assert granted(None, {"Sales Team"}) is None
    assert granted((), {"Sales Team"}) == {}


def test_names_of_roles_are_between_commas() -> None:
    assert airflow_roles({"LAKEBOUND_AIRFLOW_ROLES": "Sales Team, Ops,"}) == {"Sales Team", "Ops"}
    assert airflow_roles({}) == frozenset()


def test_fab_gets_the_roles_and_a_role_that_is_not_named_is_a_problem(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__AUTH_MANAGER", FAB)
    monkeypatch.setenv("LAKEBOUND_AIRFLOW_ROLES", "Sales Team")
    spec = owned_by(settings, "Sales Team", "misspelt")
    assert access_of(spec) == {"Sales Team": RIGHTS}
    (problem,) = problems(settings)
    assert "owners: the role 'misspelt' is not in LAKEBOUND_AIRFLOW_ROLES" in problem


def test_other_auth_managers_get_nothing_and_nothing_is_a_problem(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__AUTH_MANAGER", SIMPLE)
    spec = owned_by(settings, "misspelt")
    assert access_of(spec) is None
    assert access_problems(spec) == []
