"""Who starts an application that is wanted: Airflow, now or when its scheduler is back, or a person by hand. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from lakebound.control.situations import start_command


@dataclass(frozen=True)
class AirflowView:
    """Airflow as it was seen from here.

    Attributes:
        problem: Why it cannot be reached; None when it answered.
        scheduler_is_alive: Whether Airflow says so; it notices half a minute late that its scheduler is dead.
        scheduler_age_seconds: How old the scheduler's last sign of life is; None where that is not known.
        is_unknown: Whether Airflow answers and does not know the DAG: it reads new files within a minute or two.
        is_paused: Whether the pipeline's ingest DAG is paused; None where that is not known.
        was_unpaused: Whether the DAG was unpaused just now.
    """

    problem: str | None = None
    scheduler_is_alive: bool = False
    scheduler_age_seconds: float | None = None
    is_unknown: bool = False
    is_paused: bool | None = None
    was_unpaused: bool = False


def run_command(pipeline: str) -> str:
    """Return the command that starts an application without Airflow, and returns."""
    return f"lakebound run {pipeline} --detach"


def who_starts(pipeline: str, schedule: str | None, airflow: AirflowView) -> str:
    """Return who starts the application, and how to start it now where nobody does.

    Args:
        pipeline: Its name.
        schedule: The cron expression of a pipeline that does not run continuously.
        airflow: As it was seen.
    """
    dag, by_hand = f"ingest__{pipeline}", f"to start it now, without Airflow: {run_command(pipeline)}"
    when = "" if schedule is None else f" at its schedule ({schedule})"
    if airflow.problem is not None:
        return (
            f"{airflow.problem}, so no DAG was unpaused. If another Airflow runs the DAG {dag} unpaused, "
            f"it starts the application{when}; {by_hand}"
        )
    if airflow.is_unknown:
        return (
            f"Airflow does not know the DAG {dag} yet: it reads a new pipeline file within a minute or two. Run "
            f"{start_command(pipeline)} again then. If it stays so, check the file (lakebound check {pipeline}), and whether "
            f"Airflow reads this folder of pipelines; {by_hand}"
        )
    if airflow.is_paused:
        return f"its DAG {dag} is paused, so Airflow starts nothing; start it: {start_command(pipeline)}"
    state = "unpaused" if airflow.was_unpaused else "not paused"
    age = airflow.scheduler_age_seconds
    seen = "" if age is None else f" (last sign of life {max(0.0, age):.0f} s ago)"
    if airflow.scheduler_is_alive:
        return f"Airflow's scheduler{seen} starts the application{when}; the DAG {dag} is {state}"
    return (
        f"Airflow's scheduler is down{seen}. When it is back, it starts the application{when} (DAG {dag}: {state}); {by_hand}"
    )
