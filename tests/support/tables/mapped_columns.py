"""A colleague's column mapping of a Delta table, as Spark commits it. Imports nothing of what it judges."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

Fields = list[dict[str, Any]]
Protocol = Literal["features", "legacy"]
_ID, _PHYSICAL, _MODE = "delta.columnMapping.id", "delta.columnMapping.physicalName", "delta.columnMapping.mode"
_PROTOCOLS: dict[Protocol, dict[str, Any]] = {
    "features": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["columnMapping"],
        "writerFeatures": ["columnMapping"],
    },
    "legacy": {"minReaderVersion": 2, "minWriterVersion": 5},
}


class ColumnMapping:
    """Changes the columns of a table with column mapping, one commit each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._metadata = _newest(folder, "metaData")
        self._schema: dict[str, Any] = json.loads(self._metadata["schemaString"])

    def switch_on(self, protocol: Protocol = "features", mode: str = "name") -> None:
        """Each column keeps its name in the files."""
        number = 0
        for one in _every(self._fields):
            number += 1
            one["metadata"] |= {_ID: number, _PHYSICAL: one["name"]}
        self._commit({_MODE: mode, "delta.columnMapping.maxColumnId": str(number)}, _PROTOCOLS[protocol])

    def rename(self, path: str, name: str) -> None:
        """Rename a column, or a field of a struct in a list."""
        self._owner(path, lambda fields, at: fields[at].update(name=name))

    def rename_partition(self, name: str, new: str) -> None:
        """Rename a partition column, in the list of these, too."""
        columns = self._metadata["partitionColumns"]
        self._metadata["partitionColumns"] = [new if one == name else one for one in columns]
        self.rename(name, new)

    def drop(self, path: str) -> None:
        """Drop one."""
        self._owner(path, lambda fields, at: fields.pop(at) and None)

    def add(self, name: str, into: str | None = None) -> None:
        """Add a text, which gets another name in the files."""
        number = int(self._metadata["configuration"].get("delta.columnMapping.maxColumnId", "0")) + 1
        about = {_ID: number, _PHYSICAL: f"col-{number}"}
        field = {"name": name, "type": "string", "nullable": True, "metadata": about}
        fields = self._fields if into is None else _inner(next(one for one in self._fields if one["name"] == into))
        fields.append(field)
        self._commit({"delta.columnMapping.maxColumnId": str(number)})

    def forget(self, name: str) -> None:
        """Take a column out of the metadata, without column mapping: no tool ought to."""
        self._owner(name, lambda fields, at: fields.pop(at) and None)

    @property
    def _fields(self) -> Fields:
        fields: Fields = self._schema["fields"]
        return fields

    def _owner(self, path: str, change: Callable[[Fields, int], None]) -> None:
        *outer, name = path.split(".")
        fields = self._fields
        for one in outer:
            fields = _inner(next(found for found in fields if found["name"] == one))
        change(fields, next(at for at, found in enumerate(fields) if found["name"] == name))
        self._commit({})

    def _commit(self, properties: dict[str, str], protocol: dict[str, Any] | None = None) -> None:
        self._metadata["configuration"] |= properties
        self._metadata["schemaString"] = json.dumps(self._schema)
        commit(self._folder, [*([{"protocol": protocol}] if protocol else []), {"metaData": self._metadata}])


def commit(folder: Path, actions: list[dict[str, Any]], operation: str = "SET TBLPROPERTIES") -> None:
    """Commit actions as another tool does."""
    versions = [int(path.stem) for path in (folder / "_delta_log").glob("*.json")]
    info = {"commitInfo": {"timestamp": 1_700_000_000_000, "operation": operation, "operationParameters": {}}}
    text = "".join(json.dumps(action) + "\n" for action in (info, *actions))
    (folder / "_delta_log" / f"{max(versions) + 1:020d}.json").write_text(text, encoding="utf-8")


def seen_rows(folder: Path) -> list[dict[str, Any]]:
    """Return the rows as a reader sees them that knows column mapping (delta-kernel, by SQL), by id."""
    found = QueryBuilder().register("seen", DeltaTable(str(folder))).execute("SELECT * FROM seen ORDER BY id").read_all()
    rows: list[dict[str, Any]] = pa.table(found).to_pylist()
    return rows


def _newest(folder: Path, action: str) -> dict[str, Any]:
    for path in sorted((folder / "_delta_log").glob("*.json"), reverse=True):
        for line in path.read_text(encoding="utf-8").split("\n"):
            if line and action in (found := json.loads(line)):
                body: dict[str, Any] = found[action]
                return body
    raise AssertionError(f"no {action} in {folder}")


def _every(fields: Fields) -> Iterator[dict[str, Any]]:
    for one in fields:
        yield one
        yield from _every(_inner(one))


def _inner(field: dict[str, Any]) -> Fields:
    kind = field["type"]
    while isinstance(kind, dict) and kind["type"] == "array":
        kind = kind["elementType"]
    return kind["fields"] if isinstance(kind, dict) and kind["type"] == "struct" else []
