"""Table properties under which maintenance, a rewind or the ledger would suffer, each with the fix in its sentence. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from lakebound.spec.maintenance import MaintenanceSpec
from lakebound.tables.formats import PerFormat, format_of

_WARNINGS: PerFormat[Callable[[Mapping[str, str], MaintenanceSpec], Iterator[str]]] = PerFormat(
    "lakebound.operations.maintenance", "property_warnings:warnings"
)


def property_warnings(table: str, properties: Mapping[str, str], policy: MaintenanceSpec) -> tuple[str, ...]:
    """Return a sentence for each dangerous property of a table.

    Args:
        table: ``format:name``.
        properties: As the table has them, or as the pipeline's YAML gives them for a new one.
        policy: What maintenance promises.
    """
    return tuple(f"{table}: {sentence}" for sentence in _WARNINGS.of(format_of(table))(properties, policy))
