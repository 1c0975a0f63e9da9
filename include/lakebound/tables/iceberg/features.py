"""What of Iceberg's format Lakebound does not write rightly, so that it commits nothing to a table that has it.

Others may switch it on at any time, without a snapshot. So it is looked for in the metadata on which each commit stands. What
is not here is written rightly, or is only advice to writers: sort orders, branches, tags, delete files of format 2, statistics,
``write.wap.enabled`` (an ordinary commit goes to the branch ``main``), ``write.object-storage.enabled``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyiceberg.table.locations import LocationProvider, load_location_provider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import IcebergType, MapType

from lakebound.errors import TableFeatureError
from lakebound.spec.table_properties import names_code
from lakebound.tables.iceberg.field_ids import nested_fields

FORMAT_VERSION = 2
"""The one that is written. PyIceberg (0.12) writes no version 3; version 1 has neither delete files nor sequence numbers."""

_FOLDERS = ("write.data.path", "write.metadata.path", "write.folder-storage.path", "write.object-storage.path")

_VERSION_1 = "raise it: ALTER TABLE … SET TBLPROPERTIES ('format-version' = '2')"
_LATER = "a table cannot be put back to version 2: land into a new table, and copy the rows"


def check_features(metadata: TableMetadata, table: str) -> None:
    """Check that the table has nothing that is not written rightly.

    Args:
        metadata: On which a commit would stand.
        table: Id of the table, for the message.

    Raises:
        TableFeatureError: It has.
    """
    check_metadata(metadata.format_version, metadata.properties, table)
    required = next(_required((), metadata.schema().as_struct()), None)
    if required is not None:
        raise TableFeatureError(
            table,
            f"NOT NULL on column {required}",
            f"drop it: ALTER TABLE … ALTER COLUMN {required} DROP NOT NULL (for an identifier field, ALTER TABLE … DROP "
            "IDENTIFIER FIELDS first)",
        )


def check_body(body: Mapping[str, Any], table: str) -> None:
    """Check the same of a metadata file's JSON, as far as deleting what nothing needs depends on it.

    Args:
        body: The metadata.
        table: Id of the table, for the message.

    Raises:
        TableFeatureError: It has something that is not written rightly.
    """
    check_metadata(body["format-version"], body.get("properties", {}), table)


def check_metadata(format_version: int, properties: Mapping[str, str], table: str) -> None:
    """Check format version and properties.

    Args:
        format_version: Of the table.
        properties: Of the table.
        table: Its id, for the message.

    Raises:
        TableFeatureError: One is not written rightly.
    """
    if format_version != FORMAT_VERSION:
        raise TableFeatureError(
            table, f"format version {format_version}", _VERSION_1 if format_version < FORMAT_VERSION else _LATER
        )
    check_no_code(properties, table)
    for name, value in properties.items():
        is_other_format = name == "write.format.default" and value.lower() != "parquet"
        if is_other_format or name in _FOLDERS or name.startswith("encryption."):
            raise TableFeatureError(table, f"the property {name} = {value}", _without(name))


def check_no_code(properties: Mapping[str, str], table: str) -> None:
    """Check that no property names a class or a module: its code would run with the rights of the application.

    Args:
        properties: Of a table.
        table: Its id or location, for the message.

    Raises:
        TableFeatureError: One does.
    """
    for name, value in properties.items():
        if names_code(name):
            raise TableFeatureError(table, f"the property {name} = {value} (code to be loaded)", _without(name))


def locations_of(location: str, properties: Mapping[str, str]) -> LocationProvider:
    """Return what names new metadata files of a table: never a provider that the table itself names.

    Args:
        location: The table's.
        properties: The table's.

    Raises:
        TableFeatureError: It names one.
    """
    check_no_code(properties, location)
    return load_location_provider(location, dict(properties))


def _without(name: str) -> str:
    return f"remove it: ALTER TABLE … UNSET TBLPROPERTIES ('{name}')"


def _required(path: tuple[str, ...], kind: IcebergType) -> Iterator[str]:
    for field in nested_fields(kind):
        here = (*path, field.name)
        is_key = isinstance(kind, MapType) and field.field_id == kind.key_id
        if field.required and not is_key:
            yield ".".join(here)
        yield from _required(here, field.field_type)
