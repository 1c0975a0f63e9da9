"""Each expectation of each column type, met and not met, with nulls and NaN, and what plain Python says of it."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

DAY = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
NUMBERS = (1, 2, 3, 4, 5, 6)
UNITS: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "boolean": (pa.bool_(), lambda n: n % 2 == 0),
    "tinyint": (pa.int8(), int),
    "smallint": (pa.int16(), int),
    "int": (pa.int32(), int),
    "bigint": (pa.int64(), int),
    "float": (pa.float32(), float),
    "double": (pa.float64(), float),
    "decimal": (pa.decimal128(12, 2), Decimal),
    "string": (pa.string(), lambda n: f"v{n}"),
    "binary": (pa.binary(), lambda n: f"v{n}".encode()),
    "date": (pa.date32(), lambda n: (DAY + dt.timedelta(n)).date()),
    "timestamp": (pa.timestamp("us", tz="UTC"), lambda n: DAY + dt.timedelta(n)),
    "timestamp_ntz": (pa.timestamp("us"), lambda n: (DAY + dt.timedelta(n)).replace(tzinfo=None)),
    "array": (pa.list_(pa.int32()), lambda n: [n]),
    "struct": (pa.struct([pa.field("x", pa.int32())]), lambda n: {"x": n}),
    "map": (pa.map_(pa.string(), pa.int32()), lambda n: [("x", n)]),
}
"""A type's name to how Arrow has it, and its value for a number."""
GX_TYPES = {
    "boolean": "BooleanType",
    "tinyint": "ByteType",
    "smallint": "ShortType",
    "int": "IntegerType",
    "bigint": "LongType",
    "float": "FloatType",
    "double": "DoubleType",
    "decimal": "DecimalType",
    "string": "StringType",
    "binary": "BinaryType",
    "date": "DateType",
    "timestamp": "TimestampType",
    "timestamp_ntz": "TimestampNTZType",
    "array": "ArrayType",
    "struct": "StructType",
    "map": "MapType",
}
VARIANTS = ("whole", "some_null", "all_null", "nan")


class Cell(NamedTuple):
    """One expectation of one column.

    Attributes:
        kind: Its name in Great Expectations.
        type: Of its column.
        variant: Of the column's values.
        case: ``met`` or ``not_met``, as it is meant for the whole values.
        kwargs: Its arguments.
    """

    kind: str
    type: str
    variant: str
    case: str
    kwargs: dict[str, Any]

    @property
    def label(self) -> str:
        """By which its result is known again."""
        return "|".join((self.kind, self.type, self.variant, self.case))


class Verdict(NamedTuple):
    """What is right: whether it is met and, of kinds that judge rows, how many rows are not as expected."""

    passed: bool
    unexpected: int | None = None


def column_values(type_: str, variant: str, *, other: bool = False) -> list[Any]:
    """Return the values of a column; those of ``other`` are one smaller in each row."""
    of = UNITS[type_][1]
    values = [of(number - other) for number in NUMBERS]
    if variant == "all_null":
        return [None] * len(values)
    if variant == "some_null":
        return [None if place % 3 == 1 else value for place, value in enumerate(values)]
    if variant == "nan":
        return [*values[:-1], math.nan]
    return values


def variants_of(type_: str) -> tuple[str, ...]:
    """Return the variants that a type has."""
    return VARIANTS if type_ in ("float", "double") else VARIANTS[:-1]


def column_name(type_: str, variant: str, *, other: bool = False) -> str:
    """Return the name of a column."""
    return f"{type_}_{variant}{'_other' if other else ''}"


def rows() -> pa.Table:
    """Return the rows with a column for each type and variant, and another one beside each."""
    arrays, fields = [], []
    for type_, (arrow, _) in UNITS.items():
        for variant in variants_of(type_):
            for other in (False, True):
                arrays.append(pa.array(column_values(type_, variant, other=other), arrow))
                fields.append(pa.field(column_name(type_, variant, other=other), arrow))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def written(value: Any) -> Any:
    """Return a value as somebody writes it in YAML."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dt.datetime | dt.date):
        return value.isoformat().replace("+00:00", "Z")
    return value


def cells(kinds: Sequence[str]) -> Iterator[Cell]:
    """Yield every cell of these kinds; whether a kind can be judged of a type is not this function's to say."""
    for kind in kinds:
        for type_ in UNITS:
            for variant in variants_of(type_):
                for case, kwargs in _cases(kind, type_):
                    yield Cell(kind, type_, variant, case, {**_columns(kind, type_, variant, case), **kwargs})


def _columns(kind: str, type_: str, variant: str, case: str) -> dict[str, Any]:
    one, other = column_name(type_, variant), column_name(type_, variant, other=True)
    if kind == "expect_column_pair_values_to_be_equal":
        return {"column_A": one, "column_B": one if case == "met" else other}
    if kind == "expect_column_pair_values_a_to_be_greater_than_b":
        return {"column_A": one, "column_B": other} if case == "met" else {"column_A": other, "column_B": one}
    if kind == "expect_select_column_values_to_be_unique_within_record" and case == "not_met":
        return {"column_list": [one, one]}
    if kind in SEVERAL:
        return {"column_list": [one, other]}
    return {"column": one}


SEVERAL = (
    "expect_compound_columns_to_be_unique",
    "expect_select_column_values_to_be_unique_within_record",
    "expect_multicolumn_sum_to_equal",
)


def _cases(kind: str, type_: str) -> Iterator[tuple[str, dict[str, Any]]]:
    of = UNITS[type_][1]
    every = [written(of(number)) for number in NUMBERS]
    low, high, some = every[0], every[-1], [one for place, one in enumerate(every) if one not in every[:place]]
    bounds = {
        "expect_column_values_to_be_between": ((low, high), (written(of(2)), written(of(4)))),
        "expect_column_max_to_be_between": ((written(of(3)), high), (low, written(of(2)))),
        "expect_column_min_to_be_between": ((low, written(of(3))), (written(of(4)), high)),
        "expect_column_mean_to_be_between": ((1, 6), (7, 8)),
        "expect_column_median_to_be_between": ((1, 6), (7, 8)),
        "expect_column_stdev_to_be_between": ((0.5, 3), (7, 8)),
        "expect_column_sum_to_be_between": ((1, 30), (100, 200)),
        "expect_column_unique_value_count_to_be_between": ((1, 6), (7, 8)),
        "expect_column_proportion_of_unique_values_to_be_between": ((0.2, 1), (0, 0.1)),
        "expect_column_proportion_of_non_null_values_to_be_between": ((0.9, 1), (0, 0.1)),
        "expect_column_value_lengths_to_be_between": ((2, 2), (3, 4)),
    }
    if kind in bounds:
        for case, (least, most) in zip(("met", "not_met"), bounds[kind], strict=True):
            yield case, {"min_value": least, "max_value": most}
        return
    both: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "expect_column_values_to_be_in_set": ({"value_set": some}, {"value_set": some[:1]}),
        "expect_column_values_to_not_be_in_set": ({"value_set": [written(of(9))]}, {"value_set": some[:1]}),
        "expect_column_distinct_values_to_be_in_set": ({"value_set": some}, {"value_set": some[:1]}),
        "expect_column_distinct_values_to_contain_set": ({"value_set": some[:1]}, {"value_set": [written(of(9))]}),
        "expect_column_distinct_values_to_equal_set": ({"value_set": some}, {"value_set": some[:1]}),
        "expect_column_most_common_value_to_be_in_set": (
            {"value_set": some, "ties_okay": True},
            {"value_set": [written(of(8)), written(of(9))], "ties_okay": True},
        ),
        "expect_column_quantile_values_to_be_between": (
            {"quantile_ranges": {"quantiles": [0.1, 0.5], "value_ranges": [[1, 2], [None, 5]]}},
            {"quantile_ranges": {"quantiles": [0.1, 0.5], "value_ranges": [[1, 2], [50, 60]]}},
        ),
        "expect_column_values_to_match_regex": ({"regex": "[0-9]"}, {"regex": "[1-3]$"}),
        "expect_column_values_to_not_match_regex": ({"regex": "x"}, {"regex": "[1-3]$"}),
        "expect_column_values_to_match_regex_list": ({"regex_list": ["x", "[0-9]"]}, {"regex_list": ["x", "[1-3]$"]}),
        "expect_column_values_to_not_match_regex_list": ({"regex_list": ["x", "y"]}, {"regex_list": ["x", "[1-3]$"]}),
        "expect_column_values_to_match_strftime_format": ({"strftime_format": "v%d"}, {"strftime_format": "v1%d"}),
        "expect_column_value_lengths_to_equal": ({"value": 2}, {"value": 3}),
        "expect_multicolumn_sum_to_equal": ({"sum_total": 3}, {"sum_total": -1}),
        "expect_column_values_to_be_of_type": ({"type_": GX_TYPES[type_]}, {"type_": "CharType"}),
        "expect_column_values_to_be_in_type_list": ({"type_list": [GX_TYPES[type_]]}, {"type_list": ["CharType"]}),
    }
    given = both.get(kind, ({}, {}))
    yield from zip(("met", "not_met"), given, strict=True)


def right(cell: Cell) -> Verdict:
    """Return what plain Python says of a cell: nulls are not judged, and NaN is above all numbers, as in Spark."""
    named = cell.kwargs.get("column_list") or [
        cell.kwargs[key] for key in ("column", "column_A", "column_B") if key in cell.kwargs
    ]
    columns = [column_values(cell.type, cell.variant, other=name.endswith("_other")) for name in named]
    if cell.kind in _OF_ROWS:
        kept = [row for row in zip(*columns, strict=True) if any(value is not None for value in row)]
        bad = sum(not _OF_ROWS[cell.kind](*row, **_bare(cell)) for row in kept)
        return Verdict(bad == 0, bad)
    return _of_column(cell, columns[0])


def _bare(cell: Cell) -> dict[str, Any]:
    return {key: value for key, value in cell.kwargs.items() if not key.startswith("column")}


def _rank(value: Any) -> Any:
    return math.inf if isinstance(value, float) and math.isnan(value) else value


def _within(value: Any, min_value: Any, max_value: Any) -> bool:
    return bool(_like(min_value, value) <= _rank(value) <= _like(max_value, value))


def _like(given: Any, value: Any) -> Any:
    """Return an argument as the type of a value."""
    if isinstance(value, dt.datetime):
        return dt.datetime.fromisoformat(given)
    return dt.date.fromisoformat(given) if isinstance(value, dt.date) else given


def _among(value: Any, value_set: Sequence[Any]) -> bool:
    return any(_like(one, value) == value for one in value_set)


def _parses(value: str, strftime_format: str) -> bool:
    try:
        dt.datetime.strptime(value, strftime_format)
    except ValueError:
        return False
    return True


def _is_json(value: str) -> bool:
    try:
        json.loads(value)
    except ValueError:
        return False
    return True


_OF_ROWS: dict[str, Callable[..., bool]] = {
    "expect_column_values_to_be_between": _within,
    "expect_column_values_to_be_in_set": _among,
    "expect_column_values_to_not_be_in_set": lambda value, value_set: not _among(value, value_set),
    "expect_column_values_to_match_regex": lambda value, regex: bool(re.search(regex, value)),
    "expect_column_values_to_not_match_regex": lambda value, regex: not re.search(regex, value),
    "expect_column_values_to_match_regex_list": lambda value, regex_list: any(re.search(one, value) for one in regex_list),
    "expect_column_values_to_not_match_regex_list": lambda value, regex_list: (
        not any(re.search(one, value) for one in regex_list)
    ),
    "expect_column_values_to_match_strftime_format": _parses,
    "expect_column_values_to_be_json_parseable": _is_json,
    "expect_column_value_lengths_to_be_between": lambda value, min_value, max_value: min_value <= len(value) <= max_value,
    "expect_column_value_lengths_to_equal": lambda text, value: len(text) == value,
    "expect_column_pair_values_a_to_be_greater_than_b": lambda a, b: _rank(a) > _rank(b),
    "expect_column_pair_values_to_be_equal": lambda a, b: _rank(a) == _rank(b),
    "expect_select_column_values_to_be_unique_within_record": lambda *values: (
        len({_rank(one) for one in values}) == len(values)
    ),
    "expect_multicolumn_sum_to_equal": lambda *values, sum_total: sum(values) == sum_total,
}


def _of_column(cell: Cell, values: list[Any]) -> Verdict:
    given, there = _bare(cell), [value for value in values if value is not None]
    if cell.kind == "expect_column_values_to_be_null":
        return Verdict(not there, len(there))
    if cell.kind == "expect_column_values_to_not_be_null":
        return Verdict(len(there) == len(values), len(values) - len(there))
    if cell.kind in ("expect_column_values_to_be_unique", "expect_compound_columns_to_be_unique"):
        repeated = sum(times for times in Counter(map(_rank, there)).values() if times > 1)
        return Verdict(repeated == 0, repeated)
    if "type" in given or "type_" in given or "type_list" in given:
        return Verdict(cell.case == "met")
    if "set" in cell.kind:
        return Verdict(_of_set(cell.kind, there, given["value_set"]))
    if cell.kind == "expect_column_quantile_values_to_be_between":
        return Verdict(_of_quantiles(there, **given["quantile_ranges"]))
    observed = _observed(cell.kind, values, there)
    return Verdict(observed is not None and _is_comparable(observed) and _within(observed, **given))


def _is_comparable(observed: Any) -> bool:
    return not (isinstance(observed, float) and math.isnan(observed))


def _of_set(kind: str, there: list[Any], value_set: Sequence[Any]) -> bool:
    known = {_like(one, there[0]) for one in value_set} if there else set(value_set)
    if "contain" in kind:
        return known <= set(there)
    if "equal" in kind:
        return known == set(there)
    if "most_common" in kind:
        counts = Counter(map(_rank, there))
        return bool({value for value, times in counts.items() if times == max(counts.values())} & known)
    return set(there) <= known


def _of_quantiles(there: list[Any], quantiles: list[float], value_ranges: list[list[Any]]) -> bool:
    if not there:
        return False
    ordered = sorted(there, key=_rank)
    found = [ordered[max(0, math.ceil(share * len(ordered)) - 1)] for share in quantiles]
    return all(
        (least is None or least <= value) and (most is None or value <= most)
        for value, (least, most) in zip(found, value_ranges, strict=True)
    )


def _observed(kind: str, values: list[Any], there: list[Any]) -> Any:
    if kind == "expect_column_unique_value_count_to_be_between":
        return len(set(map(_rank, there)))
    if kind == "expect_column_proportion_of_non_null_values_to_be_between":
        return len(there) / len(values)
    if kind == "expect_column_proportion_of_unique_values_to_be_between":
        # Without values it is 0: Great Expectations says so of its metric.
        return len(set(map(_rank, there))) / len(there) if there else 0.0
    if not there:
        return None
    if kind in ("expect_column_max_to_be_between", "expect_column_min_to_be_between"):
        return (max if "_max_" in kind else min)(there, key=_rank)
    if any(not _is_comparable(value) for value in there) and "median" not in kind:
        return math.nan
    numbers = sorted(float(value) for value in map(_rank, there))
    calculations: dict[str, Callable[[list[float]], float]] = {
        "expect_column_mean_to_be_between": statistics.fmean,
        "expect_column_median_to_be_between": statistics.median,
        "expect_column_stdev_to_be_between": statistics.stdev,
        "expect_column_sum_to_be_between": sum,
    }
    return calculations[kind](numbers)
