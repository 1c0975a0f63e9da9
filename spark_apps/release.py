"""Entry point for spark-submit: land the quarantined records that fit the schema and transform of today, and end.

Exit codes: 0 done · 1 failed, or ended when asked to · 3 refused, a person must decide.
"""

from __future__ import annotations

import sys

from lakebound.operations.release.orders import ReleaseOrders
from lakebound_spark.entry import read_orders, say_guest_ended
from lakebound_spark.guests.release import Release


def main() -> int:
    """Run the release that ``--run-spec`` describes and return its exit code."""
    return say_guest_ended(Release(read_orders(ReleaseOrders, __doc__)).run())


if __name__ == "__main__":
    sys.exit(main())
