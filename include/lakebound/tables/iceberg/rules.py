"""What an Iceberg table can be. Pure; imports no library of Iceberg."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pyarrow as pa

from lakebound.formats.same_names import as_compared
from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.tables.format_rules import FormatRules
from lakebound.tables.places import Places

_SUFFIXES = {"identity": "", "truncate": "_trunc"}
_COLUMNS_OF_SPARK = frozenset(
    {"_file", "_pos", "_partition", "_spec_id", "_deleted", "_row_id", "_last_updated_sequence_number"}
)
"""Spark cannot read a table that has one of these itself.
Source: https://iceberg.apache.org/docs/latest/spark-queries/#metadata-columns, and ``MetadataColumns`` of iceberg-core 1.12."""


class IcebergRules(FormatRules):
    """The rules of Iceberg."""

    fixed_properties: ClassVar[Mapping[str, str]] = {
        "format-version": "2",
        "write.format.default": "parquet",
        "write.object-storage.enabled": "false",
    }
    unused_properties: ClassVar[tuple[str, ...]] = (
        "write.data.path",
        "write.folder-storage.path",
        "write.metadata.path",
        "write.location-provider.impl",
    )
    has_catalog: ClassVar[bool] = True
    skips_changes: ClassVar[str] = "streaming-skip-overwrite-snapshots"
    # Data, manifest, manifest list and metadata, and a merged manifest each tenth commit. A REST catalog writes the metadata
    # itself, into the same bucket; what else it asks there is its own affair.
    commit_requests: ClassVar[tuple[float, float]] = (4.1, 0.0)

    def may_exist(self, places: Places) -> bool:
        """Whether there is a catalog to ask; a SQLite file would be made."""
        from lakebound.tables.iceberg.catalog_file import sqlite_file

        if places.warehouse.catalog is None:
            return False
        catalog = sqlite_file(places.iceberg_catalog_uri)
        return catalog is None or catalog.is_file()

    def table_folder(self, data_folder: Location) -> Location:
        """Return the folder that holds the data files' folder, and the metadata beside it."""
        return data_folder.parent

    def partition_names(self, spec: TableSpec) -> tuple[str, ...]:
        """Return the names of the partition fields, as PyIceberg and Spark give them."""
        return tuple(column + _SUFFIXES.get(transform, f"_{transform}") for transform, _, column in spec.partition_fields())

    def is_partitioned_by(self, kind: pa.DataType) -> bool:
        """Whether a table can be partitioned by the values of columns of a flat type."""
        return not pa.types.is_floating(kind)

    def unusable_name(self, name: str) -> str | None:
        """Return why a column cannot have a name."""
        if as_compared(name) not in _COLUMNS_OF_SPARK:
            return None
        return "has the name of a column that Spark adds to each Iceberg table: give it another name"


RULES = IcebergRules()
