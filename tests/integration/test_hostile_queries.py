"""A query of reference data reads what its login may read, and changes nothing: against a real PostgreSQL."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import psycopg
import pytest
from tests.support.catalogs.postgresql import PASSWORD, USER, PostgreSQL, PostgreSQLProxy

from lakebound.spec.reference import ReferenceSpec
from lakebound_spark.reference import postgres
from lakebound_spark.reference.loaded import UnusableReferenceError

pytestmark = pytest.mark.integration

SECRET = "LAKEBOUND_SECRET_OF_QUERIES"
CONTENT = "SELECT (SELECT count(*) FROM held), (SELECT count(*) FROM pg_largeobject_metadata), (SELECT last_value FROM numbers)"
CHANGES = (
    *(
        "SELECT 1 AS a; DELETE FROM held",
        "SELECT 1 AS a) AS source; DELETE FROM held; --",
        "SELECT 1 AS a); DELETE FROM held; SELECT (1",
    ),
    *("WITH gone AS (DELETE FROM held RETURNING a) SELECT a FROM gone", "DELETE FROM held RETURNING a", "COPY held TO STDOUT"),
    *("SELECT nextval('numbers') AS a", "SELECT set_config('transaction_read_only', 'off', true) AS a"),
    *("SELECT lo_create(0)::int8 AS a", "SELECT lo_from_bytea(0, 'x')::int8 AS a"),
    "SELECT a FROM held WHERE set_config('transaction_read_only', 'off', false) = 'off' AND nextval('numbers') > 0",
)
READS = (
    *("SELECT pg_read_file('/etc/hostname') AS a", "SELECT pg_ls_dir('.') AS a", "SELECT rolpassword AS a FROM pg_authid"),
    *("SELECT lo_import('/etc/hostname')::int8 AS a", "SELECT a FROM dblink('host=127.0.0.1', 'SELECT 1') AS t(a int)"),
)
ENDLESS = "SELECT 1 AS a, CASE WHEN current_setting('statement_timeout') = '0' THEN pg_sleep(60)::text END AS b, "
ENDLESS += "set_config('statement_timeout', '0', true) AS c"


@pytest.fixture(scope="module")
def login(postgresql: PostgreSQL) -> Iterator[dict[str, object]]:
    proxy, name = PostgreSQLProxy(postgresql), postgresql.new_database()
    with _own(postgresql, name) as own:
        own.execute("CREATE TABLE held AS SELECT generate_series(1, 3) AS a")
        own.execute("CREATE SEQUENCE numbers")
    place = {"host": "127.0.0.1", "port": proxy.port, "database": name, "username": USER, "password": {"env": SECRET}}
    yield place
    proxy.close()


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET, PASSWORD)


def _own(server: PostgreSQL, name: object) -> psycopg.Connection[tuple[object, ...]]:
    folder = os.path.dirname(server.socket)
    return psycopg.connect(host=folder, user=USER, password=PASSWORD, dbname=str(name), autocommit=True)


def reference(login: dict[str, object], query: str) -> ReferenceSpec:
    return ReferenceSpec.model_validate({"format": "postgres", "query": query, "key": ["a"], "postgres": login})


@pytest.mark.parametrize("query", CHANGES)
def test_nothing_is_changed(login: dict[str, object], postgresql: PostgreSQL, query: str) -> None:
    with _own(postgresql, login["database"]) as own:
        before = own.execute(CONTENT).fetchone()
        try:
            postgres.load("shop", reference(login, query))
        except UnusableReferenceError as exc:
            assert "reference.shop" in str(exc) or "cannot be read" in str(exc)
        assert own.execute(CONTENT).fetchone() == before


@pytest.mark.parametrize("query", READS)
def test_what_the_login_may_not_read_is_not_read(login: dict[str, object], query: str) -> None:
    with pytest.raises(UnusableReferenceError):
        postgres.load("shop", reference(login, query))


def test_a_query_cannot_take_its_own_limit_of_time_away(login: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(postgres._SESSION, "statement_timeout", "2s")
    begun = time.monotonic()
    loaded = postgres.load("shop", reference(login, ENDLESS))
    assert loaded.rows.num_rows == 1 and time.monotonic() - begun < 40
