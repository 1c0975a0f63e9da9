"""One partition of an Iceberg table as conditions on its columns: what a plan's names and values stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from pyiceberg import types
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import HourTransform, MonthTransform, Transform, VoidTransform, YearTransform

from lakebound.errors import LakeboundError
from lakebound.redaction import redacted

Literal = str | int | float | bool | Decimal | None

_AS_TEXT = (types.StringType, types.DateType, types.TimeType, types.TimestampType, types.TimestamptzType, types.UUIDType)
_EPOCH = datetime(1970, 1, 1)


class PartitionUnknownError(LakeboundError):
    """A partition of a plan is not one of the table's."""

    def __init__(self, table: str, partition: Mapping[str, str | None], reason: str) -> None:
        fields = ", ".join(partition) or "no field"
        super().__init__(f"table {table}: it has no such partition by {fields} ({reason}); the next run makes a new plan")


@dataclass(frozen=True)
class Condition:
    """``transform(column) = value``; a value of None: is null.

    Attributes:
        transform: As Iceberg writes it, such as ``identity``, ``day`` or ``bucket[16]``.
        value: A text is read by Iceberg as the type of the transform's result.
    """

    transform: str
    column: str
    value: Literal


def conditions(partition: Mapping[str, str | None], metadata: TableMetadata, table: str) -> tuple[Condition, ...]:
    """Return the conditions that the partition's rows meet, and no other rows. Pure.

    Args:
        partition: Partition field to value, as in ``lakebound.tables.health.PartitionFacts``.
        metadata: Of the table.
        table: For the message.

    Raises:
        PartitionUnknownError: The table has no such partition fields, or their column is gone.
    """
    names = set(partition)
    current = metadata.spec()
    specs = [current, *(spec for spec in metadata.partition_specs if spec.spec_id != current.spec_id)]
    found = next((spec for spec in specs if {field.name for field in spec.fields} == names), None)
    if found is None:
        raise PartitionUnknownError(table, partition, "it is not partitioned so")
    result = []
    for field in found.fields:
        column = metadata.schema().find_column_name(field.source_id)
        if column is None:
            raise PartitionUnknownError(table, partition, f"the column of {field.name} was dropped")
        if isinstance(field.transform, VoidTransform):
            continue
        source = metadata.schema().find_field(field.source_id).field_type
        try:
            value = _literal(partition[field.name], field.transform, source)
        except (ValueError, ArithmeticError) as exc:
            raise PartitionUnknownError(table, partition, f"{field.name}: {redacted(exc)}") from exc
        result.append(Condition(str(field.transform), column, value))
    return tuple(result)


def _literal(text: str | None, transform: Transform[object, object], source: types.IcebergType) -> Literal:
    """Return the value of which ``text`` is how the transform writes it for people."""
    if text is None:
        return None
    if isinstance(transform, YearTransform):
        return int(text) - _EPOCH.year
    if isinstance(transform, MonthTransform):
        year, month = text.rsplit("-", 1)
        return (int(year) - _EPOCH.year) * 12 + int(month) - 1
    if isinstance(transform, HourTransform):
        return int((datetime.strptime(text, "%Y-%m-%d-%H") - _EPOCH).total_seconds()) // 3600
    return _plain(text, transform.result_type(source))


def _plain(text: str, kind: types.IcebergType) -> Literal:
    if isinstance(kind, _AS_TEXT):
        return text
    if isinstance(kind, types.IntegerType | types.LongType):
        return int(text)
    if isinstance(kind, types.BooleanType):
        return text.lower() == "true"
    if isinstance(kind, types.FloatType | types.DoubleType):
        return float(text)
    if isinstance(kind, types.DecimalType):
        return Decimal(text)
    raise ValueError(f"a partition by {kind} cannot be picked out")
