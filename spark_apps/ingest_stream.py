"""Entry point for spark-submit: land one pipeline's topics in its tables until asked to end.

Exit codes: 0 ended as asked or as planned · 1 failed · 3 refused, a person must decide · 4 superseded by a later application.
"""

from __future__ import annotations

import sys

from lakebound.landing.run_spec import RunSpec
from lakebound_spark.entry import read_orders
from lakebound_spark.jvm import obey_signals
from lakebound_spark.session import SessionStart
from lakebound_spark.stream.stop_signal import StopSignal

EXIT_CODES = {"stopped": 0, "completed": 0, "failed": 1, "refused": 3, "superseded": 4}


def main() -> int:
    """Run the application that ``--run-spec`` describes and return its exit code."""
    run = read_orders(RunSpec, __doc__)
    stop = StopSignal()
    obey_signals(stop.on_signal)
    session = SessionStart(f"lakebound-{run.spec.pipeline}")
    # Arrow and the tables' libraries are loaded while the session starts: a second and a half of either.
    from lakebound_spark.stream.application import Application

    outcome = Application(run, session, stop).run()
    print(f"{outcome.verdict}: {outcome.reason}", flush=True)
    return EXIT_CODES[outcome.verdict]


if __name__ == "__main__":
    sys.exit(main())
