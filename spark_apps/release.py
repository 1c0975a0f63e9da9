"""Entry point for spark-submit: land the quarantined records that fit the schema and transform of today, and end.

Exit codes: 0 done · 1 failed, or ended when asked to · 3 refused, a person must decide.
"""

from __future__ import annotations

import sys

from lakebound.operations.release.orders import ReleaseOrders
from lakebound_spark.backfill.rows_decide import release
from lakebound_spark.entry import read_orders, say_backfill_ended


def main() -> int:
    """Run the release that ``--run-spec`` describes and return its exit code."""
    return say_backfill_ended(release(read_orders(ReleaseOrders, __doc__)))


if __name__ == "__main__":
    sys.exit(main())
