"""Which expectations can be judged of which column types, and with which arguments: data, and the mistakes by it. Pure.

Spark compares values of different types as it likes: text with a number as numbers, which no author means, or not at all. What
Great Expectations cannot judge, or judges by such a conversion, is refused before a record is read. The tables are those of
Great Expectations 1.24 on Spark 4.1; ``tests/spark/test_expectation_matrix.py`` asks each of their cells.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from lakebound.inspection.validation.expectations import ExpectationFile, GxExpectation
from lakebound.inspection.validation.gx_catalog import CATALOG
from lakebound.spec.yaml_source import Keys, Mistake, YamlSource

TableColumns = Mapping[str, Mapping[str, str]]
"""Table id to the types of its columns by their names, as Spark's DDL writes them."""

Family = Literal["boolean", "number", "text", "binary", "date", "timestamp", "timestamp_ntz", "nested", "map"]
"""Types of which the same expectations can be judged."""

FAMILIES: dict[str, Family] = {
    "boolean": "boolean",
    "string": "text",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "array": "nested",
    "struct": "nested",
    "map": "map",
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "byte", "short", "integer", "long"), "number"),
    **dict.fromkeys(("float", "real", "double", "decimal", "dec", "numeric"), "number"),
}
"""A type's first word to its family."""

_ALL: frozenset[Family] = frozenset(FAMILIES.values())
_FLAT = _ALL - {"nested", "map"}
_ORDERED: frozenset[Family] = frozenset({"number", "date", "timestamp", "timestamp_ntz"})
_NUMBER: frozenset[Family] = frozenset({"number"})
_TEXT: frozenset[Family] = frozenset({"text"})
_LISTED = _FLAT - {"binary", "timestamp", "timestamp_ntz"}
"""Great Expectations compares a timestamp's values with the text of a set: none is ever found in it."""
_EXTREME: frozenset[Family] = frozenset({"number", "date"})

JUDGED: dict[str, frozenset[Family]] = {
    "expect_column_values_to_be_between": _ORDERED,
    "expect_column_values_to_be_in_set": _LISTED,
    "expect_column_values_to_not_be_in_set": _LISTED,
    "expect_column_values_to_be_null": _ALL,
    "expect_column_values_to_not_be_null": _ALL,
    "expect_column_values_to_be_unique": _FLAT,
    "expect_column_values_to_match_regex": _TEXT,
    "expect_column_values_to_not_match_regex": _TEXT,
    "expect_column_values_to_match_regex_list": _TEXT,
    "expect_column_values_to_not_match_regex_list": _TEXT,
    "expect_column_values_to_match_strftime_format": _TEXT,
    "expect_column_values_to_be_json_parseable": _TEXT,
    "expect_column_value_lengths_to_be_between": _TEXT,
    "expect_column_value_lengths_to_equal": _TEXT,
    "expect_column_pair_values_a_to_be_greater_than_b": _ORDERED | _TEXT,
    "expect_column_pair_values_to_be_equal": _FLAT,
    "expect_compound_columns_to_be_unique": _FLAT,
    "expect_select_column_values_to_be_unique_within_record": _FLAT,
    "expect_multicolumn_sum_to_equal": _NUMBER,
    "expect_column_max_to_be_between": _EXTREME,
    "expect_column_min_to_be_between": _EXTREME,
    "expect_column_mean_to_be_between": _NUMBER,
    "expect_column_median_to_be_between": _NUMBER,
    "expect_column_stdev_to_be_between": _NUMBER,
    "expect_column_sum_to_be_between": _NUMBER,
    "expect_column_quantile_values_to_be_between": _NUMBER,
    "expect_column_unique_value_count_to_be_between": _FLAT,
    "expect_column_proportion_of_unique_values_to_be_between": _FLAT,
    "expect_column_proportion_of_non_null_values_to_be_between": _ALL,
    "expect_column_distinct_values_to_be_in_set": _LISTED,
    "expect_column_distinct_values_to_contain_set": _LISTED,
    "expect_column_distinct_values_to_equal_set": _LISTED,
    "expect_column_most_common_value_to_be_in_set": _LISTED - {"date"},
    "expect_column_values_to_be_of_type": _ALL,
    "expect_column_values_to_be_in_type_list": _ALL,
}
"""Kind to the families of columns of which it is judged; kinds that name no column whose values count are not in it."""

COMPARED: dict[str, tuple[str, ...]] = {
    "expect_column_values_to_be_between": ("min_value", "max_value"),
    "expect_column_max_to_be_between": ("min_value", "max_value"),
    "expect_column_min_to_be_between": ("min_value", "max_value"),
    **{kind: ("value_set",) for kind, known in CATALOG.items() if "value_set" in known.required},
}
"""Kind to the arguments that are compared with the column's values, and so must be of its type."""

ARGUMENTS: dict[Family, str] = {
    "boolean": "true or false",
    "number": "numbers",
    "text": "text (in quotes where YAML would read something else)",
    "date": "dates, such as 2026-01-31",
    "timestamp": "times with their zone, such as 2026-01-31T00:00:00Z",
    "timestamp_ntz": "times without a zone, such as 2026-01-31T00:00:00",
}
"""What such an argument has to be."""


def family_of(type_name: str) -> Family | None:
    """Return the family of a type; None where it is not known."""
    return FAMILIES.get(type_name.partition("<")[0].partition("(")[0].strip().lower())


def fits(value: Any, family: Family) -> bool:
    """Whether an argument can be compared with values of the family."""
    if family == "boolean":
        return isinstance(value, bool)
    if family == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if family == "text":
        return isinstance(value, str)
    moment = _moment(value)
    if family == "date":
        return moment is not None and (not isinstance(moment, dt.datetime))
    if not isinstance(moment, dt.datetime):
        return False
    return (moment.tzinfo is not None) == (family == "timestamp")


def type_mistakes(file: ExpectationFile, tables: TableColumns, source: YamlSource) -> list[Mistake]:
    """Return the expectations that cannot be judged of the types that their columns have.

    Args:
        file: The expectations, parsed.
        tables: Tables whose columns are known; a column that they do not have is another mistake.
        source: YAML of the file; tells the line of each mistake.
    """
    found: dict[Keys, Mistake] = {}
    for position, one in enumerate(file.expectations):
        if not isinstance(one, GxExpectation):
            continue
        for table, columns in tables.items():
            if one in file.of(table):
                for keys, what in _of(one, columns):
                    place: Keys = ("expectations", position, "kwargs", *keys)
                    found.setdefault(place, Mistake(source.line_of(place), what, place))
    return list(found.values())


def _of(one: GxExpectation, columns: Mapping[str, str]) -> Iterator[tuple[Keys, str]]:
    judged = JUDGED.get(one.expect)
    if judged is None:
        return
    for keys, name in named_columns(one):
        family = family_of(columns.get(name, ""))
        if family is None:
            continue
        if family not in judged:
            yield keys, f"{one.expect} cannot be judged of {name!r}, which is {columns[name]}: {_instead(family)}"
            continue
        for argument in COMPARED.get(one.expect, ()):
            for place, value in _values(argument, one.kwargs.get(argument)):
                if not fits(value, family):
                    yield (
                        place,
                        f"{value!r} cannot be compared with {name!r}, which is {columns[name]}: write {ARGUMENTS[family]}",
                    )


def named_columns(one: GxExpectation) -> Iterator[tuple[Keys, str]]:
    """Yield the columns that an expectation names, each with the keys below ``kwargs`` that lead to it."""
    for key in CATALOG[one.expect].columns:
        value = one.kwargs[key]
        if isinstance(value, list):
            yield from (((key, number), str(name)) for number, name in enumerate(value))
        else:
            yield (key,), str(value)


def _values(argument: str, value: Any) -> Iterator[tuple[Keys, Any]]:
    if isinstance(value, list):
        yield from (((argument, number), one) for number, one in enumerate(value))
    elif value is not None:
        yield (argument,), value


def _instead(family: Family) -> str:
    if family in ("nested", "map"):
        return "use rows_to_satisfy with a rule on what it holds"
    return "use rows_to_satisfy with a rule in SQL, in which you may cast it"


def _moment(value: Any) -> dt.date | None:
    """Return a date, or a time, as YAML or ISO 8601 has it."""
    if isinstance(value, dt.date):
        return value
    if not isinstance(value, str):
        return None
    try:
        return dt.date.fromisoformat(value)
    except ValueError:
        pass
    try:
        return dt.datetime.fromisoformat(value)
    except ValueError:
        return None
