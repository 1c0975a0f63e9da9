"""What a Delta table asks of whoever writes to it, and which of that Lakebound does rightly. Pure.

A feature is in a table's protocol, where every writer must know it, but most of them ask nothing until the metadata switches
them on. Which is which: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#table-features.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa

from lakebound.errors import TableFeatureError
from lakebound.tables.delta.column_mapping import MAPPING_MODE, PHYSICAL_NAME, is_mapped
from lakebound.tables.schemas import normalise_schema

Act = Literal["append", "replace", "erase", "restore", "alter", "checkpoint", "vacuum", "clean_log"]
"""What Lakebound does to a table: ``replace`` puts files in place of others with the same rows, ``erase`` with a part of their
rows, ``alter`` changes metadata."""

_WORDS: Mapping[Act, str] = {
    "append": "rows cannot be appended",
    "replace": "files cannot be replaced",
    "erase": "no rows can be taken out",
    "restore": "it cannot be put back to an earlier version",
    "alter": "its columns and properties cannot be changed",
    "checkpoint": "no log checkpoint can be written",
    "vacuum": "no file can be deleted",
    "clean_log": "its log cannot be cleaned up",
}

_EVERYTHING: frozenset[Act] = frozenset(_WORDS)
_ADDS_NO_ROWS: frozenset[Act] = frozenset(("replace", "erase", "checkpoint", "vacuum", "clean_log"))
_REWRITES: frozenset[Act] = frozenset(("replace", "erase"))
_DELETES: frozenset[Act] = frozenset(("checkpoint", "vacuum", "clean_log"))
_NOTHING: frozenset[Act] = frozenset()

_REMOVE = "remove the feature, or land into a new table"


@dataclass(frozen=True)
class _Feature:
    """What may be done to a table that has a feature.

    Attributes:
        permits: Where it is in effect.
        is_always_in_effect: Whether it is so as soon as the protocol names it.
        advice: What to do where it forbids something.
    """

    permits: frozenset[Act]
    is_always_in_effect: bool = True
    advice: str = _REMOVE


_FEATURES: Mapping[str, _Feature] = {
    "appendOnly": _Feature(_EVERYTHING - {"restore", "erase"}, False, "set delta.appendOnly to false first"),
    "invariants": _Feature(_ADDS_NO_ROWS, False, "drop the invariant or NOT NULL, or land into a new table"),
    "checkConstraints": _Feature(_ADDS_NO_ROWS, False, "drop the constraint, or land into a new table"),
    "generatedColumns": _Feature(_ADDS_NO_ROWS, False, "land into a new table"),
    "identityColumns": _Feature(_ADDS_NO_ROWS, False, "land into a new table"),
    "allowColumnDefaults": _Feature(_ADDS_NO_ROWS, False, "drop the column's default, or land into a new table"),
    "columnMapping": _Feature(_DELETES, False, "set delta.columnMapping.mode to none, or land into a new table"),
    "changeDataFeed": _Feature(_EVERYTHING, False),
    "deletionVectors": _Feature(_EVERYTHING - {"erase"}),
    "timestampNtz": _Feature(_EVERYTHING),
    "v2Checkpoint": _Feature(_EVERYTHING),
    "vacuumProtocolCheck": _Feature(_EVERYTHING),
    "domainMetadata": _Feature(_EVERYTHING - _REWRITES),
    "clustering": _Feature(_EVERYTHING - _REWRITES),
    "typeWidening": _Feature(_EVERYTHING - _REWRITES),
    "typeWidening-preview": _Feature(_EVERYTHING - _REWRITES),
    "materializePartitionColumns": _Feature(_EVERYTHING - _REWRITES),
    "checkpointProtection": _Feature(_EVERYTHING - _REWRITES - {"clean_log"}),
    "variantType": _Feature(_DELETES, False, "drop the column, or land into a new table"),
    "inCommitTimestamp": _Feature(frozenset(("checkpoint", "clean_log")), False, "set delta.enableInCommitTimestamps to false"),
    "rowTracking": _Feature(frozenset(("clean_log",))),
    "icebergCompatV1": _Feature(_NOTHING, False),
    "icebergCompatV2": _Feature(_NOTHING, False),
    "icebergCompatV3": _Feature(_NOTHING, False),
}
"""What Delta's features permit; whatever is not here permits nothing."""

_SAME_AS = {"variantType-preview": "variantType", "variantShredding": "variantType", "variantShredding-preview": "variantType"}

_DRAFTED = frozenset(
    (
        *("appendOnly", "invariants", "checkConstraints", "generatedColumns", "changeDataFeed", "columnMapping"),
        *("deletionVectors", "timestampNtz", "v2Checkpoint", "variantType"),
    )
)
"""Features with which deltalake 1.6.6 commits: what it changes in a table's metadata or files is drafted by it."""

_BY_PROPERTY = {
    "delta.appendOnly": "appendOnly",
    "delta.enableChangeDataFeed": "changeDataFeed",
    "delta.enableInCommitTimestamps": "inCommitTimestamp",
    "delta.enableIcebergCompatV1": "icebergCompatV1",
    "delta.enableIcebergCompatV2": "icebergCompatV2",
    "delta.enableIcebergCompatV3": "icebergCompatV3",
    "delta.enableRowTracking": "rowTracking",
}
_BY_FIELD = {
    "delta.invariants": "invariants",
    "delta.generationExpression": "generatedColumns",
    "delta.identity.": "identityColumns",
    "CURRENT_DEFAULT": "allowColumnDefaults",
}
"""Beginnings of keys in a field's metadata."""
_CONSTRAINT = "delta.constraints."


@dataclass(frozen=True)
class TableShape:
    """What a version of a table asks of its writers.

    Attributes:
        features: That its protocol names.
        in_effect: Features that its metadata switches on, each with where it does so.
        partition_by: Its partition columns.
        required: Columns that must not be null, as long as that can be told from a file's statistics.
        columns: Its columns; none where one has a type that only Delta has.
    """

    features: frozenset[str]
    in_effect: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    columns: pa.Schema | None = None

    @property
    def has_vectors(self) -> bool:
        """Whether rows of its files may be deleted without the file being replaced."""
        return "deletionVectors" in self.features


def shape_of(
    features: Iterable[str],
    properties: Mapping[str, str | None],
    partition_by: Sequence[str],
    schema_json: str,
    columns: pa.Schema | None,
) -> TableShape:
    """Return what a version of a table asks of its writers.

    Args:
        features: Names in its protocol; none of a protocol that is older than the names.
        properties: Of its metadata.
        partition_by: Its partition columns.
        schema_json: Its columns as the log has them.
        columns: Its columns; None where one has no type of Arrow's.
    """
    fields = json.loads(schema_json)["fields"]
    in_effect: dict[str, str] = {}
    for feature, where in (*_of_properties(properties), *_of_fields(fields)):
        in_effect.setdefault(feature, where)
    return TableShape(
        features=frozenset(features),
        in_effect=in_effect,
        partition_by=tuple(partition_by),
        required=tuple(one["name"] for one in fields if not one["nullable"] and isinstance(one["type"], str)),
        columns=None if columns is None else normalise_schema(columns),
    )


def check_may(table: str, shape: TableShape, act: Act) -> None:
    """Check that Lakebound does rightly what a table's features ask of it.

    Args:
        table: Id of the table, for the message.
        shape: What the table asks.
        act: What is to be done.

    Raises:
        TableFeatureError: It does not; the first of the features in question is named.
    """
    for feature, where in _relevant(shape):
        rule = _FEATURES.get(_SAME_AS.get(feature, feature))
        if rule is None:
            raise TableFeatureError(table, feature, f"{_WORDS[act]}; it is not known here, {_REMOVE}")
        if act not in rule.permits:
            raise TableFeatureError(table, f"{feature}{where}", f"{_WORDS[act]}; {rule.advice}")
    if act in ("alter", "restore"):
        for feature in sorted(shape.features):
            if _SAME_AS.get(feature, feature) not in _DRAFTED:
                raise TableFeatureError(table, feature, f"{_WORDS[act]}; {_REMOVE}")


def check_restorable(table: str, now: TableShape, then: TableShape) -> None:
    """Check that a table can be put back to an earlier version, whose metadata it gets, too, under the protocol of now.

    Args:
        table: Id of the table, for the message.
        now: What the newest version asks.
        then: What the earlier one asks.

    Raises:
        TableFeatureError: It cannot.
    """
    kept = {feature: where for feature, where in now.in_effect.items() if feature == "appendOnly"}
    check_may(table, replace(now, in_effect=kept), "restore")
    check_may(table, then, "restore")


def check_known(table: str, features: Iterable[str]) -> None:
    """Check that the features of a table that cannot be opened are none that Lakebound, or deltalake, does not know.

    Raises:
        TableFeatureError: One is.
    """
    for feature in sorted(features):
        if _SAME_AS.get(feature, feature) not in _FEATURES:
            raise TableFeatureError(table, feature, f"it cannot even be read; {_REMOVE}")


_NEEDED_BY_OTHERS = "domainMetadata"


def _relevant(shape: TableShape) -> Iterator[tuple[str, str]]:
    """Yield the features that count, each with where it is switched on; unknown ones first, and last what others bring."""
    always = []
    for feature in sorted(shape.features, key=lambda one: (one in _FEATURES or one in _SAME_AS, one)):
        rule = _FEATURES.get(_SAME_AS.get(feature, feature))
        if rule is None:
            yield feature, ""
        elif rule.is_always_in_effect and feature not in shape.in_effect:
            always.append(feature)
    for feature, where in shape.in_effect.items():
        yield feature, f" ({where})"
    # A person has switched on row tracking or clustering, and not the feature that these need.
    yield from ((feature, "") for feature in sorted(always, key=lambda one: one == _NEEDED_BY_OTHERS))


def _of_properties(properties: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
    for name, value in properties.items():
        if name in _BY_PROPERTY and str(value).lower() == "true":
            yield _BY_PROPERTY[name], name
        elif name.startswith(_CONSTRAINT):
            yield "checkConstraints", f"{name.removeprefix(_CONSTRAINT)}: {value}"
        elif name == MAPPING_MODE and is_mapped(properties):
            yield "columnMapping", f"{name} is {value}"


def _of_fields(fields: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield what the columns, and the fields in them, switch on."""
    for one in fields:
        if not one["nullable"] and not isinstance(one["type"], str):
            yield "invariants", f"column {one['name']} is NOT NULL"
        yield from _of_field(one, one["name"])


def _of_field(one: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    about = one.get("metadata") or {}
    for key in about:
        for start, feature in _BY_FIELD.items():
            if key.startswith(start):
                yield feature, f"column {path}"
    if about.get(PHYSICAL_NAME, one["name"]) != one["name"]:
        yield "columnMapping", f"column {path} has another name in the files"
    yield from _of_type(one["type"], path)


def _of_type(kind: Any, path: str) -> Iterator[tuple[str, str]]:
    if kind == "variant":
        yield "variantType", f"column {path}"
    elif isinstance(kind, dict) and kind["type"] == "struct":
        for one in kind["fields"]:
            if not one["nullable"]:
                yield "invariants", f"column {path}.{one['name']} is NOT NULL"
            yield from _of_field(one, f"{path}.{one['name']}")
    elif isinstance(kind, dict):
        for inside in ("elementType", "keyType", "valueType"):
            if inside in kind:
                yield from _of_inner_type(kind[inside], path)


def _of_inner_type(kind: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield what is inside of a list or a map, where nobody enforces NOT NULL."""
    yield from ((feature, where) for feature, where in _of_type(kind, path) if feature != "invariants")
