"""How long a redo may take, and how many rows may come, by what the tables' newest entries say of what has landed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakebound.ledger.entry import Offsets, common, count
from lakebound.operations.recovery.landing_rate import catch_up_seconds, landing_rate
from lakebound.operations.redo.plan import RedoPlan, RedoShare
from lakebound.tables.table import CommittedEntry

ENTRIES = 500
"""The newest of a table that are asked."""


def with_estimates(plan: RedoPlan, entries: Mapping[str, Sequence[CommittedEntry]]) -> RedoPlan:
    """Return the plan with its estimates, as far as the entries tell them.

    Args:
        plan: With what it has done by now.
        entries: The newest of each table, newest first, by its id.
    """
    rates = [rate for one in entries.values() if (rate := landing_rate(one)) is not None]
    left = max((count(one.replaces) - one.done for one in plan.tables), default=0)
    found = {
        "tables": tuple(_with_rows_in(one, plan.approved, entries[one.table]) for one in plan.tables),
        "estimate_seconds": catch_up_seconds(left, min(rates, default=None)) if left else None,
    }
    return plan.model_copy(update=found)


def rows_per_record(entries: Sequence[CommittedEntry], wrong: Offsets) -> float | None:
    """Return how many rows a record gave where other code may have landed it; None where no entry tells.

    Args:
        entries: Of a table.
        wrong: Offsets that are made anew: what their records gave tells nothing of what they will give.
    """
    right = [one.entry for one in entries if one.entry.kind == "land" and not count(common(one.entry.range, wrong))]
    read = sum(entry.read for entry in right)
    return sum(entry.rows for entry in right) / read if read else None


def _with_rows_in(share: RedoShare, wrong: Offsets, entries: Sequence[CommittedEntry]) -> RedoShare:
    rate = rows_per_record(entries, wrong)
    return share if rate is None else share.model_copy(update={"estimate_rows_in": round(rate * count(share.replaces))})
