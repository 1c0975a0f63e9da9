"""What Redis does to a store: crashes, logs that are cut, other people's keys, old buckets. Judged without Lakebound."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.catalogs.postgresql import PostgreSQLProxy
from tests.support.stores import expected
from tests.support.stores.landing import BATCH, StoreLander
from tests.support.stores.redis_server import RedisServer, running_redis

from lakebound.errors import (
    CommitFailedError,
    CommitUnknownError,
    StoreNotEmptyError,
    StoreRefusedError,
    StoreTornError,
    StoreUnavailableError,
)
from lakebound.landing.to_stores.bucket_counts import counter_changes
from lakebound.landing.to_stores.open_store import connect_store
from lakebound.landing.to_stores.store import StoreCommit
from lakebound.spec.to_stores import ToStoreSpec
from lakebound.tables.commit import LedgerWentBackError

pytestmark = pytest.mark.integration

NAME = "cards"
COUNTERS = {"time": "paid_at", "windows": {"1h": "5s"}, "sums": ["amount"]}


@pytest.fixture(params=["redis", "valkey"])
def server(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    with running_redis(request.param) as running:
        yield running


@pytest.fixture
def one_server() -> Iterator[RedisServer]:
    with running_redis() as running:
        yield running


def lander(home: Path, server: RedisServer, epoch: int = 1, *, counters: Any = COUNTERS, **more: Any) -> StoreLander:
    first = home / "first_second"
    if not first.exists():
        first.write_text(str(int(time.time()) - 600))
    login = {"host": "127.0.0.1", "port": PostgreSQLProxy(server).port}
    body = {"name": NAME, "key": "card", "redis": login, **({"counters": counters} if counters else {}), **more}
    return StoreLander(home, ToStoreSpec.model_validate(body), epoch)


def assert_counted(server: RedisServer, app: StoreLander, end: int) -> None:
    found = expected.counts_in_redis(server.client(), NAME, {"1h": 3600})
    assert found == expected.expected_counts(end, app.first_second, {3600: 5})


def test_a_killed_server_goes_on_with_what_it_has_acknowledged(server: RedisServer, tmp_path: Path) -> None:
    app = lander(tmp_path, server)
    app.land_next(2)

    server.kill()
    server.start()

    app.land_next()
    assert_counted(server, app, 3 * BATCH)


def test_wherever_the_log_of_a_server_is_cut_rows_and_ledger_go_together(one_server: RedisServer, tmp_path: Path) -> None:
    app = lander(tmp_path, one_server)
    app.land_next(3)
    one_server.kill()
    log = one_server.log
    whole = log.read_bytes()
    ends = set()
    for size in range(len(whole), len(whole) // 3, -len(whole) // 16):
        log.write_bytes(whole[:size])
        one_server.start()
        held = app.target.read_ledger()
        end = held.entry.coverage["source"].partitions[0][-1][1] if held.entry and held.entry.coverage else 0
        assert_counted(one_server, app, end)
        ends.add(end)
        one_server.kill()
    assert len(ends) > 2, "the log was not cut between commits"


def test_a_server_that_lost_its_last_commits_gets_them_again(one_server: RedisServer, tmp_path: Path) -> None:
    app = lander(tmp_path, one_server)
    app.land_next()
    earlier = one_server.log.read_bytes()
    app.land_next(2)
    one_server.kill()
    one_server.log.write_bytes(earlier)
    one_server.start()

    with pytest.raises(LedgerWentBackError):
        app.land_next()

    app.view = app.target.read_ledger()  # as a stream does, which then reads from there
    assert app.next_offset == BATCH
    app.land_next(2)
    assert_counted(one_server, app, 3 * BATCH)


def test_counters_of_a_commit_that_did_not_end_are_left_to_a_person(one_server: RedisServer, tmp_path: Path) -> None:
    app = lander(tmp_path, one_server)
    app.land_next()
    client = one_server.client()
    client.hset(f"lakebound:ledger:{NAME}", "writing", "a commit")

    with pytest.raises(StoreTornError):
        app.land_next()
    with pytest.raises(StoreTornError):
        lander(tmp_path, one_server, 2)
    assert_counted(one_server, app, BATCH)


def test_rows_of_a_commit_that_did_not_end_are_written_again(one_server: RedisServer, tmp_path: Path) -> None:
    app = lander(tmp_path, one_server, counters=None)
    app.land_next()
    one_server.client().hset(f"lakebound:ledger:{NAME}", "writing", "a commit")
    one_server.client().hset(f"{NAME}:card-3", mapping={"card": "card-3", "number": 31})

    app.land_next()

    assert expected.rows_in_redis(one_server.client(), NAME) == expected.expected_rows(2 * BATCH)
    assert not one_server.client().hexists(f"lakebound:ledger:{NAME}", "writing")


@pytest.mark.parametrize("spoil", ["type", "number"])
def test_what_cannot_be_added_to_is_found_before_anything_is_written(
    spoil: str, one_server: RedisServer, tmp_path: Path
) -> None:
    app = lander(tmp_path, one_server)
    app.land_next()
    client, key = one_server.client(), f"{NAME}:card-3"
    if spoil == "type":
        client.delete(key)
        client.set(key, "somebody else's")
    else:
        client.hset(key, mapping=dict.fromkeys(map(str, client.hkeys(key)), "x"))  # type: ignore[arg-type]
        for field in client.hkeys(key):  # type: ignore[union-attr]
            client.hset(key, field, "x")
        second = app.first_second + BATCH
        for begin in range(second - 10, second + BATCH + 10):
            client.hset(key, f"1h:{begin}:count", "x")
    before = dump(one_server)

    with pytest.raises(CommitFailedError, match=r"not a whole number|not a hash"):
        app.land_next()
    assert dump(one_server) == before


@pytest.mark.parametrize("trouble", ["full memory", "demoted"])
def test_a_server_that_takes_no_writes_is_waited_for(trouble: str, server: RedisServer, tmp_path: Path) -> None:
    app = lander(tmp_path, server)
    app.land_next()
    client = server.client()
    if trouble == "demoted":
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
    else:
        client.config_set("maxmemory", "1")

    with pytest.raises(CommitUnknownError, match="READONLY" if trouble == "demoted" else "OOM"):
        app.land_next()
    with pytest.raises(StoreUnavailableError, match="replica" if trouble == "demoted" else "OOM"):
        app.target.check()  # as a start does
    assert app.target.read_ledger().entry is not None, "reads are answered"
    with pytest.raises(StoreUnavailableError, match="replica" if trouble == "demoted" else "OOM: its memory is full"):
        app.target.advice()  # as the doctor does

    client.config_set("maxmemory", "0")
    client.execute_command("REPLICAOF", "NO", "ONE")
    app.view = app.target.read_ledger()
    app.land_next()
    assert_counted(server, app, 2 * BATCH)


def test_a_batch_adds_to_thousands_of_counters_of_one_key(server: RedisServer) -> None:
    sums, now, minutes = [f"s{number}" for number in range(8)], int(time.time()), 1000
    login = {"host": "127.0.0.1", "port": PostgreSQLProxy(server).port}
    counters = {"time": "paid_at", "windows": {"1000m": "1m"}, "sums": sums}
    spec = ToStoreSpec.model_validate({"name": NAME, "key": "card", "redis": login, "counters": counters})
    seconds = [now - 60 * number for number in range(minutes)]
    times = pa.array([second * 1_000_000 for second in seconds], pa.timestamp("us", tz="UTC"))
    rows = pa.table({"card": ["a"] * minutes, "paid_at": times, **{name: [int(name[1:])] * minutes for name in sums}})
    store, commits = connect_store(spec, "to_stores[0]"), [None, "first", "second"]

    for before, commit in itertools.pairwise(commits):
        what = StoreCommit(expected=before, epoch=1, commit=str(commit), pipeline="p", value=b"{}", now_ms=now * 1000)
        store.commit(what, counter_changes(spec, rows, now))

    store.close()
    parts = {"count": 2, **{name: 2 * int(name[1:]) for name in sums}}
    counted = {f"1000m:{second - second % 60}:{what}": value for second in seconds for what, value in parts.items()}
    held: Any = server.client().hgetall(f"{NAME}:a")
    assert {field.decode(): int(value) for field, value in held.items()} == counted
    assert len(counted) == 9000


def dump(server: RedisServer) -> dict[bytes, Any]:
    keys: Any = server.client().keys("*")
    return {key: server.client().dump(key) for key in keys}


def test_a_store_with_keys_and_without_an_entry_is_refused(one_server: RedisServer, tmp_path: Path) -> None:
    one_server.client().hset(f"{NAME}:card-1", "card", "card-1")
    with pytest.raises(StoreNotEmptyError):
        lander(tmp_path, one_server)


def test_a_server_that_would_evict_the_ledger_or_a_user_without_rights_is_refused(
    one_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = one_server.client()
    client.config_set("maxmemory", "100mb")
    client.config_set("maxmemory-policy", "allkeys-lru")
    with pytest.raises(StoreRefusedError, match="evicts any key"):
        lander(tmp_path, one_server)
    client.config_set("maxmemory", "0")
    monkeypatch.setenv("LAKEBOUND_SECRET_OF_REDIS", "hidden")
    client.execute_command("ACL", "SETUSER", "reader", "on", ">hidden", f"~{NAME}:*", "~lakebound:*", "+@all", "-hincrby")
    own = {"username": "reader", "password": {"env": "LAKEBOUND_SECRET_OF_REDIS"}}
    login = {"host": "127.0.0.1", "port": PostgreSQLProxy(one_server).port, **own}
    with pytest.raises(StoreRefusedError, match="refuses a command") as refused:
        lander(tmp_path, one_server, redis=login)
    assert "hidden" not in str(refused.value)
    assert dump(one_server) == {}


def test_old_buckets_are_removed_and_a_card_that_rests_vanishes(one_server: RedisServer, tmp_path: Path) -> None:
    (tmp_path / "first_second").write_text(str(int(time.time()) - 58))
    app = lander(tmp_path, one_server, counters={"time": "paid_at", "windows": {"1m": "1s", "1h": "1m"}})
    app.land(0, 7)
    client, key = one_server.client(), f"{NAME}:card-0"
    lived = set(client.hkeys(key))  # type: ignore[arg-type]
    assert any(field.startswith(b"1m:") for field in lived)
    assert 3500_000 < client.pttl(key) <= 3_720_000  # type: ignore[operator]
    deadline = time.time() + 4
    while time.time() < deadline:  # the first bucket's time passes, by the clock of the machine
        time.sleep(0.2)

    app.land(7, 70)

    kept = {field for field in client.hkeys(key) if field.startswith(b"1m:")}  # type: ignore[union-attr]
    assert min(int(field.split(b":")[1]) for field in kept) > time.time() - 63
    assert not any(field.endswith(b":%d:count" % app.first_second) and field.startswith(b"1m:") for field in kept)
