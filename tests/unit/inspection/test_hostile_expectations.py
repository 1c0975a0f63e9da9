"""One hostile file of expectations stops nobody: what is wrong with it is told, and nothing else is raised."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.support.streams.long_form import examples
from tests.support.streams.pipeline_files import RIGHT, settings, write

from lakebound.inspection.validation.expectation_files import (
    InvalidExpectationsError,
    check_expectations,
    columns_without_spark,
    load_expectations,
)
from lakebound.settings import Settings
from lakebound.spec.load import load_pipeline

__all__ = ["settings"]
RULE = {"expect": "rows_to_satisfy", "rule": "order_id > 0"}
WRONG = (
    *(
        {"expect": [1]},
        {"expect": {"a": 1}},
        {"expect": 1},
        {"expect": None},
        {"expect": "x" * 5000},
        {**RULE, "tables": [[1]]},
    ),
    *({**RULE, "name": "a\nb"}, {**RULE, "name": "a" * 201}, {**RULE, "rule": "a" * 200_001}, {**RULE, "mostly": 1e300}),
    *({"expect": "fresh", "max_seconds": 1e300}, {"expect": "usual_volume", "past_seconds": 1e300}),
    *({"expect": "unique_over_window", "columns": ["a"], "over_seconds": 1e300},),
    *({"expect": "unique_over_window", "columns": ["a\nb"]},),
)
HEADS = ({"every_seconds": 1e18}, {"resolve_after_seconds": 1e300}, {"on_failure": ["stop"]}, {"pipeline": ["orders"]})


def problems(settings: Settings, body: Any) -> list[str]:
    """Return what is said of a file with this body."""
    write(settings, RIGHT)
    folder = settings.pipelines.parent / "expectations"
    folder.mkdir(exist_ok=True)
    (folder / "orders.yaml").write_text(yaml.safe_dump(body))
    spec = load_pipeline("orders", settings)
    try:
        load_expectations(spec, settings)
    except InvalidExpectationsError as exc:
        return exc.problems
    return check_expectations(spec, settings, columns_without_spark(spec, {}))


@pytest.mark.parametrize("one", WRONG, ids=lambda one: str(one)[:40])
def test_what_is_wrong_is_told_by_its_field(settings: Settings, one: dict[str, Any]) -> None:
    found = problems(settings, {"pipeline": "orders", "expectations": [one]})
    assert found and all("cannot be judged" not in line and line.isprintable() and len(line) < 2500 for line in found)


@pytest.mark.parametrize("head", HEADS, ids=str)
def test_what_is_wrong_above_the_expectations_is_told(settings: Settings, head: dict[str, Any]) -> None:
    found = problems(settings, {"pipeline": "orders", "expectations": [RULE], **head})
    assert found and all("cannot be judged" not in line for line in found)


def test_a_right_file_has_lines_in_its_sql_and_in_its_values(settings: Settings) -> None:
    values = {"column": "order_id", "value_set": ["a\nb", "c\td"]}
    body = [{**RULE, "rule": "order_id > 0\n  OR true"}, {"expect": "expect_column_values_to_be_in_set", "kwargs": values}]
    assert problems(settings, {"pipeline": "orders", "expectations": body}) == []


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | st.integers(), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(["expect", "name", "severity", "suite", "tables", "description", "kwargs", "where", "rule", "columns"])


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(100))
@given(
    kind=st.sampled_from(["rows_to_satisfy", "unique_over_window", "expect_column_values_to_be_between", "values_in_table"]),
    fields=st.dictionaries(FIELDS, VALUES, max_size=4),
)
def test_no_value_in_any_field_raises_anything_else(settings: Settings, kind: str, fields: dict[str, Any]) -> None:
    for line in problems(settings, {"pipeline": "orders", "expectations": [{"expect": kind, **fields}]}):
        assert line.isprintable() and "cannot be judged" not in line
