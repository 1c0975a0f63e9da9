"""What a redo's application is told; what it says of itself: ``lakebound.control.replay_result``."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from lakebound.landing.row_source import row_source
from lakebound.ledger.entry import Offsets
from lakebound.operations.redo.marking import Run
from lakebound.operations.redo.replacing import RedoOvertakenError
from lakebound.operations.replay.orders import ReplayOrders

APPLICATION = "redo.py"


class RedoOrders(ReplayOrders):
    """One redo's orders: those of a backfill that reads Kafka, and what of which table is made again.

    Attributes:
        replaces: Of all offsets that are read again, those of each table, by its id.
        plan: Hash of the plan that was approved; the entries name it.
        gone: Offsets of the plan of which Kafka no longer has the records: their rows stay as they are.
        held_since: Since when the pipeline was held when the plan was applied, in epoch seconds: the redo lands under this
            hold, and one that comes later ends it. None: it was not held.
        changes_seen: How many commits by others had ever changed rows of each table when the plan was made, by its id.
        made_by: Hashes of the code that landed the rows, as the plan names them.
        apps: Folder with the modules of transforms; "" where nobody looks at them.
    """

    replaces: dict[str, Offsets]
    plan: str
    gone: Offsets = Field(default_factory=dict)
    held_since: float | None = None
    changes_seen: dict[str, int] = Field(default_factory=dict)
    made_by: tuple[str | None, ...] = ()
    apps: str = ""

    @property
    def run(self) -> Run:
        """How each of its entries names it."""
        return Run(self.spec.pipeline, self.plan, self.source.hash)

    def check_code(self) -> None:
        """Check that rows are still made by what the plan names: a deploy may have come while the redo waited for its turn.

        Raises:
            RedoOvertakenError: They are not.
        """
        if self.apps and row_source(self.spec, Path(self.apps), self.schema_files).hash != self.source.hash:
            raise RedoOvertakenError(self.spec.tables[0].id, "what makes its rows was changed")
