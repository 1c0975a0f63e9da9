"""What Airflow says of a task's state, asked from a worker or from the triggerer."""

from __future__ import annotations

import asyncio
from typing import Any

import structlog
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

from lakebound.control.submission import Owner

# Airflow gives on_kill() 30 s ([triggerer] on_kill_timeout).
TIMEOUT_SECONDS = 25.0

log = structlog.get_logger(__name__)


def state_of_owner(owner: Owner) -> str | None:
    """Return the state of the task that ``owner`` is a try of, or None when Airflow knows no such task (any more)."""
    states = RuntimeTaskInstance.get_task_states(dag_id=owner.dag_id, task_ids=[owner.task_id], run_ids=[owner.run_id])
    state = states.get(owner.run_id, {}).get(owner.task_id)
    # A task that was cleared and not yet scheduled again has a row without a state.
    if owner.task_id in states.get(owner.run_id, {}) and state is None:
        return "cleared"
    return None if state is None else str(state)


def dag_is_paused(dag_id: str) -> bool:
    """Return whether a DAG is paused; asked from a worker."""
    return bool(RuntimeTaskInstance.get_dag(dag_id).is_paused)


async def state_of_task(task_instance: Any) -> str | None:
    """Return the state of a trigger's task, or None when it could not be learned."""
    if task_instance is None:
        return None
    owner = Owner(dag_id=task_instance.dag_id, run_id=task_instance.run_id, task_id=task_instance.task_id)
    try:
        return await asyncio.wait_for(asyncio.to_thread(state_of_owner, owner), TIMEOUT_SECONDS) or "deleted"
    except Exception as exc:
        log.warning("Airflow did not return the state of the task", error=str(exc), error_class=type(exc).__name__)
        return None
