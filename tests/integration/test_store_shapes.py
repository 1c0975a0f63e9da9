"""A store that was filled by one YAML, and is to be filled by another: refused by name, or right as an independent model says.

Every pair of a small grammar, in both stores, with a ledger that says the shape and with one of an earlier version, which
does not.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support.catalogs.postgresql import PASSWORD, USER, PostgreSQL, PostgreSQLProxy
from tests.support.stores import expected
from tests.support.stores.expected import Contents
from tests.support.stores.landing import BATCH, StoreLander
from tests.support.stores.redis_server import RedisServer, running_redis
from tests.support.streams.long_form import each_value_once
from tests.support.tables.rewinding import described

from lakebound.errors import StoreRefusedError, StoreShapeError
from lakebound.landing.targets.stores import TARGET_KIND as STORES
from lakebound.spec.to_stores import ToStoreSpec

pytestmark = [pytest.mark.integration, each_value_once]

SECRET = "LAKEBOUND_SECRET_OF_STORES"
Yaml = Mapping[str, Any]


def counters(windows: dict[str, str], *sums: str) -> dict[str, Any]:
    """Return the YAML of counters."""
    return {"time": "paid_at", "windows": windows, "sums": list(sums)}


GRAMMAR: dict[str, Yaml] = {
    "rows": {"key": "card", "columns": ["number", "amount"]},
    "rows of one column": {"key": "card", "columns": ["number"]},
    "rows of another column": {"key": "card", "columns": ["amount"]},
    "rows by number": {"key": "number", "columns": ["amount"]},
    "rows by number and card": {"key": "number", "columns": ["amount", "card"]},
    "counts": {"key": "card", "counters": counters({"2h": "1m"})},
    "sums": {"key": "card", "counters": counters({"2h": "1m"}, "amount")},
    "two sums": {"key": "card", "counters": counters({"2h": "1m"}, "number", "amount")},
    "two windows": {"key": "card", "counters": counters({"2h": "1m", "1h": "30s"}, "amount")},
    "another window": {"key": "card", "counters": counters({"1h": "1m"}, "amount")},
    "shorter buckets": {"key": "card", "counters": counters({"2h": "25s"}, "amount")},
    "sums by number": {"key": "number", "counters": counters({"2h": "1m"}, "amount")},
}
FIELDS = ("counters", "key", "columns", "counters.windows", "counters.sums")
ADDED = {("rows of one column", "rows"), ("rows of another column", "rows"), ("rows by number", "rows by number and card")}
"""What is right although it is another YAML: rows get a column, which has no value where no record came since."""


@dataclass
class Server:
    """A server, and who reads and changes it without Lakebound.

    Attributes:
        login: What the YAML says of it.
        read: What a store holds, by the store's name and the key's column.
        forget_shape: Makes the ledger's record of a store one of an earlier version.
        add_column: As the message tells a person to do.
    """

    login: dict[str, Any]
    read: Callable[[str, str], Contents]
    forget_shape: Callable[[str], None]
    add_column: Callable[[str, str, str], None]


def without_shape(record: Any) -> str:
    """Return the record of a ledger as earlier versions have written it."""
    body = json.loads(record)
    del body["shape"]
    return json.dumps(body)


def in_redis(server: RedisServer, proxy: PostgreSQLProxy) -> Server:
    """Return a Redis."""
    client = server.client()

    def forget_shape(name: str) -> None:
        ledger = f"lakebound:ledger:{name}"
        client.hset(ledger, "entry", without_shape(client.hget(ledger, "entry")))

    login = {"redis": {"host": "127.0.0.1", "port": proxy.port}}
    return Server(login, lambda name, _: expected.contents_in_redis(client, name), forget_shape, lambda *_: None)


def in_postgres(own: psycopg.Connection[Any], proxy: PostgreSQLProxy) -> Server:
    """Return a PostgreSQL."""

    def forget_shape(name: str) -> None:
        target = [f"postgres:{name}"]
        found = own.execute("SELECT entry FROM lakebound_ledger WHERE target = %s", target).fetchone()
        assert found is not None
        own.execute("UPDATE lakebound_ledger SET entry = %s WHERE target = %s", [without_shape(found[0]), *target])

    def add_column(name: str, column: str, kind: str) -> None:
        own.execute(f"ALTER TABLE {name} ADD COLUMN {column} {kind}".encode())

    where = {"host": "127.0.0.1", "port": proxy.port, "database": own.info.dbname, "username": USER}
    login = {"postgres": {**where, "password": {"env": SECRET}}}
    return Server(login, lambda name, key: expected.contents_in_postgres(own, name, key), forget_shape, add_column)


@pytest.fixture(scope="module", params=["postgres", "redis"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SECRET, PASSWORD)
        if request.param == "redis":
            with running_redis() as running:
                proxy = PostgreSQLProxy(running)
                yield in_redis(running, proxy)
                proxy.close()
            return
        postgresql: PostgreSQL = request.getfixturevalue("postgresql")
        proxy = PostgreSQLProxy(postgresql)
        login = {"host": os.path.dirname(postgresql.socket), "user": USER, "password": PASSWORD}
        with psycopg.connect(**login, dbname=postgresql.new_database(), autocommit=True) as own:
            yield in_postgres(own, proxy)
        proxy.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    # Where buckets of 25 s and of a minute do not begin together.
    (tmp_path / "first_second").write_text(str((int(time.time()) - 600) // 300 * 300 + 67))
    return tmp_path


EPOCHS = itertools.count(1)
NAMES = (f"store{number}" for number in itertools.count())


def start(home: Path, server: Server, name: str, yaml: Yaml) -> StoreLander:
    """Start an application."""
    return StoreLander(home, ToStoreSpec.model_validate({"name": name, **yaml, **server.login}), next(EPOCHS))


def model(yaml: Yaml, first: Yaml, app: StoreLander) -> Contents:
    """Return what a store holds after two batches, of which the first was landed by the YAML ``first``."""
    if "counters" in yaml:
        return expected.expected_contents(yaml, 0, 2 * BATCH, app.first_second)
    before = expected.expected_contents(first, 0, BATCH, app.first_second)
    return {**before, **expected.expected_contents(yaml, BATCH, 2 * BATCH, app.first_second)}


@pytest.mark.parametrize("old", GRAMMAR)
def test_another_yaml_is_refused_by_its_field_or_right(server: Server, home: Path, old: str) -> None:
    name, first = next(NAMES), GRAMMAR[old]
    app = start(home, server, name, first)
    app.land_next()
    before = server.read(name, first["key"])

    for new, yaml in GRAMMAR.items():
        if new == old or (old, new) in ADDED:
            continue
        with pytest.raises(StoreShapeError, match=rf"({'|'.join(FIELDS)}): ") as refused:
            start(home, server, name, yaml)
        assert "another name" in str(refused.value)
        assert server.read(name, first["key"]) == before, (old, new)

    again = start(home, server, name, first)
    again.land_next()
    assert server.read(name, first["key"]) == model(first, first, again)


def test_the_doctor_says_that_a_start_would_be_refused(server: Server, home: Path) -> None:
    name = next(NAMES)
    app = start(home, server, name, GRAMMAR["sums"])
    app.land_next()
    for yaml, told in (
        (GRAMMAR["sums"], None),
        (GRAMMAR["two sums"], "counters.sums: 'number'"),
        (GRAMMAR["rows"], "counters: "),
    ):
        pipeline = described(pipeline=app.pipeline, to_stores=[{"name": name, **yaml, **server.login}])
        found = STORES.look(pipeline).refusals
        assert {*found} == ({pipeline.to_stores[0].id} if told else set())
        assert told is None or told in found[pipeline.to_stores[0].id]


@pytest.mark.parametrize(("old", "new"), sorted(ADDED))
def test_rows_may_get_a_column(server: Server, home: Path, old: str, new: str) -> None:
    name, first, yaml = next(NAMES), GRAMMAR[old], GRAMMAR[new]
    start(home, server, name, first).land_next()
    (column,) = {*yaml["columns"]} - {*first["columns"]}
    kinds = {"card": "text", "number": "bigint", "amount": "integer"}
    server.add_column(name, column, kinds[column])

    app = start(home, server, name, yaml)
    app.land_next()

    assert server.read(name, yaml["key"]) == model(yaml, first, app)
    with pytest.raises(StoreShapeError, match=f"columns: '{column}'"):
        start(home, server, name, first)


@pytest.mark.parametrize("old", GRAMMAR)
def test_what_an_earlier_version_left_is_taken_over_by_its_own_yaml_and_refused_where_it_shows(
    server: Server, home: Path, old: str
) -> None:
    name, first = next(NAMES), GRAMMAR[old]
    start(home, server, name, first).land_next()
    server.forget_shape(name)
    for new, yaml in GRAMMAR.items():
        # A table of rows may have columns of its owner's own: there nothing shows that the pipeline has written them before.
        leaves_no_trace = "postgres" in server.login and (new, old) in ADDED
        # A table of counters may have more columns, too.
        leaves_no_trace |= "postgres" in server.login and {*yaml.get("counters", {}).get("sums", ())} < {
            *first.get("counters", {}).get("sums", ())
        }
        # In Redis, nothing shows of which column a text was the value.
        leaves_no_trace |= "redis" in server.login and (old, new) == ("sums by number", "sums")
        if new == old or (old, new) in ADDED or leaves_no_trace:
            continue
        with pytest.raises((StoreShapeError, StoreRefusedError)):
            start(home, server, name, yaml)
    app = start(home, server, name, first)
    app.land_next()
    assert server.read(name, first["key"]) == model(first, first, app)
    with pytest.raises(StoreShapeError):
        start(home, server, name, GRAMMAR["rows" if "counters" in first else "sums"])
