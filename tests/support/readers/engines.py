"""The readers that need no JVM, each asked in its own words: deltalake's two, PyIceberg, and Polars for both formats."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Iterator
from decimal import Decimal
from functools import cached_property
from typing import Any, Protocol

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyiceberg.expressions as pi
from deltalake import DeltaTable, QueryBuilder

from tests.support.readers.predicates import COMPARISONS, Predicate, Semantics
from tests.support.readers.tables import Generated, Stage
from tests.support.readers.values import Kind
from tests.support.tables.foreign_hands import foreign_iceberg

_EPOCH = datetime.datetime(1970, 1, 1)


class Reader(Protocol):
    """One version of a table, open in an engine."""

    name: str
    semantics: Semantics
    takes_nan: bool

    def find(self, predicate: Predicate) -> list[int]:
        """Return the ids of the rows that it finds, sorted."""


def readers_of(table: Generated, stage: Stage) -> Iterator[Reader]:
    """Yield the readers of a version."""
    if table.spec.format == "delta":
        folder = str(table.at.delta_path(table.spec))
        yield ArrowDataset(folder, int(stage.version))
        yield DataFusion(folder, int(stage.version))
        yield Polars(pl.scan_delta(folder, version=int(stage.version)))
    else:
        foreign = foreign_iceberg(table.spec, table.at)
        yield PyIceberg(foreign, int(stage.version))
        yield Polars(pl.scan_iceberg(foreign, snapshot_id=int(stage.version)))


def _ids(table: Any) -> list[int]:
    found: list[int] = sorted(pa.table(table)["id"].to_pylist())
    return found


class ArrowDataset:
    """deltalake's own reader: ``DeltaTable.to_pyarrow_dataset``."""

    name, semantics = "deltalake dataset", Semantics(nan="none")
    takes_nan = True

    def __init__(self, folder: str, version: int) -> None:
        self._table = DeltaTable(folder, version=version)

    @cached_property
    def _dataset(self) -> ds.Dataset:
        return self._table.to_pyarrow_dataset()

    def find(self, predicate: Predicate) -> list[int]:
        return _ids(self._dataset.to_table(columns=["id"], filter=self._expression(predicate)))

    def _expression(self, predicate: Predicate) -> ds.Expression:
        field, kind = ds.field(*predicate.leaf.path), predicate.leaf.kind
        if predicate.op == "is null":
            return field.is_null()
        if predicate.op == "is not null":
            return field.is_valid()
        assert kind is not None
        if predicate.op == "in":
            return field.isin(pa.array(predicate.literals, kind.type))
        if predicate.op == "starts":
            return pc.starts_with(field, pattern=predicate.literals[0])
        found: ds.Expression = COMPARISONS[predicate.op](field, pa.scalar(predicate.literals[0], kind.type))  # type: ignore[assignment]
        return found


class DataFusion:
    """deltalake's other reader: SQL, by its ``QueryBuilder``."""

    name, semantics = "deltalake SQL", Semantics()
    takes_nan = True

    def __init__(self, folder: str, version: int) -> None:
        self._sql = QueryBuilder().register("t", DeltaTable(folder, version=version))

    def find(self, predicate: Predicate) -> list[int]:
        return _ids(self._sql.execute(f"SELECT id FROM t WHERE {self._text(predicate)}").read_all())

    def _text(self, predicate: Predicate) -> str:
        name = '"' + predicate.leaf.path[0] + '"' + "".join(f"['{part}']" for part in predicate.leaf.path[1:])
        if predicate.leaf.kind is None or not predicate.literals:
            return f"{name} {predicate.op.upper()}"
        told = [_sql_literal(one, predicate.leaf.kind) for one in predicate.literals]
        if predicate.op == "in":
            return f"{name} IN ({', '.join(told)})"
        if predicate.op == "starts":
            return f"starts_with({name}, {told[0]})"
        return f"{name} {predicate.op} {told[0]}"


def _sql_literal(value: Any, kind: Kind) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, datetime.datetime):
        micros = (value.replace(tzinfo=None) - _EPOCH) // datetime.timedelta(microseconds=1)
        zone = 'Some("UTC")' if value.tzinfo else "None"
        return f"arrow_cast(arrow_cast('{micros}', 'Int64'), 'Timestamp(µs, {zone})')".replace("µs", "Microsecond")
    if isinstance(value, datetime.date):
        return f"CAST('{value.isoformat()}' AS DATE)"
    if isinstance(value, Decimal):
        assert pa.types.is_decimal(kind.type)
        return f"arrow_cast('{value:f}', 'Decimal128({kind.type.precision}, {kind.type.scale})')"
    name = {8: "Int8", 16: "Int16", 32: "Int32", 64: "Int64"}[kind.type.bit_width]
    return f"arrow_cast('{value!r}', '{name.replace('Int', 'Float') if kind.is_float else name}')"


class Polars:
    """Polars' own reader of either format."""

    name, semantics = "polars", Semantics()
    takes_nan = True

    def __init__(self, frame: pl.LazyFrame) -> None:
        self._frame = frame

    def find(self, predicate: Predicate) -> list[int]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found: list[int] = self._frame.filter(self._expression(predicate)).select("id").collect()["id"].to_list()
        return sorted(found)

    def _expression(self, predicate: Predicate) -> pl.Expr:
        column = pl.col(predicate.leaf.path[0])
        for name in predicate.leaf.path[1:]:
            column = column.struct.field(name)
        if predicate.op == "is null":
            return column.is_null()
        if predicate.op == "is not null":
            return column.is_not_null()
        assert predicate.leaf.kind is not None
        kind = pl.from_arrow(pa.array([], predicate.leaf.kind.type)).dtype  # type: ignore[union-attr]
        if predicate.op == "in":
            return column.is_in(pl.Series(predicate.literals, dtype=kind).implode())
        if predicate.op == "starts":
            return column.str.starts_with(predicate.literals[0])
        found: pl.Expr = COMPARISONS[predicate.op](column, pl.lit(predicate.literals[0], dtype=kind))  # type: ignore[assignment]
        return found


class PyIceberg:
    """PyIceberg's scan."""

    name, semantics = "pyiceberg", Semantics(nan="none")
    takes_nan = False

    def __init__(self, table: Any, snapshot: int) -> None:
        self._table, self._snapshot = table, snapshot

    def find(self, predicate: Predicate) -> list[int]:
        found = self._table.scan(self._expression(predicate), selected_fields=("id",), snapshot_id=self._snapshot)
        return _ids(found.to_arrow())

    def _expression(self, predicate: Predicate) -> pi.BooleanExpression:
        name = ".".join(predicate.leaf.path)
        if predicate.op == "is null":
            return pi.IsNull(name)
        if predicate.op == "is not null":
            return pi.NotNull(name)
        if predicate.op == "in":
            return pi.In(name, [_literal(one) for one in predicate.literals])
        kinds: dict[str, Any] = {
            "=": pi.EqualTo,
            "<>": pi.NotEqualTo,
            "<": pi.LessThan,
            "<=": pi.LessThanOrEqual,
            ">": pi.GreaterThan,
            ">=": pi.GreaterThanOrEqual,
            "starts": pi.StartsWith,
        }
        found: pi.BooleanExpression = kinds[predicate.op](name, _literal(predicate.literals[0]))
        return found


def _literal(value: Any) -> Any:
    """Return a value that PyIceberg takes: a moment as a text."""
    return value.isoformat() if isinstance(value, datetime.datetime) else value
