"""The catalog of expectations against the Great Expectations that is installed."""

from __future__ import annotations

from typing import Any

import pytest

from lakebound.inspection.validation.gx_catalog import CATALOG

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def gx() -> Any:
    """Great Expectations' registry and classes; it takes seconds to import, which only the process that runs this file pays."""
    import great_expectations.expectations.core as core  # noqa: F401
    from great_expectations.expectations import expectation, metadata_types, registry

    return expectation, metadata_types, registry


@pytest.mark.parametrize("name", CATALOG)
def test_gx_has_it_with_these_arguments(name: str, gx: Any) -> None:
    expectation, metadata_types, registry = gx
    kind, found = CATALOG[name], registry.get_expectation_impl(name)
    fields = found.__fields__
    assert set(kind.arguments) <= set(fields), sorted(fields)
    required = {field for field, about in fields.items() if about.required}
    assert required <= {*kind.columns, *kind.required}, f"GX also wants {required}"
    if kind.is_of_rows:
        of_rows = (
            expectation.ColumnMapExpectation,
            expectation.ColumnPairMapExpectation,
            expectation.MulticolumnMapExpectation,
        )
        assert issubclass(found, of_rows) and found.map_metric
    if kind.takes_where:
        assert "row_condition" in fields
    schema = found.schema()["properties"]["metadata"]["properties"]
    sources = schema.get("supported_data_sources", {}).get("const")
    assert sources is None or metadata_types.SupportedDataSources.SPARK.value in sources
