"""Entry point for spark-submit: land a range of offsets that the pipeline's tables lack, and end.

Exit codes: 0 all landed · 1 failed, or ended when asked to · 3 refused, a person must decide.
"""

from __future__ import annotations

import argparse
import logging
import sys

from lakebound.operations.replay.orders import ReplayOrders
from lakebound_spark.guests.replay import Replay

EXIT_CODES = {"completed": 0, "stopped": 1, "failed": 1, "refused": 3}


def main() -> int:
    """Run the replay that ``--run-spec`` describes and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run-spec", required=True, help="lakebound.operations.replay.orders.ReplayOrders as JSON")
    orders = ReplayOrders.model_validate_json(parser.parse_args().run_spec)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    result = Replay(orders).run()
    print(f"{result.state}: {result.reason}", flush=True)
    return EXIT_CODES[result.state]


if __name__ == "__main__":
    sys.exit(main())
