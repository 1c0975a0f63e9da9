"""Entry point for spark-submit: validate what landed in the tables of one pipeline since the last time, once.

The last line that it prints is its report as JSON.
Exit codes: 0 done, whatever was found · 1 a table could not be validated · 3 another run is under way.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys

from lakebound.errors import LakeboundError
from lakebound.inspection.validation.history import ValidationRunsError
from lakebound.inspection.validation.submission import PROGRESS, ValidationOrders
from lakebound.landing.batch_command import ANOTHER_RUN
from lakebound_spark.validate.application import Validation


def main() -> int:
    """Run the validation that ``--run-spec`` describes and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run-spec", required=True, help="lakebound.inspection.validation.submission.ValidationOrders as JSON")
    orders = ValidationOrders.model_validate_json(parser.parse_args().run_spec)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in ("py4j", "great_expectations"):
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        report = Validation(orders).run()
    except LakeboundError as exc:
        logging.error("%s%s", PROGRESS, exc)
        return ANOTHER_RUN if isinstance(exc, ValidationRunsError) else 1
    for problem in report.problems:
        logging.error("%s%s", PROGRESS, problem)
    print(report.model_dump_json(), flush=True)
    return 1 if report.problems else 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: threads of deltalake's and pyarrow's now and then abort a Python that tidies itself up (exit code 134).
    os._exit(code)
