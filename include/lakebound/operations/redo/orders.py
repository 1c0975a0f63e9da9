"""What a redo's application is told; what it says of itself: ``lakebound.control.replay_result``."""

from __future__ import annotations

from lakebound.ledger.entry import Offsets
from lakebound.operations.replay.orders import ReplayOrders

APPLICATION = "redo.py"


class RedoOrders(ReplayOrders):
    """One redo's orders: those of a backfill that reads Kafka, and what of which table is made again.

    Attributes:
        replaces: Of all offsets that are read again, those of each table, by its id.
        plan: Hash of the plan that was approved; the entries name it.
    """

    replaces: dict[str, Offsets]
    plan: str
