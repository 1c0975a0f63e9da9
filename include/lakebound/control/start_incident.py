"""What a start after an unclean end records: what was found, what is read again, and what the tables already have. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
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


def start_incident(
    last: LastEnd,
    coverages: Mapping[str, Mapping[str, TopicOffsets]],
    start: NextOffsets,
    sent_again: Collection[str] = (),
) -> StartIncident:
    """Return the record of a start after an unclean end.

    Args:
        last: How the application before ended.
        coverages: Per table id, what it holds now.
        start: Where reading begins.
        sent_again: Ids of topics that the application before wrote in real time: rows after their newest entry come twice.
    """
    marks = {table: high_water_marks(coverage) for table, coverage in coverages.items()}
    read = last.progress.high_water_marks if last.progress is not None else {}
    replayed = debt(start, highest([read, *marks.values()]))
    trimmed = {table: debt(start, reached) for table, reached in marks.items()}
    what = (
        f"{last.described}; the stream continues from the ledger: at least {replayed} offsets are read again, and those that a "
        f"table already has are not written again ({', '.join(f'{t}: {n}' for t, n in trimmed.items())})"
    )
    if sent_again:
        what += f"; rows that were sent in real time after the newest entry are sent again to {', '.join(sorted(sent_again))}"
    found = {
        "app_id": last.app_id,
        "epoch": last.lease.epoch,
        "last_sign_of_life": last.lease.heartbeat_at,
        "verdict": last.outcome.verdict if last.outcome else None,
        "state": last.progress.state if last.progress else None,
        "batch": last.progress.batch if last.progress else None,
    }
    return StartIncident(what, {"found": found, "start": start, "trimmed": trimmed, "replayed": replayed})
