"""What maintenance cannot do where a table lies: known before a run, so that no Spark is started, and no step fails, for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakebound.landing.batch_command import CatalogNotSharedError, check_shared
from lakebound.spec.maintenance import MaintenanceSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.format_rules import rules_of
from lakebound.tables.places import Places

ORPHANS_STAY = (
    "orphans in an object store are not moved aside; set maintenance.orphans.mode to dry_run: their names are then listed, and "
    "the store's own rules or a person can delete them"
)


@dataclass(frozen=True)
class Refusals:
    """Why steps of one table are not done; an empty text: they are.

    Attributes:
        sparks: Why manifests and delete files are not rewritten, nor data files while there are delete files: Spark would.
        moves: Why orphans are not moved aside.
    """

    sparks: str = ""
    moves: str = ""


NOTHING_REFUSED = Refusals()


def refusals_of(table: TableSpec, places: Places) -> Refusals:
    """Return what cannot be done to a table. Asks neither catalog nor store."""
    moves = "" if places.root.is_local else f"{table.id}: {ORPHANS_STAY}"
    if not rules_of(table.format).has_catalog:
        return Refusals("", moves)
    try:
        check_shared(table.id, places)
    except CatalogNotSharedError as exc:
        return Refusals(str(exc).removeprefix("table "), moves)
    return Refusals("", moves)


def refused_settings(tables: Sequence[TableSpec], policy: MaintenanceSpec, places: Places) -> list[str]:
    """Return a sentence for each table of which the policy asks what is refused.

    Args:
        tables: The tables of a pipeline.
        policy: What its YAML says of maintenance.
        places: Where the tables are.
    """
    if not policy.enabled or policy.orphans.mode != "quarantine":
        return []
    return [found.moves for table in tables if (found := refusals_of(table, places)).moves]
