"""The catalog of expectations against the Great Expectations that is installed."""

from __future__ import annotations

import great_expectations.expectations.core as core  # noqa: F401
import pytest
from great_expectations.expectations.expectation import (
    ColumnMapExpectation,
    ColumnPairMapExpectation,
    MulticolumnMapExpectation,
)
from great_expectations.expectations.metadata_types import SupportedDataSources
from great_expectations.expectations.registry import get_expectation_impl

from lakebound.inspection.validation.gx_catalog import CATALOG

pytestmark = pytest.mark.spark

OF_ROWS = (ColumnMapExpectation, ColumnPairMapExpectation, MulticolumnMapExpectation)


@pytest.mark.parametrize("name", CATALOG)
def test_gx_has_it_with_these_arguments(name: str) -> None:
    kind, found = CATALOG[name], get_expectation_impl(name)
    fields = found.__fields__
    assert set(kind.arguments) <= set(fields), sorted(fields)
    required = {field for field, about in fields.items() if about.required}
    assert required <= {*kind.columns, *kind.required}, f"GX also wants {required}"
    if kind.is_of_rows:
        assert issubclass(found, OF_ROWS) and found.map_metric
    if kind.takes_where:
        assert "row_condition" in fields
    schema = found.schema()["properties"]["metadata"]["properties"]
    sources = schema.get("supported_data_sources", {}).get("const")
    assert sources is None or SupportedDataSources.SPARK.value in sources
