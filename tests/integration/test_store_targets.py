"""A store gets each record's effect once, whatever happens to its writer: against real servers, judged without Lakebound."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support.catalogs.postgresql import PASSWORD, USER, PostgreSQL, PostgreSQLProxy
from tests.support.forked_python import run_forked
from tests.support.stores import expected, landing
from tests.support.stores.landing import BATCH, StoreLander
from tests.support.stores.redis_server import RedisServer, running_redis
from tests.support.streams.long_form import LONG_FORM, each_value_once

from lakebound.errors import (
    CommitRefusedError,
    ForeignTableError,
    LeaseLostError,
    StoreLedgerLostError,
    StoreNotEmptyError,
    StoreRefusedError,
    TableMismatchError,
)
from lakebound.spec.to_stores import ToStoreSpec

pytestmark = [pytest.mark.integration, each_value_once]

SECRET = "LAKEBOUND_SECRET_OF_STORES"
WINDOWS = {"1h": "5s", "24h": "15m"}
BUCKETS = {3600: 5, 86_400: 900}
SECONDS = {"1h": 3600, "24h": 86_400}
"""Long enough that no bucket expires that a test counts on."""
STEPS = ("store_changes_made", "store_begun", "store_rows_sent", "store_ledger_sent", "after_commit/{}")
ROWS_AND_COUNTERS = pytest.mark.parametrize("what", ["rows", "counters"])


@dataclass
class World:
    """A store on a server of its own kind, and the independent view of it.

    Attributes:
        spec: The store.
        proxy: Before the server.
        read: What is in it, as the oracle sees it.
        home: Folder of its applications.
        forget_ledger: Deletes its ledger, as somebody does by hand.
    """

    spec: ToStoreSpec
    proxy: PostgreSQLProxy
    read: Callable[[], Any]
    home: Path
    first_second: int
    forget_ledger: Callable[[], Any]

    def assert_holds(self, end: int) -> None:
        """Check that it holds the effect of the records before ``end``, each once."""
        if self.spec.counters is None:
            assert self.read() == expected.expected_rows(end)
        else:
            assert self.read() == expected.expected_counts(end, self.first_second, BUCKETS)

    def run(self, epoch: int, batches: int | str, faults: str) -> int:
        """Run an application of its own process group to its end: its exit code."""
        command = [landing.__file__, str(self.home), self.spec.model_dump_json(), str(epoch), str(batches)]
        return run_forked(command, {**os.environ, "LAKEBOUND_FAULTS": faults}, self.home / "log", timeout_seconds=120)


@pytest.fixture(scope="module")
def redis_server() -> Iterator[RedisServer]:
    with running_redis() as server:
        yield server


@pytest.fixture(params=["postgres", "redis"])
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> Iterator[World]:
    first_second = int(time.time()) - 600
    (tmp_path / "first_second").write_text(str(first_second))
    monkeypatch.setenv(SECRET, PASSWORD)
    name = f"cards_{time.monotonic_ns()}"
    more = {"counters": {"time": "paid_at", "windows": WINDOWS, "sums": ["amount"]}} if what == "counters" else {}
    if request.param == "redis":
        redis_server: RedisServer = request.getfixturevalue("redis_server")
        proxy, client = PostgreSQLProxy(redis_server), redis_server.client()
        login = {"redis": {"host": "127.0.0.1", "port": proxy.port}}
        read: Callable[[], Any] = lambda: (  # noqa: E731
            expected.counts_in_redis(client, name, SECONDS) if more else expected.rows_in_redis(client, name)
        )
        yield World(
            ToStoreSpec.model_validate({"name": name, "key": "card", **login, **more}),
            proxy,
            read,
            tmp_path,
            first_second,
            lambda: client.delete(f"lakebound:ledger:{name}"),
        )
    else:
        server: PostgreSQL = request.getfixturevalue("postgresql")
        proxy, database = PostgreSQLProxy(server), server.new_database()
        own = psycopg.connect(
            host=os.path.dirname(server.socket), user=USER, password=PASSWORD, dbname=database, autocommit=True
        )
        where = {"host": "127.0.0.1", "port": proxy.port, "database": database, "username": USER, "password": {"env": SECRET}}
        read = lambda: expected.counts_in_postgres(own, name) if more else expected.rows_in_postgres(own, name)  # noqa: E731
        yield World(
            ToStoreSpec.model_validate({"name": name, "key": "card", "postgres": where, **more}),
            proxy,
            read,
            tmp_path,
            first_second,
            lambda: own.execute("DELETE FROM lakebound_ledger WHERE target = %s", [f"postgres:{name}"]),
        )
        own.close()
    proxy.close()


@pytest.mark.parametrize("what", ["counters"])  # of which each record shows that it was counted once
def test_killed_at_each_step_of_a_commit_every_record_counts_once(world: World, what: str) -> None:
    steps = [step.format(world.spec.format) for step in STEPS if world.spec.postgres is not None or step != "store_ledger_sent"]
    for epoch, step in enumerate(steps, 1):
        # In the second batch: genesis and open pass the steps, too.
        nth = 2 if step.startswith("after_commit") else (4 if epoch == 1 else 3)
        assert world.run(epoch, 3, f"kill@{step}#{nth}") == -signal.SIGKILL, f"not killed at {step}"

    last = StoreLander(world.home, world.spec, len(steps) + 1)
    # One batch of each application, and the second of those that were killed after their commit.
    after = 1 if world.spec.postgres is not None else 2
    assert last.next_offset == BATCH * (len(steps) + after)
    last.land_next()
    world.assert_holds(last.next_offset)
    assert last.target.totals is not None
    assert last.target.totals.rows == last.next_offset


@pytest.mark.parametrize("what", ["counters"])
def test_a_ledger_that_vanishes_while_its_application_runs_is_not_an_empty_store(world: World, what: str) -> None:
    app = StoreLander(world.home, world.spec, 1)
    app.land_next(2)
    world.forget_ledger()
    with pytest.raises(StoreLedgerLostError, match="contained commit"):
        app.land_next()
    with pytest.raises(StoreLedgerLostError):
        app.target.read_ledger()
    world.assert_holds(2 * BATCH)
    with pytest.raises(StoreNotEmptyError):
        StoreLander(world.home, world.spec, 2)


@pytest.mark.parametrize("what", ["rows"])
@pytest.mark.parametrize("seed", range(200 if LONG_FORM else 4))
def test_rows_and_tombstones_fold_to_the_newest_of_each_key_across_restarts_replays_and_cuts(
    world: World, what: str, seed: int
) -> None:
    dice = random.Random(seed)
    history = [(f"card-{dice.randrange(5)}", None if dice.random() < 0.4 else number) for number in range(120)]
    cuts = [b"COMMIT"] if world.spec.postgres is not None else [b"EVAL"]
    epoch, app, stale = 1, StoreLander(world.home, world.spec, 1), None
    while app.next_offset < len(history):
        step = dice.choice(["land", "land", "restart", "answer lost", "not arrived", "zombie"])
        if step == "restart":
            epoch += 1
            stale, app = app, StoreLander(world.home, world.spec, epoch)
        if step == "answer lost":
            world.proxy.cut_after = dice.choice(cuts)
        elif step == "not arrived":
            world.proxy.cut_before = dice.choice(cuts)
        end = min(len(history), app.next_offset + dice.randint(1, 12))
        if step == "zombie" and stale is not None and stale.next_offset < end:
            # It holds itself for the owner, and lands again what is landed: an older tombstone among it.
            stale.lease.write_text(str(stale.epoch))
            with pytest.raises(LeaseLostError):
                stale.land_history(history, end)
            app.lease.write_text(str(app.epoch))
        app.land_history(history, end)
        world.proxy.cut_after = world.proxy.cut_before = None
        assert world.read() == expected.folded(history[:end]), (seed, step, end)

    app.target.empty()
    again = StoreLander(world.home, world.spec, epoch + 1)
    again.land_history(history, len(history))
    assert world.read() == expected.folded(history), "a store that is built again has no key that went"


@pytest.mark.parametrize("what", ["rows"])
def test_rows_that_no_entry_counts_are_not_taken_for_tombstones(world: World, what: str) -> None:
    app = StoreLander(world.home, world.spec, 1)
    with pytest.raises(TableMismatchError, match="2 of its 1 rows are on this machine"):
        app._commit(app.write(0, 2), app._draft("land", 0, 1))
    assert world.read() == {}


@pytest.mark.parametrize("what", ["rows"])
def test_rows_that_waited_for_a_commit_do_not_stay(world: World, what: str) -> None:
    app = StoreLander(world.home, world.spec, 1)
    world.proxy.cut_after = b"COMMIT" if world.spec.postgres is not None else b"EVAL"
    app.land_next()
    app.land_next()
    assert app.next_offset == 2 * BATCH and app.waiting == []
    app.write(40, 50)
    assert len(app.waiting) == 1
    app.target.remove_staged()
    assert app.waiting == []


@ROWS_AND_COUNTERS
@pytest.mark.parametrize("was_done", [True, False])
def test_after_an_unknown_outcome_the_ledger_decides(was_done: bool, world: World, what: str) -> None:
    app = StoreLander(world.home, world.spec, 1)
    app.land(0, 10)
    cut = b"COMMIT" if world.spec.postgres is not None else b"EVAL"
    if was_done:
        world.proxy.cut_after = cut
    else:
        world.proxy.cut_before = cut

    committed = app.land(10, 20)

    assert (world.proxy.cut_after, world.proxy.cut_before) == (None, None), "nothing was cut"
    assert committed.attempts == (1 if was_done else 2)
    app.land(20, 30)
    world.assert_holds(30)


@ROWS_AND_COUNTERS
def test_a_zombie_is_refused_and_changes_nothing(world: World, what: str) -> None:
    zombie = StoreLander(world.home, world.spec, 1)
    zombie.land(0, 10)
    successor = StoreLander(world.home, world.spec, 2)
    successor.land(10, 20)

    with pytest.raises(LeaseLostError):
        zombie.land(10, 20)
    # A zombie that holds itself for the owner is refused by the store.
    zombie.lease.write_text("1")
    with pytest.raises(LeaseLostError):
        zombie.land(10, 20)
    zombie.lease.write_text("2")
    assert successor.land(20, 30).attempts == 1
    world.assert_holds(30)


@ROWS_AND_COUNTERS
def test_who_only_looks_changes_nothing_and_another_pipeline_is_refused(world: World, what: str) -> None:
    app = StoreLander(world.home, world.spec, 1)
    app.land(0, 10)

    with pytest.raises(ForeignTableError):
        StoreLander(world.home, world.spec, 5, pipeline="another")
    world.home.joinpath("lease").write_text("1")
    assert [found.entry.kind for found in app.target.entries()] == ["land"]
    with world.proxy.away(), pytest.raises(Exception, match="does not answer"):
        app.target.read_ledger()
    assert app.target.read_ledger() == app.view
    assert app.land(10, 20).attempts == 1
    world.assert_holds(20)


@pytest.mark.parametrize("landed", [0, 10])
@pytest.mark.parametrize("schema", ["", "public."])
def test_one_database_behind_two_addresses_is_one_store_and_the_refusal_names_its_pipeline(
    postgresql: PostgreSQL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: str, landed: int
) -> None:
    monkeypatch.setenv(SECRET, PASSWORD)
    login = {"database": postgresql.new_database(), "username": USER, "password": {"env": SECRET}}
    one, other = PostgreSQLProxy(postgresql), PostgreSQLProxy(postgresql)

    def store(name: str, host: str, port: int) -> ToStoreSpec:
        return ToStoreSpec.model_validate({"name": name, "key": "card", "postgres": {**login, "host": host, "port": port}})

    try:
        app = StoreLander(tmp_path, store("cards", "127.0.0.1", one.port), 1)
        if landed:
            app.land(0, landed)
        with pytest.raises((ForeignTableError, StoreRefusedError), match=r"pipeline 'payments'"):
            StoreLander(tmp_path, store(f"{schema}cards", "localhost", other.port), 2, pipeline="another")
        app.lease.write_text("1")
        assert app.land(landed, landed + 10).attempts == 1
    finally:
        one.close()
        other.close()


@ROWS_AND_COUNTERS
def test_a_store_that_is_built_again_is_emptied_to_its_end_before_anything_is_written(world: World, what: str) -> None:
    app = StoreLander(world.home, world.spec, 1)
    app.land_next(2)
    assert world.run(1, "empty", "kill@store_ledger_gone") == -signal.SIGKILL
    world.assert_holds(2 * BATCH)
    if world.spec.redis is not None:
        with pytest.raises(StoreNotEmptyError):
            StoreLander(world.home, world.spec, 2)
        app.lease.write_text("1")
    held = app.target.held()
    assert held > 0

    app.target.empty()
    assert app.target.held() == 0
    with pytest.raises(CommitRefusedError):
        app.target.commit([], app.view.entry)
    last = StoreLander(world.home, world.spec, 3)
    assert last.next_offset == 0
    last.land_next(3)
    world.assert_holds(3 * BATCH)
