"""What a maintenance application is told, and the spark-submit command that starts it: small, and behind everything else."""

from __future__ import annotations

from lakebound.control.desired import Desired
from lakebound.landing.batch_command import BatchOrders, application_command, batch_conf, in_its_place
from lakebound.landing.run_spec import RunSpec, make_run_spec
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec

APPLICATION = "maintain.py"


PROGRESS = "maintain: "
"""Starts a line of the log that a person who waits wants to see."""


class MaintenanceOrders(BatchOrders):
    """One maintenance run's orders: those of an application, whose id names the run.

    Attributes:
        plan_only: Say what would be done, and end.
    """

    plan_only: bool = False


def maintenance_orders(
    spec: PipelineSpec, settings: Settings, app_id: str, *, plan_only: bool = False, is_waited_for: bool = False
) -> MaintenanceOrders:
    """Return the orders of a maintenance run that is about to be submitted.

    Args:
        spec: Pipeline whose tables are maintained.
        settings: This machine's settings; the orders repeat its places.
        app_id: Id of the application that will run.
        plan_only: Whether the run only says what is due.
        is_waited_for: Whether a person asked for it and waits: the run then gets an ordinary share of the cores.
    """
    run = make_run_spec(spec, settings, Desired(), app_id, reads_records=False)
    fields = {name: getattr(run, name) for name in RunSpec.model_fields}
    return MaintenanceOrders(**fields, plan_only=plan_only, is_waited_for=is_waited_for)


def maintenance_command(orders: MaintenanceOrders, settings: Settings) -> list[str]:
    """Return the command that starts the application, behind everything else unless a person waits for it."""
    command = application_command(settings.apps / APPLICATION, orders, settings, batch_conf(orders, settings))
    return in_its_place(command, orders)
