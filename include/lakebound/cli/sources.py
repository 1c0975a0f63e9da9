"""Which version of the code landed which offsets of a table, as a person reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lakebound.cli.output import moment, number, print_json, print_rows, show
from lakebound.cli.ranges import ranges

if TYPE_CHECKING:
    from lakebound.ledger.entry import Entry, Offsets
    from lakebound.ledger.sources import SourceVersion


def print_sources(newest: Mapping[str, Entry | None], *, json: bool) -> None:
    """Print, per table, the versions of the code that its newest entry remembers, newest first.

    Args:
        newest: The newest entry per table id; None of a table that is not there.
        json: Whether a program reads it.
    """
    from lakebound.ledger.source_ranges import landed_by

    found = {table: list(landed_by(one.sources, one.coverage))[::-1] if one else None for table, one in newest.items()}
    if json:
        print_json([_body(table, *one) for table, versions in found.items() for one in versions or ()])
        return
    for table, versions in found.items():
        show(f"{table}: " + ("no table yet" if versions is None else f"{len(versions)} versions of the code"))
        if versions:
            headers = ("SINCE (UTC)", "SOURCE", "GIT COMMIT", "RECORDS", "OFFSETS")
            print_rows(headers, [_cells(*one) for one in versions], right=("RECORDS",))
    show("What a replay or a release landed later counts as landed by the version that was there before.")


def _body(table: str, version: SourceVersion | None, offsets: Offsets) -> dict[str, Any]:
    from lakebound.ledger.entry import count

    return {
        "table": table,
        "source": version.hash if version else None,
        "revision": version.revision if version else None,
        "since_ms": version.since_ms if version else None,
        "records": count(offsets),
        "offsets": {topic: one.model_dump(mode="json") for topic, one in offsets.items()},
    }


def _cells(version: SourceVersion | None, offsets: Offsets) -> tuple[str, ...]:
    from lakebound.ledger.entry import count

    told = number(count(offsets)), ranges(offsets)
    if version is None:
        return "-", "not known", "-", *told
    return moment(version.since_ms), version.hash, version.revision or "-", *told
