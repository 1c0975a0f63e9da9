"""What the tests of real tables share."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.local_tables import places

from lakebound.run_spec import Places
from lakebound.spec import TableSpec


@pytest.fixture(params=["delta", "iceberg"])
def spec(request: pytest.FixtureRequest) -> TableSpec:
    """A table of each format."""
    return TableSpec(format=request.param, name="shop.orders")


@pytest.fixture
def at(tmp_path: Path) -> Places:
    """Places of the test's own, of which nothing exists yet."""
    return places(tmp_path)
