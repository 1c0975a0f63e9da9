"""Who may see what: Airflow's auth manager is asked for every route. The only module that knows Airflow's security API.

Airflow's own filters of readable DAGs look for the auth manager in the state of the app that they run in. The page is a
mounted app with a state of its own, so the manager is asked directly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.base_auth_manager import ResourceMethod
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag, requires_authenticated
from airflow.configuration import conf
from airflow.models.dag import DagModel
from airflow.utils.session import create_session
from fastapi import Depends, HTTPException, Request
from sqlalchemy import select

from lakebound_airflow.page.state import ingest_dag

User = GetUserDep
"""The viewer; a stranger gets 401."""

sees_any_dag = Depends(requires_access_dag("GET"))
"""Lets in who may read some DAG; 403 for others."""

logged_in = Depends(requires_authenticated())
"""Lets in whoever has logged in; 401 for others."""


def _sees_pipeline(pipeline: str, request: Request, user: GetUserDep) -> str:
    requires_access_dag("GET", param_dag_id=ingest_dag(pipeline))(request, user)
    return pipeline


SeenPipeline = Annotated[str, Depends(_sees_pipeline)]
"""The pipeline of the route's path; 403 for who may not read its ingest DAG."""


def _edits_pipeline(pipeline: SeenPipeline, request: Request, user: GetUserDep) -> str:
    requires_access_dag("PUT", param_dag_id=ingest_dag(pipeline))(request, user)
    return pipeline


EditedPipeline = Annotated[str, Depends(_edits_pipeline)]
"""The pipeline of the route's path, for what holds values of records; 403 for who may not edit its ingest DAG."""


def may_edit(pipeline: str, request: Request, user: User) -> bool:
    """Return whether the user may edit the pipeline's ingest DAG, and so see values of records."""
    return _is_allowed("PUT", None, ingest_dag(pipeline), request, user)


def readable_pipelines(pipelines: Collection[str], user: User) -> set[str]:
    """Return those of the pipelines whose ingest DAG the user may read.

    With several teams, a DAG that Airflow does not know belongs to nobody, and nobody sees its pipeline.
    """
    dag_ids = {ingest_dag(pipeline): pipeline for pipeline in pipelines}
    by_team: defaultdict[str | None, set[str]] = defaultdict(set)
    if conf.getboolean("core", "multi_team"):
        teams = DagModel.get_dag_id_to_team_name_mapping(list(dag_ids))
        known = paused_dags(dag_ids)
        for dag_id in dag_ids.keys() & known.keys():
            by_team[teams.get(dag_id)].add(dag_id)
    else:
        by_team[None] = set(dag_ids)
    manager = get_auth_manager()
    found = (
        manager.filter_authorized_dag_ids(dag_ids=ids, user=user, method="GET", team_name=team) for team, ids in by_team.items()
    )
    return {dag_ids[dag_id] for ids in found for dag_id in ids}


def may_trigger(dag_id: str, request: Request, user: User) -> bool:
    """Return whether the user may start a run of the DAG, by the check that Airflow's own route makes."""
    return _is_allowed("POST", DagAccessEntity.RUN, dag_id, request, user)


def _is_allowed(method: ResourceMethod, entity: DagAccessEntity | None, dag_id: str, request: Request, user: User) -> bool:
    try:
        requires_access_dag(method, entity, param_dag_id=dag_id)(request, user)
    except HTTPException:
        return False
    return True


def paused_dags(dag_ids: Collection[str]) -> dict[str, bool]:
    """Return whether each of the DAGs is paused; one that Airflow does not know is left out."""
    asked = select(DagModel.dag_id, DagModel.is_paused).where(DagModel.dag_id.in_(list(dag_ids)))
    with create_session() as session:
        return {dag_id: bool(paused) for dag_id, paused in session.execute(asked)}
