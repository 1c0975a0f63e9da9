"""Sums in PostgreSQL after somebody has changed the table by hand, as the product's messages say. Judged without Lakebound."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support.catalogs.postgresql import PASSWORD, USER, PostgreSQL, PostgreSQLProxy
from tests.support.stores import expected
from tests.support.stores.landing import BATCH, StoreLander

from lakebound.errors import StoreRefusedError
from lakebound.spec.to_stores import ToStoreSpec

pytestmark = pytest.mark.integration

SECRET = "LAKEBOUND_SECRET_OF_STORES"
COUNTERS = {"time": "paid_at", "windows": {"1h": "30m"}, "sums": ["amount"]}
NAME = "velocity"


@pytest.fixture
def database(postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[psycopg.Connection[Any]]:
    monkeypatch.setenv(SECRET, PASSWORD)
    (tmp_path / "first_second").write_text(str(int(time.time()) - 600))
    name = postgresql.new_database()
    folder = os.path.dirname(postgresql.socket)
    with psycopg.connect(host=folder, user=USER, password=PASSWORD, dbname=name, autocommit=True) as own:
        yield own


@pytest.fixture
def spec(database: psycopg.Connection[Any], postgresql: PostgreSQL) -> Iterator[ToStoreSpec]:
    proxy = PostgreSQLProxy(postgresql)
    where = {"host": "127.0.0.1", "port": proxy.port, "database": database.info.dbname, "username": USER}
    body = {"name": NAME, "key": "card", "postgres": {**where, "password": {"env": SECRET}}, "counters": COUNTERS}
    yield ToStoreSpec.model_validate(body)
    proxy.close()


def test_the_column_that_a_message_tells_to_add_gives_right_sums(
    database: psycopg.Connection[Any], spec: ToStoreSpec, tmp_path: Path
) -> None:
    columns = "card text, window_seconds integer, bucket timestamptz, count bigint, PRIMARY KEY (card, window_seconds, bucket)"
    database.execute(f"CREATE TABLE {NAME} ({columns})".encode())
    with pytest.raises(StoreRefusedError, match="ADD COLUMN amount") as refused:
        StoreLander(tmp_path, spec, 1)
    told = re.search(r"ALTER TABLE … (ADD COLUMN [^.]+)\.", str(refused.value))
    assert told is not None
    database.execute(f"ALTER TABLE {NAME} {told[1]}".encode())

    app = StoreLander(tmp_path, spec, 2)
    app.land_next(2)

    found = expected.counts_in_postgres(database, NAME)
    assert found == expected.expected_counts(2 * BATCH, app.first_second, {3600: 1800})


def test_a_bucket_without_a_sum_is_found_at_the_start_and_what_is_told_to_do_helps(
    database: psycopg.Connection[Any], spec: ToStoreSpec, tmp_path: Path
) -> None:
    app = StoreLander(tmp_path, spec, 1)
    app.land_next()
    # As a table that an earlier version has made, and to which a column was added.
    database.execute(f"ALTER TABLE {NAME} DROP COLUMN amount".encode())
    database.execute(f"ALTER TABLE {NAME} ADD COLUMN amount bigint".encode())

    with pytest.raises(StoreRefusedError, match="column amount holds NULL") as refused:
        StoreLander(tmp_path, spec, 2)
    told = re.search(r"(UPDATE …) (SET .*), and then (ALTER TABLE …) (ALTER .*)\. Follow", str(refused.value))
    assert told is not None
    database.execute(f"UPDATE {NAME} {told[2]}".encode())
    database.execute(f"ALTER TABLE {NAME} {told[4]}".encode())

    last = StoreLander(tmp_path, spec, 3)
    last.land_next()
    whole = expected.expected_counts(2 * BATCH, last.first_second, {3600: 1800})
    before = expected.expected_counts(BATCH, last.first_second, {3600: 1800})
    begun = {place: number - (before[place] if place[3] == "amount" else 0) for place, number in whole.items()}
    assert expected.counts_in_postgres(database, NAME) == begun


def test_a_sum_goes_on_from_a_bucket_that_became_null_while_the_application_ran(
    database: psycopg.Connection[Any], spec: ToStoreSpec, tmp_path: Path
) -> None:
    app = StoreLander(tmp_path, spec, 1)
    database.execute(f"ALTER TABLE {NAME} ALTER COLUMN amount DROP NOT NULL".encode())
    app.land_next()
    database.execute(f"UPDATE {NAME} SET amount = NULL".encode())

    app.land_next()

    # The second batch is in the sums; of the first nobody knows them any more.
    found = expected.counts_in_postgres(database, NAME)
    whole = expected.expected_counts(2 * BATCH, app.first_second, {3600: 1800})
    before = expected.expected_counts(BATCH, app.first_second, {3600: 1800})
    known = {place: number - (before[place] if place[3] == "amount" else 0) for place, number in whole.items()}
    assert {place: number or 0 for place, number in found.items()} == known
