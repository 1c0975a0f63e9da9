"""The same tests of tables, with their catalog in PostgreSQL and behind REST."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.catalogs.installations import Installation, Store, in_postgresql, in_rest, store_on
from tests.support.streams.long_form import LONG_FORM
from tests.support.tables.local_tables import Lander, lander, make_table

from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places

INSTALLATIONS = ["postgresql", "rest", "postgresql on s3", "rest on s3"] if LONG_FORM else ["postgresql", "rest on s3"]
"""In the short form each kind of catalog, and each place of the tables."""


@pytest.fixture(params=INSTALLATIONS)
def installation(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    """An installation of each kind of catalog, with tables on this machine and in a bucket."""
    on_s3 = request.param.endswith("s3")
    store = store_on(request.getfixturevalue("s3_server")) if on_s3 else Store(str(tmp_path / "lake"))
    # Its own: a test may undo what it patched.
    with pytest.MonkeyPatch.context() as secrets:
        if request.param.startswith("postgresql"):
            made = in_postgresql(request.getfixturevalue("postgresql"), tmp_path, store, secrets)
        else:
            made = in_rest(tmp_path, store, secrets)
        yield made
        made.close()


@pytest.fixture
def at(installation: Installation) -> Places:
    """Places of the test's own, of which nothing exists yet."""
    return installation.at


@pytest.fixture
def spec() -> TableSpec:
    """An Iceberg table."""
    return TableSpec(format="iceberg", name="shop.orders")


@pytest.fixture
def iceberg(spec: TableSpec) -> TableSpec:
    """The same."""
    return spec


@pytest.fixture
def app(installation: Installation, spec: TableSpec) -> Lander:
    """An application that has opened its new table."""
    make_table(spec, installation.at)
    opened = lander(spec, installation.at)
    opened.open()
    return opened
