"""Which values can land: text that is UTF-8, and dates and times of the years 1 to 9999.

Other values could be written, and would then keep readers from the whole table. Readers in Python have no date for the year
55840, and those in Rust refuse a file with text that is not UTF-8. A table that is partitioned by ``truncate`` of a number has
one more bound, and so have messages, whose topic says how large they may be, and the columns of a store. It is said twice here,
for columns of Spark and of Arrow; ``tests/spark/test_landable.py`` compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Protocol, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakebound.formats.times import FIRST_MS, LAST_MS
from lakebound.landing.to_topics.messages import JSON_COLUMN
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.tables.column_facts import stored_values
from lakebound.tables.layout import FileLayout
from lakebound_spark.batch.row_writer import KEY_FIELDS
from lakebound_spark.column_names import column_named

_FIRST_DAY, _LAST_DAY = FIRST_MS // 86_400_000, LAST_MS // 86_400_000
_LEAST: dict[type[T.DataType] | type[None], int] = {T.IntegerType: -(2**31), T.LongType: -(2**63)}

Test = Callable[[Column, T.DataType], Column | None]
"""Returns the condition that a value is not as it should be; None for a type that is always as it should be.

It is asked about values that have none inside, and about maps as a whole."""


def some_value(value: Column, kind: T.DataType, test: Test) -> Column | None:
    """Return the condition that a value, or any inside of it, fails the test; None where none can.

    Args:
        value: Of any type.
        kind: Its type.
        test: For values that have none inside, and for maps.
    """
    if isinstance(kind, T.StructType):
        inside = [some_value(value.getField(field.name), field.dataType, test) for field in kind.fields]
        return any_of([condition for condition in inside if condition is not None])
    if isinstance(kind, T.ArrayType):
        return _some_element(value, kind.elementType, test)
    if isinstance(kind, T.MapType):
        of_keys = _some_element(F.map_keys(value), kind.keyType, test)
        of_values = _some_element(F.map_values(value), kind.valueType, test)
        return any_of([condition for condition in (of_keys, of_values, test(value, kind)) if condition is not None])
    return test(value, kind)


def some_field(record: Column, schema: T.StructType, test: Test) -> Column | None:
    """Return the condition that a value of a record's fields fails the test; None where none can.

    Args:
        record: A struct; its values may be in other types than the schema's.
        schema: Its fields.
        test: For values that have none inside, and for maps.
    """
    found = (some_value(record.getField(field.name), field.dataType, test) for field in schema.fields)
    return any_of([condition for condition in found if condition is not None])


def any_of(conditions: Sequence[Column]) -> Column | None:
    """Return the condition that one of them holds; None where there are none."""
    return reduce(or_, conditions) if conditions else None


def outside_years(value: Column, kind: T.DataType) -> Column | None:
    """A ``Test``: a date or time is outside of the years 1 to 9999."""
    # Not literals of Python's dates: on their way through Java they change by two days, by the Julian calendar.
    if isinstance(kind, T.DateType):
        first, last = F.date_from_unix_date(F.lit(_FIRST_DAY)), F.date_from_unix_date(F.lit(_LAST_DAY))
    elif isinstance(kind, T.TimestampType | T.TimestampNTZType):
        first = F.timestamp_micros(F.lit(FIRST_MS * 1000)).cast(kind)
        last = F.timestamp_micros(F.lit(LAST_MS * 1000 + 999)).cast(kind)
    else:
        return None
    return (value < first) | (value > last)


def not_text(value: Column, kind: T.DataType) -> Column | None:
    """A ``Test``: a text is not UTF-8."""
    return ~F.is_valid_utf8(value) if isinstance(kind, T.StringType) else None


class Bound(Protocol):
    """What a target that is no table asks of the rows."""

    @property
    def told(self) -> str:
        """What is wrong with a row that it does not take."""

    def is_exceeded(self, output: DataFrame) -> Column:
        """Return the condition that it does not take a row."""

    def holds(self, rows: pa.Table) -> bool:
        """Whether it takes all rows."""


@dataclass(frozen=True)
class Truncation:
    """A partition field ``truncate`` of numbers. Below ``least`` its value would be smaller than any number of the type."""

    column: str
    width: int
    least: int


@dataclass(frozen=True)
class LandableCheck:
    """Finds the rows of a pipeline's output that cannot land.

    Attributes:
        has_transform: Whether a transform made them: its text need not be UTF-8, and its dates may be of any year.
        truncations: Of the tables' partitioning.
        bounds: Of target topics and stores.
        passed_on: Columns that the transform passes on as the decoder made them.
    """

    has_transform: bool
    truncations: tuple[Truncation, ...] = ()
    bounds: tuple[Bound, ...] = ()
    passed_on: frozenset[str] = frozenset()

    @property
    def is_needed(self) -> bool:
        """Whether there can be such rows."""
        return self.has_transform or bool(self.truncations) or bool(self.bounds)

    def problem(self, output: DataFrame) -> Column:
        """Return why a row cannot land, as ``lakebound_spark.batch.decode.PROBLEM`` has it; null where it can."""
        problem = F.lit(None).cast("string")
        for one in self.truncations:
            reason = f"does_not_fit\t{one.column}: too small for the partition field truncate({one.width}, {one.column})"
            problem = F.when(column_named(one.column) < F.lit(one.least), F.lit(reason)).otherwise(problem)
        for bound in self.bounds:
            problem = F.when(bound.is_exceeded(output), F.lit(f"does_not_fit\t{bound.told}")).otherwise(problem)
        for field in filter(lambda one: self._is_made(one.name), output.schema.fields):
            for test, words in ((outside_years, "outside of the years 1 to 9999"), (not_text, "text that is not UTF-8")):
                condition = some_value(column_named(field.name), field.dataType, test)
                if condition is not None:
                    reason = f"transform\t{field.name}: {words}"
                    problem = F.when(F.coalesce(condition, F.lit(False)), F.lit(reason)).otherwise(problem)
        return problem

    def places(self, output: DataFrame) -> pa.Table:
        """Return topic, partition, offset and problem of each record with a row that cannot land."""
        keys = [F.col(f"{KAFKA_COLUMN}.{name}").alias(name) for name in KEY_FIELDS]
        found = output.select(*keys, self.problem(output).alias("problem")).where(F.col("problem").isNotNull())
        return found.groupBy(*KEY_FIELDS).agg(F.min("problem").alias("problem")).toArrow()

    def holds(self, rows: pa.Table) -> bool:
        """Whether all rows can land."""
        for truncation in self.truncations:
            lowest = pc.min(rows.column(truncation.column)).as_py()
            if lowest is not None and lowest < truncation.least:
                return False
        if not all(bound.holds(rows) for bound in self.bounds):
            return False
        return all(_is_landable(rows[name]) for name in rows.column_names if self._is_made(name))

    def _is_made(self, column: str) -> bool:
        """Whether the transform makes a column, whose values need not be such as can land."""
        return self.has_transform and column not in (KAFKA_COLUMN, JSON_COLUMN, *self.passed_on)


def make_check(
    output: T.StructType, layouts: Collection[FileLayout], *, has_transform: bool, bounds: Sequence[Bound] = ()
) -> LandableCheck:
    """Return the check of a pipeline's output.

    Args:
        output: Its columns.
        layouts: Of the tables that get them.
        has_transform: Whether a transform made them; what the decoder makes can land.
        bounds: Of target topics and stores.
    """
    fields = {field for layout in layouts for field in layout.fields if field.transform == "truncate"}
    truncations = []
    for field in sorted(fields):
        kind = output[field.column].dataType if field.column in output.names else None
        least = _LEAST.get(type(kind)) if field.width else None
        if least is not None and field.width:
            truncations.append(Truncation(field.column, field.width, -(-least // field.width) * field.width))
    return LandableCheck(has_transform, tuple(truncations), tuple(bounds))


def _some_element(values: Column, kind: T.DataType, test: Test) -> Column | None:
    if some_value(F.lit(None), kind, test) is None:
        return None
    return F.exists(values, lambda item: F.coalesce(cast(Column, some_value(item, kind, test)), F.lit(False)))


def _is_landable(values: pa.ChunkedArray) -> bool:
    kind = values.type
    types = pa.types
    if types.is_string(kind):
        return _is_utf8(values)
    if types.is_date32(kind):
        return _is_within(stored_values(values), _FIRST_DAY, _LAST_DAY)
    if types.is_timestamp(kind):
        return _is_within(stored_values(values), FIRST_MS * 1000, LAST_MS * 1000 + 999)
    if types.is_struct(kind):
        return all(_is_landable(inside) for inside in values.flatten())
    if types.is_map(kind):
        keys = pa.chunked_array([_in_lists(chunk, chunk.keys) for chunk in values.chunks], kind.key_type)
        items = pa.chunked_array([_in_lists(chunk, chunk.items) for chunk in values.chunks], kind.item_type)
        return _is_landable(keys) and _is_landable(items)
    if types.is_list(kind) or types.is_large_list(kind):
        return _is_landable(pc.list_flatten(values))
    return True


def _in_lists(maps: pa.MapArray, inside: pa.Array) -> pa.Array:
    """Return those of the keys or values that belong to a map: of a part of a column Arrow gives those of all of it."""
    return pa.ListArray.from_arrays(maps.offsets, inside).flatten()


def _is_utf8(values: pa.ChunkedArray) -> bool:
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _is_within(values: pa.ChunkedArray, first: int, last: int) -> bool:
    bounds = pc.min_max(values)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    return low is None or (first <= low and high <= last)
