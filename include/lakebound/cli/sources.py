"""Which version of the code landed which offsets of a table, as a person reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakebound.cli.output import moment, number, print_json, print_rows, show
from lakebound.cli.ranges import ranges

if TYPE_CHECKING:
    from lakebound.operations.redo.made_by import MadeBy


def print_sources(found: Mapping[str, Sequence[MadeBy] | None], *, json: bool) -> None:
    """Print, per table, which versions of the code made its rows, newest first.

    Args:
        found: By the table's id, oldest first; None of a table that is not there.
        json: Whether a program reads it.
    """
    if json:
        print_json([_body(table, one) for table, versions in found.items() for one in (versions or ())[::-1]])
        return
    for table, versions in found.items():
        number_of = len({one.version.hash if one.version else None for one in versions or ()})
        show(f"{table}: " + ("no table yet" if versions is None else f"{number_of} versions of the code"))
        if versions:
            headers = ("SINCE (UTC)", "SOURCE", "GIT COMMIT", "RECORDS", "OFFSETS")
            print_rows(headers, [_cells(one) for one in versions[::-1]], right=("RECORDS",))
    show("What a replay or a release landed later counts as landed by the version that was there before. What a redo made anew")
    show("counts as its version's, as long as its entries are kept.")


def _body(table: str, made: MadeBy) -> dict[str, Any]:
    from lakebound.ledger.entry import count

    return {
        "table": table,
        "source": made.version.hash if made.version else None,
        "revision": made.version.revision if made.version else None,
        "since_ms": made.version.since_ms if made.version else None,
        "redone": made.is_redo,
        "records": count(made.offsets),
        "offsets": {topic: one.model_dump(mode="json") for topic, one in made.offsets.items()},
    }


def _cells(made: MadeBy) -> tuple[str, ...]:
    from lakebound.ledger.entry import count

    told = number(count(made.offsets)), ranges(made.offsets)
    if made.version is None:
        return "-", "not known", "-", *told
    return moment(made.version.since_ms), made.version.hash, "redone" if made.is_redo else made.version.revision or "-", *told
