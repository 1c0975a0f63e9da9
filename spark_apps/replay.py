"""Entry point for spark-submit: land a range of offsets that the pipeline's tables lack, and end.

Exit codes: 0 all landed · 1 failed, or ended when asked to · 3 refused, a person must decide.
"""

from __future__ import annotations

import sys

from lakebound.operations.replay.orders import ReplayOrders
from lakebound_spark.backfill.coverage_decides import replay
from lakebound_spark.entry import read_orders, say_backfill_ended


def main() -> int:
    """Run the replay that ``--run-spec`` describes and return its exit code."""
    return say_backfill_ended(replay(read_orders(ReplayOrders, __doc__)))


if __name__ == "__main__":
    sys.exit(main())
