"""Which roles of Airflow get the DAGs of a pipeline. What a DAG file may know while it is parsed: no database is asked.

Only the FAB auth manager reads a DAG's ``access_control``. When it names a role that FAB's database does not have, Airflow
refuses the DAG and marks all DAGs of that file as stale, and one file makes the DAGs of all pipelines. So only roles that
the operator has named reach a DAG; any other is left out and reported.
"""

from __future__ import annotations

from collections.abc import Collection

from airflow.sdk.configuration import conf

from lakebound.settings import airflow_roles
from lakebound.spec.pipeline import PipelineSpec

AccessControl = dict[str, dict[str, Collection[str]]]
"""Actions by resource by role, as FAB names them."""


def access_of(spec: PipelineSpec) -> AccessControl | None:
    """Return who gets a DAG of the pipeline, for its ``access_control``; None leaves it as it is in Airflow."""
    return granted(spec.owners, airflow_roles()) if _is_honoured() else None


def access_problems(spec: PipelineSpec) -> list[str]:
    """Return a line for each of the pipeline's owners that gets nothing, because the operator has not named the role."""
    return unnamed(spec, airflow_roles()) if _is_honoured() else []


def granted(owners: Collection[str] | None, named: Collection[str]) -> AccessControl | None:
    """Return what the owners may do: see and edit the DAG, and trigger it.

    Args:
        owners: ``owners`` of the pipeline. Without them (None), FAB keeps what it has of the DAG; empty takes all of it back.
        named: The roles that the operator says are there.
    """
    if owners is None:
        return None
    return {owner: {"DAGs": {"can_read", "can_edit"}, "DAG Runs": {"can_create"}} for owner in owners if owner in named}


def unnamed(spec: PipelineSpec, named: Collection[str]) -> list[str]:
    """Return a line for each of the pipeline's owners that is not among the named roles."""
    return [
        f"{spec.pipeline}.yaml: owners: the role {owner!r} is not in LAKEBOUND_AIRFLOW_ROLES, so it does not get the DAGs; "
        f"create the role in Airflow, then add it to LAKEBOUND_AIRFLOW_ROLES"
        for owner in spec.owners or ()
        if owner not in named
    ]


def _is_honoured() -> bool:
    """Return whether Airflow will read ``access_control``, by the question that Airflow itself asks when it stores a DAG."""
    return "FabAuthManager" in conf.get("core", "auth_manager", fallback="")
