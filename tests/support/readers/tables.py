"""Generated tables, written by Lakebound's own writer: each is appended to, compacted, given columns, and rewound."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from lakebound.operations.maintenance.delta.engine import DeltaEngine
from lakebound.operations.maintenance.engines import carried_entry
from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.places import Places
from lakebound.tables.schema_change import plan_schema
from lakebound.tables.table import KAFKA_TYPE, open_table
from tests.support.readers.values import KINDS, Kind
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.local_tables import genesis, lander, offsets, rows
from tests.support.tables.maintained import compaction, rewrite_iceberg

Row = dict[str, Any]
Format = Literal["delta", "iceberg"]
Compaction = Callable[[TableSpec, Places], None]

BATCHES, BATCH = 6, 4
REWOUND_TO = 3
"""The batches that are left after the rewind."""


@dataclass(frozen=True)
class Leaf:
    """A column, or a field of a struct.

    Attributes:
        path: Names from the column down.
        kind: None of a list or a map, of which only nulls are asked for.
    """

    path: tuple[str, ...]
    kind: Kind | None

    def of(self, row: Row) -> Any:
        """Return its value in a row, null where a struct around it is."""
        value: Any = row
        for name in self.path:
            value = None if value is None else value.get(name)
        return value


@dataclass(frozen=True)
class Shape:
    """What a generated table is made of.

    Attributes:
        name: Of the table.
        columns: Types by name: names of ``KINDS``, ``{"name": ...}`` of a struct, ``list`` or ``map``.
        partition_by: As a pipeline writes it.
        added: Columns that it gets later.
        widened: Columns whose type gets wider then; Iceberg alone can do it.
    """

    name: str
    columns: dict[str, Any]
    partition_by: tuple[str, ...] = ()
    added: dict[str, Any] | None = None
    widened: dict[str, Any] | None = None


@dataclass(frozen=True)
class Stage:
    """A version of a table, and what readers must see in it."""

    name: Literal["appended", "compacted", "evolved", "rewound"]
    version: str
    rows: Sequence[Row]
    leaves: Sequence[Leaf]


@dataclass(frozen=True)
class Generated:
    """A table with the versions that are asked."""

    spec: TableSpec
    at: Places
    stages: Sequence[Stage]
    is_by_spark: bool = False
    """Whether somebody else than Lakebound's writer compacted it."""


def arrow_type(told: Any) -> pa.DataType:
    """Return the type of a column as a shape tells it."""
    if isinstance(told, dict):
        return pa.struct([pa.field(name, arrow_type(inside)) for name, inside in told.items()])
    if told == "list":
        return pa.list_(pa.field("element", pa.float64()))
    return pa.map_(pa.string(), pa.int32()) if told == "map" else KINDS[told].type


def generate(shape: Shape, table_format: Format, at: Places, seed: int, compact: Compaction | None = None) -> Generated:
    """Make a table and lead it through its life.

    Args:
        shape: What it is made of.
        table_format: Its format.
        at: Where it lies.
        seed: Of which values stand in which rows.
        compact: Compacts it in place of what does without a JVM.
    """
    spec = TableSpec(format=table_format, name=f"readers.{shape.name}", partition_by=shape.partition_by)
    table = open_table(spec, at)
    table.create(_schema(shape.columns), genesis())
    made = _rows(shape.columns, seed, 0)
    for start in range(0, len(made), BATCH):
        _land(spec, at, shape.columns, made[start : start + BATCH])
    stages = [Stage("appended", _version(spec, at), made, _leaves(shape.columns))]
    (compact or _compact)(spec, at)
    stages.append(Stage("compacted", _version(spec, at), made, _leaves(shape.columns)))
    evolved = {**shape.columns, **((shape.widened or {}) if table_format == "iceberg" else {}), **(shape.added or {})}
    if evolved != shape.columns:
        plan = plan_schema(table.schema(), _schema(evolved), "add_columns", table_format)
        assert plan.is_change and not plan.differences, plan
        open_table(spec, at).change_schema(plan, carried_entry(spec, at))
    more = _rows(evolved, seed + 1, len(made))
    for start in range(0, len(more), 2 * BATCH):
        _land(spec, at, evolved, more[start : start + 2 * BATCH])
    stages.append(Stage("evolved", _version(spec, at), [*made, *more], _leaves(evolved)))
    _rewind(spec, at, REWOUND_TO * BATCH)
    stages.append(Stage("rewound", _version(spec, at), made[: REWOUND_TO * BATCH], _leaves(shape.columns)))
    return Generated(
        spec, at, [replace(stage, rows=[_held(row, spec) for row in stage.rows]) for stage in stages], compact is not None
    )


def _held(row: Row, spec: TableSpec) -> Row:
    """Return a row as a table can hold it: by Delta's protocol an empty text is no partition value."""
    empty = [name for name in spec.partition_by if spec.format == "delta" and row[name] == ""]
    return {**row, **dict.fromkeys(empty)}


def _schema(columns: dict[str, Any]) -> pa.Schema:
    fields = [pa.field(name, arrow_type(told)) for name, told in columns.items()]
    return pa.schema([pa.field("id", pa.int64()), *fields, pa.field("_kafka", KAFKA_TYPE)])


def _leaves(columns: dict[str, Any]) -> list[Leaf]:
    return [Leaf(("id",), KINDS["int64"]), *(leaf for name, told in columns.items() for leaf in _leaves_of((name,), told))]


def _leaves_of(path: tuple[str, ...], told: Any) -> Iterator[Leaf]:
    if isinstance(told, dict):
        for name, inside in told.items():
            yield from _leaves_of((*path, name), inside)
    else:
        yield Leaf(path, KINDS.get(told))


def _rows(columns: dict[str, Any], seed: int, first: int) -> list[Row]:
    """Return rows in which each column is in order or mixed up: files tell little, or much, of where a value is."""
    chance, count = random.Random(f"{seed} {first} {sorted(columns)}"), BATCHES * BATCH
    made = {name: _values(told, count, chance, is_sorted=chance.random() < 0.6) for name, told in columns.items()}
    return [{"id": first + number, **{name: values[number] for name, values in made.items()}} for number in range(count)]


def _values(told: Any, count: int, chance: random.Random, *, is_sorted: bool) -> list[Any]:
    if isinstance(told, dict):
        inside = {name: _values(one, count, chance, is_sorted=is_sorted) for name, one in told.items()}
        return [
            None if chance.random() < 0.15 else {name: values[number] for name, values in inside.items()}
            for number in range(count)
        ]
    if told == "list":
        return [chance.choice([None, [], [1.5], [float("nan"), None]]) for _ in range(count)]
    if told == "map":
        return [chance.choice([None, [], [("a", 1)], [("", None)]]) for _ in range(count)]
    pool = list(KINDS[told].values)
    chance.shuffle(pool)
    values = [*pool, *(chance.choice(pool) for _ in range(count))][: count - 3]
    if is_sorted:
        values.sort(key=lambda value: (1, 0) if value != value else (0, value))
    else:
        chance.shuffle(values)
    nulls = [None] * (count - len(values))
    # Nulls of their own at the end fill most of a file; otherwise each stands beside values.
    return [*values, *nulls] if is_sorted else chance.sample([*values, *nulls], count)


def _land(spec: TableSpec, at: Places, columns: dict[str, Any], made: Sequence[Row]) -> None:
    app = lander(spec, at)
    start = made[0]["id"]
    kafka = rows(start, start + len(made))["_kafka"].to_pylist()
    batch = pa.Table.from_pylist([{**row, "_kafka": one} for row, one in zip(made, kafka, strict=True)], _schema(columns))
    app.land(start, start + len(made), write_data_files(batch, app.table.layout(), "r"))


def _compact(spec: TableSpec, at: Places) -> None:
    if spec.format == "delta":
        DeltaEngine(at).compact(spec, compaction(spec))
    else:
        rewrite_iceberg(spec, at)


def _version(spec: TableSpec, at: Places) -> str:
    if spec.format == "delta":
        return next(open_table(spec, at).history().versions()).version
    snapshot = foreign_iceberg(spec, at).current_snapshot()
    assert snapshot is not None
    return str(snapshot.snapshot_id)


def _rewind(spec: TableSpec, at: Places, landed: int) -> None:
    table = open_table(spec, at)
    entry = carried_entry(spec, at)
    found = next(
        one for one in table.history().versions() if one.entry is not None and one.entry.coverage == offsets(0, landed)
    )
    reset = genesis(epoch=entry.epoch + 1).model_copy(update={"kind": "reset", "coverage": offsets(0, landed)})
    table.restore(found.version, reset)


_INTEGERS = {"i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "flag": "bool"}
_DECIMALS = {name: name for name in KINDS if name.startswith("decimal") and name != "decimal_30_2"}
_NESTED = {
    "s": {"i": "int32", "d": "float64", "text": "string", "deep": {"amount": "decimal_38_18", "at": "timestamp"}},
    "items": "list",
    "counts": "map",
}
_BESIDE = {"d": "float64", "text": "string"}

_PLAIN = (
    Shape("integers", _INTEGERS, added={"later": "decimal_18_4"}, widened={"i32": "int64"}),
    Shape("floats", {"f": "float32", "d": "float64"}, added={"later": "float64"}, widened={"f": "float64"}),
    Shape("decimals", _DECIMALS, added={"later": "decimal_38_18"}, widened={"decimal_9_2": "decimal_30_2"}),
    Shape("texts", {"text": "string", "raw": "binary"}, added={"later": "string", "later_raw": "binary"}),
    Shape("times", {"day": "date", "at": "timestamp"}, added={"later": "timestamp", "later_day": "date"}),
    Shape("ntz", {"at": "timestamp_ntz", **_BESIDE}, added={"later": "timestamp_ntz"}),
    Shape("nested", _NESTED, added={"later": {"x": "int64", "y": "string"}}),
    Shape("dots", {"a.b": "int64", "c d": "string", "Ünï": "float64"}, added={"x.y": "int32"}),
)
_DOT_AND_STRUCT = Shape("dot_and_struct", {"a.b": "int64", "a": {"b": "int64"}}, added={"e": {"f": "int32"}, "e.f": "int32"})


def _by(column: str, kind: str, transform: str = "{}") -> Shape:
    name = "by_" + transform.format(kind).translate(str.maketrans("(, ", "___", ")"))
    return Shape(name, {column: kind, **_BESIDE}, partition_by=(transform.format(column),), added={"later": "int64"})


_DELTA_KEYS = ("int8", "int32", "int64", "float64", "bool", "decimal_9_2", "decimal_18_4", "decimal_38_18", "decimal_38_38")
_ICEBERG_KEYS = ("bool", "int32", "int64", "decimal_9_2", "decimal_38_38")
_KEYS = ("string", "date", "timestamp", "timestamp_ntz")
SHAPES: dict[Format, tuple[Shape, ...]] = {
    "delta": (*_PLAIN, _DOT_AND_STRUCT, *(_by("key", kind) for kind in (*_DELTA_KEYS, *_KEYS))),
    "iceberg": (
        *_PLAIN,
        *(_by("key", kind) for kind in (*_ICEBERG_KEYS, *_KEYS)),
        _by("key", "truncatable", "truncate(7, {})"),
        _by("key", "string", "truncate(3, {})"),
        *(_by("key", "timestamp", f"{unit}({{}})") for unit in ("year", "month", "day", "hour")),
        _by("key", "date", "month({})"),
        _by("key", "timestamp_ntz", "day({})"),
    ),
}
