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
        held_since: Since when the pipeline was held when the plan was applied, in epoch seconds: the redo lands under this
            hold, and one that comes later ends it. None: it was not held.
    """

    replaces: dict[str, Offsets]
    plan: str
    held_since: float | None = None
