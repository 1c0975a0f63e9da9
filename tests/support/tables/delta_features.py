"""Every feature of Delta's protocol, switched on as another tool's commit does it, and what Lakebound then does. No JVM."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

_IN_READER = frozenset(
    (
        *("columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview", "v2Checkpoint"),
        *("vacuumProtocolCheck", "variantType", "variantType-preview", "variantShredding", "catalogManaged", "futureReader"),
    )
)


@dataclass(frozen=True)
class SwitchedOn:
    """A feature, and how a colleague switches it on.

    Attributes:
        feature: Its name in the protocol, by which a refusal names it.
        properties: That are set.
        about: Keys that the column ``city`` gets in its metadata.
        required: Whether ``city`` may not be null any more.
        new_column: A column, as the log has it, that is added.
        refused: What Lakebound refuses, by name. ``evaluate``: Polars reads no such table, so nobody says which rows to erase.
    """

    feature: str
    properties: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    required: bool = False
    new_column: Mapping[str, Any] | None = None
    refused: str = ""

    @property
    def name(self) -> str:
        """Of the test."""
        how = [
            *self.properties,
            *self.about,
            *(["required"] if self.required else []),
            *(["column"] if self.new_column else []),
        ]
        return "-".join((self.feature, *how))


_ALL = "append replace erase restore alter vacuum"

FEATURES = (
    SwitchedOn("appendOnly"),
    SwitchedOn("appendOnly", {"delta.appendOnly": "true"}, refused="restore erase"),
    SwitchedOn("invariants"),
    SwitchedOn("invariants", about={"delta.invariants": '{"expression":{"expression":"id > 0"}}'}, refused="append alter"),
    SwitchedOn("invariants", required=True),
    SwitchedOn("checkConstraints"),
    SwitchedOn("checkConstraints", {"delta.constraints.positive": "id > 0"}, refused="append alter"),
    SwitchedOn("generatedColumns", about={"delta.generationExpression": "upper('x')"}, refused="append alter"),
    SwitchedOn("identityColumns", about={"delta.identity.start": 1, "delta.identity.step": 1}, refused="append alter restore"),
    SwitchedOn("allowColumnDefaults", refused="alter restore"),
    SwitchedOn("allowColumnDefaults", about={"CURRENT_DEFAULT": "'x'"}, refused="append alter restore"),
    SwitchedOn("columnMapping", refused="evaluate"),
    SwitchedOn("columnMapping", {"delta.columnMapping.mode": "name"}, refused="append replace erase alter"),
    SwitchedOn("columnMapping", {"delta.columnMapping.mode": "id"}, refused="append replace erase alter"),
    SwitchedOn("changeDataFeed", {"delta.enableChangeDataFeed": "true"}),
    SwitchedOn("deletionVectors", {"delta.enableDeletionVectors": "true"}, refused="replace erase"),
    SwitchedOn("timestampNtz", new_column={"name": "local", "type": "timestamp_ntz", "nullable": True, "metadata": {}}),
    SwitchedOn("v2Checkpoint", refused="evaluate"),
    SwitchedOn("vacuumProtocolCheck", refused="alter restore evaluate"),
    SwitchedOn("domainMetadata", refused="replace erase alter restore"),
    SwitchedOn("clustering", refused="replace erase alter restore"),
    SwitchedOn("typeWidening", {"delta.enableTypeWidening": "true"}, refused="replace erase alter restore"),
    SwitchedOn("typeWidening-preview", refused="replace erase alter restore"),
    SwitchedOn("materializePartitionColumns", refused="replace erase alter restore"),
    SwitchedOn("checkpointProtection", refused="replace erase alter restore"),
    SwitchedOn("variantType"),
    SwitchedOn(
        "variantType",
        new_column={"name": "anything", "type": "variant", "nullable": True, "metadata": {}},
        refused="append replace erase alter",
    ),
    SwitchedOn("inCommitTimestamp", refused="alter restore"),
    SwitchedOn("inCommitTimestamp", {"delta.enableInCommitTimestamps": "true"}, refused=_ALL),
    SwitchedOn("rowTracking", {"delta.enableRowTracking": "true"}, refused=_ALL),
    SwitchedOn("rowTracking", refused=_ALL),
    SwitchedOn("icebergCompatV1", {"delta.enableIcebergCompatV1": "true"}, refused=_ALL),
    SwitchedOn("icebergCompatV2", {"delta.enableIcebergCompatV2": "true"}, refused=_ALL),
    SwitchedOn("icebergCompatV3", {"delta.enableIcebergCompatV3": "true"}, refused=_ALL),
    SwitchedOn("icebergWriterCompatV1", refused=_ALL),
    SwitchedOn("catalogManaged", refused=_ALL),
    SwitchedOn("redirectWriterOnly", refused=_ALL),
    SwitchedOn("coordinatedCommits-preview", refused=_ALL),
    SwitchedOn("collations-preview", refused=_ALL),
    SwitchedOn("futureWriter", refused=_ALL),
    SwitchedOn("futureReader", refused=_ALL),
)


def switch_on(folder: Path, switched: SwitchedOn) -> None:
    """Commit the protocol and the metadata that have a feature, on top of the newest version."""
    handle = DeltaTable(str(folder))
    metadata, protocol = handle.metadata(), handle.protocol()
    schema = json.loads(handle.schema().to_json())
    for one in schema["fields"]:
        if one["name"] == "city":
            one["metadata"] |= switched.about
            one["nullable"] = not switched.required
    if switched.new_column is not None:
        schema["fields"].append(switched.new_column)
    if "delta.columnMapping.mode" in switched.properties:
        _map(schema["fields"], itertools.count(1))
    readers = [*(protocol.reader_features or ()), *([switched.feature] if switched.feature in _IN_READER else [])]
    body = {
        "id": str(metadata.id),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema),
        "partitionColumns": metadata.partition_columns,
        "configuration": {**metadata.configuration, **switched.properties},
        "createdTime": metadata.created_time,
    }
    raised = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": readers,
        "writerFeatures": [*(protocol.writer_features or ()), switched.feature],
    }
    commit_as_other(folder, [{"protocol": raised}, {"metaData": body}])


def _map(fields: Sequence[dict[str, Any]], numbers: Iterator[int]) -> None:
    """Give the columns, and the fields in them, ids and the names that they have in the files."""
    for one in fields:
        one["metadata"] |= {"delta.columnMapping.id": next(numbers), "delta.columnMapping.physicalName": one["name"]}
        inner = one["type"]
        while isinstance(inner, dict) and inner["type"] == "array":
            inner = inner["elementType"]
        if isinstance(inner, dict) and inner["type"] == "struct":
            _map(inner["fields"], numbers)


def commit_as_other(folder: Path, actions: Sequence[Mapping[str, Any]], operation: str = "SET TBLPROPERTIES") -> int:
    """Commit actions as another tool does, and return the version."""
    log = folder / "_delta_log"
    version = max(int(path.stem) for path in log.glob("*.json")) + 1
    info = {"commitInfo": {"timestamp": 1_700_000_000_000, "operation": operation, "operationParameters": {}}}
    text = "".join(json.dumps(action) + "\n" for action in (info, *actions))
    (log / f"{version:020d}.json").write_text(text, encoding="utf-8")
    return version
