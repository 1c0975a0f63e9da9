"""What a plan may hold for the tables of a format, and how long it lets their versions be read. Pure.

Each format has its own in ``planning.py`` of its folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from lakebound.control.table_history import Grain
from lakebound.operations.maintenance.history import PastRun, TablePast
from lakebound.operations.maintenance.steps import Compact, MaintenanceStep
from lakebound.spec.maintenance import HistorySpec, MaintenanceSpec
from lakebound.tables.formats import PerFormat, format_of
from lakebound.tables.health import MetadataFacts, TableFacts


@dataclass(frozen=True)
class PlannedTable:
    """What is known of a table for which steps are planned.

    Attributes:
        facts: Its files.
        past: Its versions.
        runs: What earlier runs did to it.
        policy: What the pipeline's YAML asks for.
        now_ms: Epoch milliseconds.
    """

    facts: TableFacts
    past: TablePast
    runs: PastRun
    policy: MaintenanceSpec
    now_ms: int


class PlanningRules:
    """The rules of one format.

    Attributes:
        orders_whole_partitions: Rows are put in order for a whole partition or not at all, by ``zorder_by``; otherwise with
            each rewrite, by ``sort_by``.
        joins_neighbours: Files that came one after the other are joined, up to the target's size; otherwise all are
            split evenly.
        rewrites_deletes: A rewrite rids readers of delete files.
        ends_by: The step that takes older versions away.
    """

    orders_whole_partitions: ClassVar[bool] = False
    joins_neighbours: ClassVar[bool] = False
    rewrites_deletes: ClassVar[bool] = False
    ends_by: ClassVar[str]

    def not_compacted(self, facts: TableFacts) -> str:
        """Return why no file of a table is rewritten; empty: they are."""
        return ""

    def metadata_parts(self, metadata: MetadataFacts) -> str:
        """Return in words how many parts of a table's metadata a reader reads."""
        raise NotImplementedError

    def shown_for_seconds(self, table: str, policy: MaintenanceSpec, properties: Mapping[str, str], now_ms: int) -> float:
        """Return how long older versions show their rows; a registered reader or a tag may need an older one.

        Args:
            table: Id of the table.
            policy: The pipeline's maintenance.
            properties: The table's own.
            now_ms: Epoch milliseconds.
        """
        raise NotImplementedError

    def grains(self, policy: HistorySpec, properties: Mapping[str, str]) -> tuple[Grain, ...]:
        """Return how many versions are kept for how long.

        Args:
            policy: What the pipeline keeps.
            properties: The table's own.
        """
        raise NotImplementedError

    def warnings(self, properties: Mapping[str, str], policy: MaintenanceSpec) -> Iterator[str]:
        """Yield a sentence for each property under which maintenance, a rewind or the ledger would suffer, with the fix.

        Args:
            properties: The table's.
            policy: What maintenance promises.
        """
        yield from ()

    def before(self, table: PlannedTable) -> Iterator[MaintenanceStep]:
        """Yield the steps before the compactions."""
        yield from ()

    def after(self, table: PlannedTable, compactions: Sequence[Compact]) -> Iterator[MaintenanceStep]:
        """Yield the steps after the compactions that need no Spark."""
        yield from ()

    def by_spark(self, facts: TableFacts, policy: MaintenanceSpec, compactions: Sequence[Compact]) -> Iterator[MaintenanceStep]:
        """Yield the steps after the compactions that only Spark does."""
        yield from ()


_RULES: PerFormat[PlanningRules] = PerFormat("lakebound.operations.maintenance", "planning:RULES")


def planning_of(table: str) -> PlanningRules:
    """Return the rules for a table.

    Args:
        table: ``format:name``.
    """
    return _RULES.of(format_of(table))


def property_warnings(table: str, properties: Mapping[str, str], policy: MaintenanceSpec) -> tuple[str, ...]:
    """Return a sentence for each dangerous property of a table.

    Args:
        table: ``format:name``.
        properties: As the table has them, or as the pipeline's YAML gives them for a new one.
        policy: What maintenance promises.
    """
    return tuple(f"{table}: {sentence}" for sentence in planning_of(table).warnings(properties, policy))
