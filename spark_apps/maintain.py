"""Entry point for spark-submit: tidy up the tables of one pipeline, once.

The last line that it prints is its report (or, with ``plan_only`` in its orders, its plan) as JSON.
Exit codes: 0 done (some steps may be left for the next run) · 1 a step failed, or the run · 3 another run is under way.
"""

from __future__ import annotations

from lakebound.operations.maintenance.run import MaintenanceRunsError
from lakebound.operations.maintenance.submission import PROGRESS, MaintenanceOrders
from lakebound_spark.entry import end_process, read_orders, run_alone
from lakebound_spark.maintain.application import Maintenance


def main() -> int:
    """Run the maintenance that ``--run-spec`` describes and return its exit code."""
    orders = read_orders(MaintenanceOrders, __doc__)
    return run_alone(lambda: maintain(orders), PROGRESS, MaintenanceRunsError)


def maintain(orders: MaintenanceOrders) -> int:
    """Run it, or plan it only; print the report or the plan, and return the exit code."""
    maintenance = Maintenance(orders)
    if orders.plan_only:
        print(maintenance.plan().model_dump_json(), flush=True)
        return 0
    report = maintenance.run()
    print(report.model_dump_json(), flush=True)
    return 1 if any(step.outcome == "failed" for step in report.steps) else 0


if __name__ == "__main__":
    end_process(main())
