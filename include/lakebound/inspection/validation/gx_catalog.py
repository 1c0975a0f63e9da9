"""The expectations of Great Expectations 1.24 that may be used: those that its Spark engine answers for one range of rows.

Left out are those that need an order of rows, a distribution, or another data source.
"""

from __future__ import annotations

from dataclasses import dataclass

_BOUNDS = ("min_value", "max_value", "strict_min", "strict_max")


@dataclass(frozen=True)
class GxKind:
    """One expectation.

    Attributes:
        columns: Arguments that name columns of the table, or a list of them.
        required: Arguments that must be given, those of ``columns`` aside.
        optional: Arguments that may be given.
        is_of_rows: Whether it says of each row alone if it is as expected, so that failing rows can be named and copied.
        takes_where: Whether it may be asked of some rows only.
    """

    columns: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    is_of_rows: bool = False
    takes_where: bool = True

    @property
    def arguments(self) -> tuple[str, ...]:
        """All that may be given."""
        return (*self.columns, *self.required, *self.optional)


def _rows(*required: str, optional: tuple[str, ...] = ()) -> GxKind:
    return GxKind(("column",), required, (*optional, "mostly"), is_of_rows=True)


def _pair(*optional: str) -> GxKind:
    return GxKind(("column_A", "column_B"), (), (*optional, "ignore_row_if", "mostly"), is_of_rows=True)


def _several(*required: str) -> GxKind:
    return GxKind(("column_list",), required, ("ignore_row_if", "mostly"), is_of_rows=True)


def _aggregate(*required: str, optional: tuple[str, ...] = ()) -> GxKind:
    return GxKind(("column",), required, optional)


def _table(*required: str, optional: tuple[str, ...] = (), takes_where: bool = False) -> GxKind:
    return GxKind((), required, optional, takes_where=takes_where)


CATALOG: dict[str, GxKind] = {
    "expect_column_values_to_be_between": _rows(optional=_BOUNDS),
    "expect_column_values_to_be_in_set": _rows("value_set"),
    "expect_column_values_to_not_be_in_set": _rows("value_set"),
    "expect_column_values_to_be_null": _rows(),
    "expect_column_values_to_not_be_null": _rows(),
    "expect_column_values_to_be_unique": _rows(),
    "expect_column_values_to_match_regex": _rows("regex"),
    "expect_column_values_to_not_match_regex": _rows("regex"),
    "expect_column_values_to_match_regex_list": _rows("regex_list", optional=("match_on",)),
    "expect_column_values_to_not_match_regex_list": _rows("regex_list"),
    "expect_column_values_to_match_strftime_format": _rows("strftime_format"),
    "expect_column_values_to_be_json_parseable": _rows(),
    "expect_column_value_lengths_to_be_between": _rows(optional=_BOUNDS),
    "expect_column_value_lengths_to_equal": _rows("value"),
    "expect_column_pair_values_a_to_be_greater_than_b": _pair("or_equal"),
    "expect_column_pair_values_to_be_equal": _pair(),
    "expect_compound_columns_to_be_unique": _several(),
    "expect_select_column_values_to_be_unique_within_record": _several(),
    "expect_multicolumn_sum_to_equal": _several("sum_total"),
    "expect_column_max_to_be_between": _aggregate(optional=_BOUNDS),
    "expect_column_min_to_be_between": _aggregate(optional=_BOUNDS),
    "expect_column_mean_to_be_between": _aggregate(optional=_BOUNDS),
    "expect_column_median_to_be_between": _aggregate(optional=_BOUNDS),
    "expect_column_stdev_to_be_between": _aggregate(optional=_BOUNDS),
    "expect_column_sum_to_be_between": _aggregate(optional=_BOUNDS),
    "expect_column_quantile_values_to_be_between": _aggregate("quantile_ranges", optional=("allow_relative_error",)),
    "expect_column_unique_value_count_to_be_between": _aggregate(optional=_BOUNDS),
    "expect_column_proportion_of_unique_values_to_be_between": _aggregate(optional=_BOUNDS),
    "expect_column_proportion_of_non_null_values_to_be_between": _aggregate(optional=_BOUNDS),
    "expect_column_distinct_values_to_be_in_set": _aggregate("value_set"),
    "expect_column_distinct_values_to_contain_set": _aggregate("value_set"),
    "expect_column_distinct_values_to_equal_set": _aggregate("value_set"),
    "expect_column_most_common_value_to_be_in_set": _aggregate("value_set", optional=("ties_okay",)),
    "expect_table_row_count_to_be_between": _table(optional=_BOUNDS, takes_where=True),
    "expect_table_row_count_to_equal": _table("value", takes_where=True),
    "expect_table_column_count_to_be_between": _table(optional=("min_value", "max_value")),
    "expect_table_column_count_to_equal": _table("value"),
    "expect_table_columns_to_match_set": _table("column_set", optional=("exact_match",)),
    "expect_table_columns_to_match_ordered_list": _table("column_list"),
    "expect_column_to_exist": _table("column", optional=("column_index",)),
    "expect_column_values_to_be_of_type": GxKind(("column",), ("type_",), takes_where=False),
    "expect_column_values_to_be_in_type_list": GxKind(("column",), ("type_list",), takes_where=False),
}
