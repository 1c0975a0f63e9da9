"""Files of expectations: each mistake is told with file, line, field and what is known instead."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakebound.errors import LakeboundError
from lakebound.inspection.validation.expectation_files import (
    InvalidExpectationsError,
    check_expectations,
    columns_without_spark,
    conditions,
    load_expectations,
)
from lakebound.inspection.validation.expectation_types import COMPARED, FAMILIES, JUDGED
from lakebound.inspection.validation.expectations import OWN_KINDS, ExpectationFile, GxExpectation, UniqueOverWindow
from lakebound.inspection.validation.gx_catalog import CATALOG
from lakebound.settings import Settings, load_settings
from lakebound.spec.ddl import KNOWN_TYPES, read_columns
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.state import StateSpec

REPOSITORY = Path(__file__).parents[3]
COLUMNS = {
    "delta:sales.orders": {
        "order_id": "string",
        "status": "string",
        "total": "double",
        "placed_at": "timestamp",
        "day": "date",
        "items": "array<struct<sku: string>>",
        "_kafka": "struct<offset: bigint>",
    },
    "iceberg:sales.orders": {"order_id": "string", "_kafka": "struct<offset: bigint>"},
}
HEAD = "pipeline: orders\nexpectations:\n"


@pytest.fixture
def spec() -> PipelineSpec:
    return PipelineSpec.model_validate(
        {
            "pipeline": "orders",
            "topics": ["orders"],
            "connection": {"bootstrap_servers": "127.0.0.1:1"},
            "value": {"format": "json", "schema": "order_id STRING NOT NULL, total DOUBLE"},
            "freshness": "1s",
            "tables": [{"format": "delta", "name": "sales.orders"}, {"format": "iceberg", "name": "sales.orders"}],
        }
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "expectations").mkdir()
    return replace(load_settings({}), home=tmp_path, pipelines=tmp_path / "pipelines", warehouse=tmp_path / "lake")


def write(settings: Settings, text: str) -> None:
    (settings.pipelines.parent / "expectations" / "orders.yaml").write_text(text)


def wrong(spec: PipelineSpec, settings: Settings, text: str) -> list[str]:
    write(settings, text)
    lines = check_expectations(spec, settings, COLUMNS)
    assert all("expectations/orders.yaml:" in line for line in lines)
    return [line.partition("expectations/orders.yaml:")[2] for line in lines]


def test_a_wrong_column_names_file_line_field_and_the_columns_that_exist(spec: PipelineSpec, settings: Settings) -> None:
    text = HEAD + (
        "  - expect: expect_column_values_to_be_between\n"
        "    tables: [delta:sales.orders]\n"
        "    kwargs:\n"
        "      min_value: 0\n"
        "      column: totl\n"
    )
    (line,) = wrong(spec, settings, text)
    assert line == (
        "7: expectations[0].kwargs.column: 'totl' is not a column of delta:sales.orders; did you mean 'total'?; "
        "its columns: order_id, status, total, placed_at, day, items, _kafka"
    )


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ("{expect: expect_column_values_to_be_betwen, kwargs: {column: total}}", "did you mean 'expect_column_values_to_be_b"),
        ("{expect: expect_column_values_to_be_in_set, kwargs: {column: total}}", "_values_to_be_in_set needs value_set"),
        ("{expect: expect_column_values_to_not_be_null, kwargs: {colum: total}}", "unknown argument of"),
        ("{expect: expect_table_columns_to_match_set, kwargs: {column_set: [a]}, where: a > 1}", "it takes no condition"),
        ("{expect: rows_to_satisfy, rul: a > 1}", "unknown key; did you mean 'rule'?"),
        ("{expect: rows_to_satisfy}", "expectations[0].rule: is missing"),
        ("{expect: fresh, max_seconds: -1}", "greater than 0"),
        ("{expect: fresh, max_seconds: 1, severity: fatal}", "must be info, warning or critical, not 'fatal'"),
        (
            "{expect: fresh, max_seconds: 1, tables: [delta:a]}",
            "'delta:a' is not one of the tables: delta:sales.orders",
        ),
        ("{expect: unique_over_window, columns: [a], over_seconds: 1, over_commits: 2}", "either over_seconds or over_"),
        ("{expect: unique_over_window, columns: [status]}", "'status' is not a column of iceberg:sales.orders"),
        ("{kwargs: {column: total}}", "expectations[0].expect: is missing"),
    ],
)
def test_each_mistake_is_told_at_its_line(item: str, told: str, spec: PipelineSpec, settings: Settings) -> None:
    lines = wrong(spec, settings, f"{HEAD}  - {item}\n")
    assert len(lines) == 1 and lines[0].startswith("3: ") and told in lines[0]


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ("expect: expect_column_values_to_be_between, kwargs: {column: items, min_value: 1}", "rows_to_satisfy with a rule on"),
        ("expect: expect_column_values_to_match_regex, kwargs: {column: total, regex: x}", "which is double: use rows_to_sat"),
        ("expect: expect_column_values_to_be_between, kwargs: {column: total, min_value: '1'}", "'1' cannot be compared with"),
        (
            "expect: expect_column_values_to_be_between, kwargs: {column: placed_at, min_value: soon}",
            "write times with their zone",
        ),
        ("expect: expect_column_max_to_be_between, kwargs: {column: day, min_value: 1}", "write dates, such as 2026-01-31"),
        ("expect: expect_column_values_to_be_in_set, kwargs: {column: status, value_set: [a, yes]}", "True cannot be compared"),
        ("expect: expect_multicolumn_sum_to_equal, kwargs: {column_list: [total, status], sum_total: 1}", "which is string"),
    ],
)
def test_what_cannot_be_judged_of_a_columns_type_is_told_at_its_line(
    item: str, told: str, spec: PipelineSpec, settings: Settings
) -> None:
    lines = wrong(spec, settings, f"{HEAD}  - {{{item}, tables: [delta:sales.orders]}}\n")
    assert len(lines) == 1 and lines[0].startswith("3: expectations[0].kwargs.") and told in lines[0]


def test_what_fits_a_columns_type_is_no_mistake(spec: PipelineSpec, settings: Settings) -> None:
    items = (
        "expect: expect_column_values_to_be_between, kwargs: {column: total, min_value: 1}",
        "expect: expect_column_max_to_be_between, kwargs: {column: day, min_value: 2026-01-31}",
        "expect: expect_column_values_to_not_be_null, kwargs: {column: items}",
        "expect: expect_column_values_to_be_between, kwargs: {column: _kafka.offset, min_value: 0}",
    )
    text = HEAD + "".join(f"  - {{{item}, tables: [delta:sales.orders]}}\n" for item in items)
    assert wrong(spec, settings, text) == []


def test_every_kind_that_names_a_column_says_of_which_types_it_is_judged() -> None:
    named = {kind for kind, known in CATALOG.items() if known.columns}
    assert named == set(JUDGED) and set(COMPARED) <= named
    assert {one.lower() for one in KNOWN_TYPES} <= set(FAMILIES)


def test_mistakes_of_the_file_itself(spec: PipelineSpec, settings: Settings) -> None:
    assert wrong(spec, settings, "pipeline: orders\non_failur: stop\nexpectations: []\n") == [
        "2: on_failur: unknown key; did you mean 'on_failure'?; known here: every_seconds, expectations, keep_runs, "
        "max_rows_per_range, on_failure, pipeline, resolve_after_seconds",
        "3: expectations: must not be empty",
    ]
    assert (
        "is 'others', but the file is that of 'orders'"
        in wrong(spec, settings, "pipeline: others\nexpectations: [{expect: fresh, max_seconds: 1}]\n")[0]
    )
    two = HEAD + "  - {expect: fresh, max_seconds: 1}\n  - {expect: fresh, max_seconds: 2}\n"
    assert wrong(spec, settings, two) == [
        "4: expectations[1]: has the same name 'fresh()' as the one in line 3; give it another name"
    ]
    assert "cannot be read here" in wrong(spec, settings, "pipeline: [orders\n")[0]


def test_a_wrong_file_is_an_error_with_all_of_its_mistakes_and_none_is_no_file(spec: PipelineSpec, settings: Settings) -> None:
    assert load_expectations(spec, settings) is None and check_expectations(spec, settings, COLUMNS) == []
    write(settings, HEAD + "  - {expect: nothing}\n  - {expect: fresh}\n")
    with pytest.raises(InvalidExpectationsError) as failure:
        load_expectations(spec, settings)
    assert isinstance(failure.value, LakeboundError) and len(failure.value.problems) == 2


def test_what_is_read_says_what_was_written_and_goes_through_json(spec: PipelineSpec, settings: Settings) -> None:
    write(
        settings,
        HEAD
        + "  - {expect: expect_column_values_to_not_be_null, kwargs: {column: order_id}, where: total > 0, tables: ["
        + "delta:sales.orders]}\n"
        + "  - {expect: unique_over_window, columns: [order_id], suite: keys}\n",
    )
    file = load_expectations(spec, settings)
    assert file is not None
    gx, unique = file.expectations
    assert isinstance(gx, GxExpectation) and gx.label == "expect_column_values_to_not_be_null(order_id, total > 0)"
    assert isinstance(unique, UniqueOverWindow) and unique.window_seconds == 86_400
    assert file.of("iceberg:sales.orders") == (unique,) and file.of("delta:sales.orders", "keys") == (unique,)
    again = ExpectationFile.model_validate_json(file.model_dump_json())
    assert again.expectations == file.expectations
    assert [(keys, text, tables) for keys, text, tables in conditions(spec, settings)] == [
        (("expectations", 0, "where"), "total > 0", ("delta:sales.orders",))
    ]


def test_columns_that_are_known_without_spark(spec: PipelineSpec) -> None:
    assert columns_without_spark(spec, {"delta:sales.orders": {"a": "int"}}) == {
        "delta:sales.orders": {"a": "int"},
        "iceberg:sales.orders": {"order_id": "STRING", "total": "DOUBLE", "_kafka": "STRUCT"},
    }
    transformed = spec.model_copy(update={"transform": "transforms.orders.clean"})
    assert columns_without_spark(transformed, {}) == {}
    ddl = "a STRING NOT NULL, `b`: INT, c ARRAY<STRUCT<x: INT, y: DECIMAL(10,2)>>, d DECIMAL(4, 2)"
    assert [column.name for column in read_columns(ddl)] == ["a", "b", "c", "d"]


def test_the_example_fits_the_shipped_pipeline() -> None:
    from lakebound.spec.load import load_file

    settings = replace(load_settings({}), pipelines=REPOSITORY / "include" / "pipelines")
    spec = load_file(settings.pipelines / "orders.yaml", settings)
    columns = {
        **dict.fromkeys(("order_id", "customer_id", "status", "currency"), "string"),
        "total": "double",
        "placed_at": "timestamp",
        "items": "array<struct<sku: string>>",
        "item_count": "int",
        "_kafka": "struct<offset: bigint>",
    }
    assert check_expectations(spec, settings, {table.id: columns for table in spec.tables}) == []
    file = load_expectations(spec, settings)
    assert file is not None and all(file.of(table.id) for table in spec.tables)


def test_each_kind_comes_back_from_json_as_itself() -> None:
    kinds: list[dict[str, object]] = [
        {"expect": "expect_column_values_to_not_be_null", "kwargs": {"column": "total"}},
        {"expect": "rows_to_satisfy", "rule": "total > 0"},
        {"expect": "unique_over_window", "columns": ["order_id"]},
        {"expect": "fresh", "max_seconds": 1},
        {"expect": "usual_volume"},
        {"expect": "values_in_table", "columns": {"order_id": "id"}, "table": "delta:crm.orders"},
    ]
    file = ExpectationFile.model_validate({"pipeline": "orders", "expectations": kinds})
    back = ExpectationFile.model_validate_json(file.model_dump_json())
    assert back == file
    assert [type(one) for one in back.expectations] == [GxExpectation, *OWN_KINDS.values()]


def test_rows_of_windows_are_not_copied_into_the_quarantine(spec: PipelineSpec, settings: Settings) -> None:
    path = settings.pipelines.parent / "expectations" / "orders.yaml"
    one = "{expect: expect_column_values_to_not_be_null, kwargs: {column: order_id}}"
    path.write_text(f"pipeline: orders\non_failure: quarantine\nexpectations:\n  - {one}\n")
    state = StateSpec(event_time="at", watermark="1m")
    assert load_expectations(spec, settings) is not None
    with pytest.raises(InvalidExpectationsError, match=r":2: on_failure: .*'state'; use alert or stop"):
        load_expectations(spec.model_copy(update={"state": state, "transform": "transforms.a.b"}), settings)
