"""Entry point for spark-submit: tidy up the tables of one pipeline, once.

The last line that it prints is its report (or, with ``plan_only`` in its orders, its plan) as JSON.
Exit codes: 0 done, be it that some steps were left for the next run · 1 a step failed, or the run · 3 another run is under way.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys

from lakebound.errors import LakeboundError
from lakebound.landing.batch_command import ANOTHER_RUN
from lakebound.operations.maintenance.run import MaintenanceRunsError
from lakebound.operations.maintenance.submission import PROGRESS, MaintenanceOrders
from lakebound_spark.maintain.application import Maintenance


def main() -> int:
    """Run the maintenance that ``--run-spec`` describes and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--run-spec", required=True, help="lakebound.operations.maintenance.submission.MaintenanceOrders as JSON"
    )
    orders = MaintenanceOrders.model_validate_json(parser.parse_args().run_spec)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    maintenance = Maintenance(orders)
    try:
        if orders.plan_only:
            print(maintenance.plan().model_dump_json(), flush=True)
            return 0
        report = maintenance.run()
    except LakeboundError as exc:
        logging.error("%s%s", PROGRESS, exc)
        return ANOTHER_RUN if isinstance(exc, MaintenanceRunsError) else 1
    print(report.model_dump_json(), flush=True)
    return 1 if any(step.outcome == "failed" for step in report.steps) else 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: threads of deltalake's and pyarrow's now and then abort a Python that tidies itself up (exit code 134).
    os._exit(code)
