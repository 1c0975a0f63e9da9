"""Which version of the code landed which offsets of a table, as a person reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lakebound.cli.output import moment, number, print_json, print_rows, show

if TYPE_CHECKING:
    from lakebound.ledger.entry import Entry

MAX_INTERVALS_SHOWN = 6


def print_sources(newest: Mapping[str, Entry | None], *, json: bool) -> None:
    """Print, per table, the versions of the code that its newest entry remembers, newest first.

    Args:
        newest: The newest entry per table id; None of a table that is not there.
        json: Whether a program reads it.
    """
    found = {table: list(_versions(entry))[::-1] if entry else None for table, entry in newest.items()}
    if json:
        print_json([{"table": table, **one} for table, versions in found.items() for one in versions or ()])
        return
    for table, versions in found.items():
        show(f"{table}: " + ("no table yet" if versions is None else f"{len(versions)} versions of the code"))
        if versions:
            headers = ("SINCE (UTC)", "SOURCE", "GIT COMMIT", "RECORDS", "OFFSETS")
            print_rows(headers, [_cells(one) for one in versions], right=("RECORDS",))
    show("What a replay or a release landed later counts as landed by the version that was there before.")


def _versions(entry: Entry) -> Iterator[dict[str, Any]]:
    from lakebound.ledger.entry import count
    from lakebound.ledger.source_ranges import landed_by

    for version, offsets in landed_by(entry.sources, entry.coverage):
        yield {
            "source": version.hash if version else None,
            "revision": version.revision if version else None,
            "since_ms": version.since_ms if version else None,
            "records": count(offsets),
            "offsets": {topic: one.model_dump(mode="json") for topic, one in offsets.items()},
        }


def _cells(version: Mapping[str, Any]) -> tuple[str, ...]:
    since = moment(version["since_ms"]) if version["since_ms"] is not None else "-"
    spans = [
        f"{topic} {partition}: [{start}, {end})"
        for topic, one in version["offsets"].items()
        for partition, intervals in one["partitions"].items()
        for start, end in intervals
    ]
    more = f" and {len(spans) - MAX_INTERVALS_SHOWN} more" if len(spans) > MAX_INTERVALS_SHOWN else ""
    told = ", ".join(spans[:MAX_INTERVALS_SHOWN]) + more
    return since, version["source"] or "not known", version["revision"] or "-", number(version["records"]), told or "-"
