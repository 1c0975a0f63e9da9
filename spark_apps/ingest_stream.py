"""Entry point for spark-submit: land one pipeline's topics in its tables until asked to end.

Exit codes: 0 ended as asked or as planned · 1 failed · 3 refused, a person must decide · 4 superseded by a later application.
"""

from __future__ import annotations

import argparse
import logging
import sys

from lakebound.run_spec import RunSpec
from lakebound_spark.application import Application

EXIT_CODES = {"stopped": 0, "completed": 0, "failed": 1, "refused": 3, "superseded": 4}


def main() -> int:
    """Run the application that ``--run-spec`` describes and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run-spec", required=True, help="lakebound.run_spec.RunSpec as JSON")
    run = RunSpec.model_validate_json(parser.parse_args().run_spec)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    outcome = Application(run).run()
    print(f"{outcome.verdict}: {outcome.reason}", flush=True)
    return EXIT_CODES[outcome.verdict]


if __name__ == "__main__":
    sys.exit(main())
