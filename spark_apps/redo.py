"""Entry point for spark-submit: make the rows of an approved range of offsets anew, and end.

Exit codes: 0 all redone · 1 failed, or ended when asked to · 3 refused, a person must decide.
"""

from __future__ import annotations

import sys

from lakebound.operations.redo.orders import RedoOrders
from lakebound_spark.backfill.rows_replaced import redo
from lakebound_spark.entry import read_orders, say_backfill_ended


def main() -> int:
    """Run the redo that ``--run-spec`` describes and return its exit code."""
    return say_backfill_ended(redo(read_orders(RedoOrders, __doc__)))


if __name__ == "__main__":
    sys.exit(main())
