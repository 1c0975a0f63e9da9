"""What a start after an unclean end writes down: what was found, what is read again, what of it the tables trim. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakebound.control.last_end import LastEnd
from lakebound.ledger.entry import TopicOffsets, high_water_marks
from lakebound.ledger.marks import NextOffsets, debt, highest


@dataclass(frozen=True)
class StartIncident:
    """One sentence, and the facts behind it."""

    what: str
    facts: dict[str, Any]


def start_incident(last: LastEnd, coverages: Mapping[str, Mapping[str, TopicOffsets]], start: NextOffsets) -> StartIncident:
    """Return what is to be recorded of a start after an unclean end.

    Args:
        last: How the application before ended.
        coverages: Per table id, what it holds now.
        start: Where reading begins.
    """
    marks = {table: high_water_marks(coverage) for table, coverage in coverages.items()}
    read = last.progress.high_water_marks if last.progress is not None else {}
    replayed = debt(start, highest([read, *marks.values()]))
    trimmed = {table: debt(start, reached) for table, reached in marks.items()}
    what = (
        f"{last.described}; the stream goes on from the ledger: at least {replayed} offsets "
        f"that were read before are read again, "
        f"and what of them a table holds already is not written again ({', '.join(f'{t}: {n}' for t, n in trimmed.items())})"
    )
    found = {
        "app_id": last.app_id,
        "epoch": last.lease.epoch,
        "last_sign_of_life": last.lease.heartbeat_at,
        "verdict": last.outcome.verdict if last.outcome else None,
        "state": last.progress.state if last.progress else None,
        "batch": last.progress.batch if last.progress else None,
    }
    return StartIncident(what, {"found": found, "start": start, "trimmed": trimmed, "replayed": replayed})
