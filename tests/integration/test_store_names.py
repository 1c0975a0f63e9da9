"""`lakebound check` finds two names of one store before a start, by what real servers say of themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from tests.support.catalogs.postgresql import PASSWORD, USER, OnASocket, PostgreSQL, PostgreSQLProxy
from tests.support.stores.redis_server import RedisServer, running_redis
from tests.support.streams.pipeline_files import RIGHT, settings, write

from lakebound.cli.check import _alias_problems, _Report
from lakebound.landing.to_stores.open_store import connect_store
from lakebound.settings import Settings
from lakebound.spec.load import load_pipelines, path_of
from lakebound.spec.to_stores import ToStoreSpec

pytestmark = pytest.mark.integration
__all__ = ["settings"]

SECRET = "LAKEBOUND_SECRET_OF_NAMES"
MORE = RIGHT.replace("pipeline: orders", "pipeline: more").replace("sales.orders", "sales.more")


@dataclass
class Names:
    """Ports that lead to a server: each is another name of it."""

    server: OnASocket
    open: list[PostgreSQLProxy] = field(default_factory=list)

    def another(self) -> int:
        """Return one more."""
        self.open.append(PostgreSQLProxy(self.server))
        return self.open[-1].port

    def close(self) -> None:
        """End them."""
        for one in self.open:
            one.close()


@pytest.fixture
def postgres(postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    monkeypatch.setenv(SECRET, PASSWORD)
    names = Names(postgresql)
    yield names
    names.close()


@pytest.fixture
def redis() -> Iterator[Names]:
    with running_redis() as server:
        names = Names(server)
        yield names
        names.close()


def in_postgres(port: int, database: str) -> str:
    login = f"port: {port}, database: {database}, username: {USER}, password: {{env: {SECRET}}}"
    return f"to_stores:\n  - {{name: cards, key: a, postgres: {{host: 127.0.0.1, {login}}}}}\n"


def in_redis(port: int, more: str = "") -> str:
    return f"to_stores:\n  - {{name: cards, key: a, redis: {{host: 127.0.0.1, port: {port}{more}}}}}\n"


def found(settings: Settings, one: str, other: str) -> list[str]:
    """Return what `lakebound check` says of two pipelines that are right by their files alone."""
    (settings.pipelines.parent / "installation.yaml").unlink(missing_ok=True)  # then secrets may go to this machine alone
    write(settings, RIGHT + one)
    write(settings, MORE + other, "more.yaml")
    loaded = load_pipelines(settings)
    assert loaded.problems == [] and len(loaded.specs) == 2
    report = _Report({path_of(name, settings): spec for name, spec in loaded.specs.items()})
    assert _alias_problems(report, settings, static=True) == []
    return _alias_problems(report, settings, static=False)


def test_two_names_of_one_database_are_told_with_both_names(
    settings: Settings, postgres: Names, postgresql: PostgreSQL
) -> None:
    database, (one, other) = postgresql.new_database(), (postgres.another(), postgres.another())
    lines = found(settings, in_postgres(one, database), in_postgres(other, database))
    assert len(lines) == 2
    of_more, of_orders = (other, f"orders.yaml (at localhost:{one}"), (one, f"more.yaml (at localhost:{other}")
    for line, (own, theirs) in zip(lines, (of_more, of_orders), strict=True):
        assert f"store postgres:public.cards at localhost:{own}/{database} is also named in {theirs}/{database})" in line
        assert line.endswith("; these names lead to one server")


def test_two_databases_of_one_server_are_two(settings: Settings, postgres: Names, postgresql: PostgreSQL) -> None:
    one, other = (in_postgres(postgres.another(), postgresql.new_database()) for _ in range(2))
    assert found(settings, one, other) == []


def test_two_names_of_one_redis_are_told_and_two_of_its_databases_are_two(settings: Settings, redis: Names) -> None:
    one, other = redis.another(), redis.another()
    lines = found(settings, in_redis(one), in_redis(other))
    assert len(lines) == 2 and f"at localhost:{one}/0 is also named in more.yaml (at localhost:{other}/0)" in lines[1]
    assert found(settings, in_redis(one), in_redis(other, ", database: 1")) == []


def test_a_server_that_is_away_or_does_not_tell_is_no_other_one(
    settings: Settings, redis: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SECRET, PASSWORD)
    server = redis.server
    assert isinstance(server, RedisServer)
    server.client().execute_command("ACL", "SETUSER", "mute", "on", "nopass", "~*", "+@all", "-info")
    one, other = redis.another(), redis.another()
    mute = ", username: mute, password: {env: LAKEBOUND_SECRET_OF_NAMES}"
    assert found(settings, in_redis(one), in_redis(other, mute)) == []
    with redis.open[1].away():
        assert found(settings, in_redis(one), in_redis(other)) == []


def test_a_server_has_another_id_after_each_start(redis: Names) -> None:
    """A copy of a server's files would else be taken for the server."""
    server = redis.server
    assert isinstance(server, RedisServer)
    port = redis.another()
    spec = ToStoreSpec.model_validate({"name": "cards", "key": "a", "redis": {"host": "127.0.0.1", "port": port}})

    def told() -> str:
        store = connect_store(spec, "to_stores[0]")
        try:
            return store.server_id()
        finally:
            store.close()

    before = told()
    assert told() == before
    server.kill()
    server.start()
    assert told() != before
