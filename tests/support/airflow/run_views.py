"""What tests ask Airflow of runs, and do to tasks, beyond what Lakebound itself does."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from lakebound.control.processes import wait_until
from lakebound.local.airflow_client import AirflowClient

FINAL_STATES = ("success", "failed")


def wait_run(client: AirflowClient, dag_id: str, run_id: str, deadline_seconds: float) -> str:
    """Return the final state of a run, ``success`` or ``failed``.

    Raises:
        DeadlineExceededError: It has not ended in time.
    """

    def final_state() -> str | None:
        state = str(client.run(dag_id, run_id)["state"])
        return state if state in FINAL_STATES else None

    return wait_until(final_state, deadline_seconds, f"the end of {dag_id} {run_id}", poll_seconds=0.5) or ""


def set_state(client: AirflowClient, dag_id: str, run_id: str, task_id: str, state: str) -> None:
    """Mark a task of a run as ``success`` or ``failed``, as a person does in the UI."""
    path = f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances/{task_id}"
    client._send("PATCH", path, json={"new_state": state})


def xcoms(client: AirflowClient, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
    """Return the XCom values of a task, by key."""
    path = f"/dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances/{task_id}/xcomEntries"
    keys = [entry["key"] for entry in client._all(path, "xcom_entries")]
    return {key: client._get(f"{path}/{quote(key)}")["value"] for key in keys}
