"""Tests that take ``spec`` and ``at`` run on a Delta table in an object store, too."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.s3.running import S3Server
from tests.support.tables.local_tables import places
from tests.support.tables.stored import places_in

from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places

_STORED = "delta on s3"


@pytest.fixture(params=["delta", "iceberg", _STORED])
def spec(request: pytest.FixtureRequest) -> TableSpec:
    """A table of each format, and one in an object store."""
    return TableSpec(format=request.param.split()[0], name="shop.orders")


@pytest.fixture
def at(request: pytest.FixtureRequest, tmp_path: Path) -> Places:
    """Places of the test's own, of which nothing exists yet; ``spec`` says where the tables will be."""
    callspec = getattr(request.node, "callspec", None)
    if callspec is None or callspec.params.get("spec") != _STORED:
        return places(tmp_path)
    server: S3Server = request.getfixturevalue("s3_server")
    return places_in(server, server.new_bucket(), tmp_path)
