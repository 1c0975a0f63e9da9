"""What a replay's application is told; what it says of itself: ``lakebound.control.replay_result``."""

from __future__ import annotations

from lakebound.landing.run_spec import RunSpec
from lakebound.ledger.entry import Offsets

APPLICATION = "replay.py"


class ReplayOrders(RunSpec):
    """One replay's orders: those of an application, and the offsets that any table lacks."""

    wanted: Offsets
