"""Reading what a table's metadata says, whichever format it has: in memory, without Spark, and without changing anything."""

from __future__ import annotations

from collections.abc import Callable

from lakebound.errors import LakeboundError
from lakebound.first_line import first_line
from lakebound.spec.table import TableSpec
from lakebound.tables.format_rules import rules_of
from lakebound.tables.formats import PerFormat
from lakebound.tables.health import TableFacts
from lakebound.tables.places import Places

_READERS: PerFormat[Callable[[TableSpec, Places, int], TableFacts | None]] = PerFormat("lakebound.tables", "health:read_facts")
_ATTEMPTS = 4


class UnreadableTableError(LakeboundError):
    """A table is there, and its metadata cannot be read."""

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(
            f"the metadata of {table} cannot be read: {reason}; `lakebound doctor PIPELINE` says whether its ledger can be read"
        )


def read_table_facts(spec: TableSpec, places: Places, now_ms: int) -> TableFacts | None:
    """Return what a table's metadata says of it at its newest version; None where there is no such table.

    Args:
        spec: The table.
        places: Where it is; they may be read-only.
        now_ms: Time of the reading (ms), which the facts carry.

    Raises:
        UnreadableTableError: There is a table, but its metadata is missing or wrong.
    """
    if not rules_of(spec.format).may_exist(places):
        return None
    looking = places.read_only()
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _READERS.of(spec.format)(spec, looking, now_ms)
        except FileNotFoundError as exc:
            # A stream commits and old metadata is deleted while this reads: newer metadata names other files.
            if attempt == _ATTEMPTS:
                raise UnreadableTableError(spec.id, f"{exc.filename or exc} is not there") from exc
        except Exception as exc:
            raise UnreadableTableError(spec.id, first_line(exc)) from exc
    raise AssertionError("the last attempt returns or raises")
