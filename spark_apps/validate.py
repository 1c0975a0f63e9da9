"""Entry point for spark-submit: validate what landed in the tables of one pipeline since the last time, once.

The last line that it prints is its report as JSON.
Exit codes: 0 done, whatever was found · 1 a table could not be validated · 3 another run is under way.
"""

from __future__ import annotations

import logging

from lakebound.inspection.validation.history import ValidationRunsError
from lakebound.inspection.validation.submission import PROGRESS, ValidationOrders
from lakebound_spark.entry import end_process, read_orders, run_alone
from lakebound_spark.validate.application import Validation


def main() -> int:
    """Run the validation that ``--run-spec`` describes and return its exit code."""
    orders = read_orders(ValidationOrders, __doc__, quiet=("py4j", "great_expectations"))
    return run_alone(lambda: validate(orders), PROGRESS, ValidationRunsError)


def validate(orders: ValidationOrders) -> int:
    """Run it, print the report, and return the exit code."""
    report = Validation(orders).run()
    for problem in report.problems:
        logging.error("%s%s", PROGRESS, problem)
    print(report.model_dump_json(), flush=True)
    return 1 if report.problems else 0


if __name__ == "__main__":
    end_process(main())
