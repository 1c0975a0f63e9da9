"""What the errors of a store's server mean: what passes is waited for, and what a person has to change is refused."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pyarrow as pa
import pytest
import redis
from redis._parsers.base import BaseParser

from lakebound.errors import LakeboundError, StoreRefusedError, StoreUnavailableError
from lakebound.landing.to_stores import redis_script
from lakebound.landing.to_stores.postgres_store import PostgresStore, StoreCommitError
from lakebound.landing.to_stores.redis_store import RedisStore
from lakebound.landing.to_stores.store import StoreCommit
from lakebound.landing.to_stores.store_rows import Changes
from lakebound.spec.to_stores import ToStoreSpec
from lakebound.tables.outages import passes

POSTGRES = {"host": "db", "database": "shop", "username": "lake", "password": {"env": "LAKEBOUND_SECRET_X"}}
IN_A_SCRIPT = "ERR Error running script (call to f_1d2e): @user_script:47: @user_script: 47: "
"""How Redis 6.2 begins what it says of a script; the command's own answer stands behind it, with a minus."""


def store(**where: Any) -> ToStoreSpec:
    return ToStoreSpec.model_validate({"name": "cards", "key": "card", **where})


def redis_store() -> RedisStore:
    return RedisStore(store(redis={"host": "cache"}), "to_stores[0]")


@pytest.mark.parametrize(
    "answer",
    [
        "OOM command not allowed when used memory > 'maxmemory'. script: 1d2e, on @user_script:47.",
        "READONLY You can't write against a read only replica. script: 1d2e, on @user_script:47.",
        "MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist on disk.",
        "NOREPLICAS Not enough good replicas to write.",
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        "CLUSTERDOWN The cluster is down",
        "TRYAGAIN Multiple keys request during rehashing of slot",
        "LOADING Redis is loading the dataset in memory",
        "BUSY Redis is busy running a script.",
        "ERR max number of clients reached",
        f"{IN_A_SCRIPT}-OOM command not allowed when used memory > 'maxmemory'.",
        f"{IN_A_SCRIPT}-MISCONF Redis is configured to save RDB snapshots.",
        f"{IN_A_SCRIPT}-NOREPLICAS Not enough good replicas to write.",
        f"{IN_A_SCRIPT}-READONLY You can't write against a read only replica.",
    ],
)
def test_what_a_redis_cannot_do_just_now_is_waited_for(answer: str) -> None:
    told = redis_store()._told(BaseParser.parse_error(answer))
    assert isinstance(told, StoreUnavailableError) and passes(told)
    code = answer.removeprefix(IN_A_SCRIPT).removeprefix("-").split()[0]
    assert code in ("ERR", "LOADING") or code in str(told), "the code says more than the words behind it"


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        ("NOPERM this user has no permissions to run the 'eval' command", "refuses the login or a command: NOPERM"),
        (f"{IN_A_SCRIPT}-NOPERM this user has no permissions to run the 'hset' command", "refuses the login or a command"),
        ("WRONGPASS invalid username-password pair or user is disabled.", "refuses the login"),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", "refuses the script: WRONGTYPE"),
        ("BUSYKEY Target key name already exists.", "refuses the script: BUSYKEY"),
        ("ERR Error running script: too many results to unpack", "refuses the script: Error running script"),
    ],
)
def test_what_a_person_has_to_change_is_refused(answer: str, what: str) -> None:
    told = redis_store()._told(BaseParser.parse_error(answer))
    assert isinstance(told, StoreRefusedError) and what in str(told)


def test_a_redis_that_closes_the_connection_is_waited_for() -> None:
    told = redis_store()._told(redis.exceptions.ConnectionError("Connection closed by server."))
    assert isinstance(told, StoreUnavailableError) and "Connection closed by server." in str(told)


FULL = {"maxmemory": 100, "maxmemory_policy": "noeviction", "used_memory": 150, "mem_not_counted_for_evict": 10}
LOGGED = {"aof_enabled": 1, "aof_last_write_status": "ok"}


class Info:
    """A server that answers one command."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self._facts = facts

    def info(self) -> dict[str, Any]:
        return self._facts

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    ("facts", "named"),
    [
        (LOGGED | FULL, "OOM: its memory is full (maxmemory 100 bytes)"),
        # Of keys that do not expire none may go.
        (LOGGED | FULL | {"maxmemory_policy": "volatile-ttl"}, "OOM: its memory is full (maxmemory 100 bytes)"),
        (LOGGED | {"aof_last_write_status": "err"}, "MISCONF: it cannot write its log"),
        (LOGGED | {"role": "slave"}, "the server is a replica"),
    ],
)
def test_a_redis_that_takes_no_writes_is_named_before_anything_is_written(facts: dict[str, Any], named: str) -> None:
    found = redis_store()
    found._client = Info(facts)  # type: ignore[assignment]
    with pytest.raises(StoreUnavailableError, match=re.escape(named)):
        found.advice()


@pytest.mark.parametrize(
    "facts",
    [
        LOGGED | FULL | {"used_memory": 110},
        LOGGED | FULL | {"maxmemory": 0},
        LOGGED,
    ],
    ids=["not counted", "unbounded", "empty"],
)
def test_a_redis_that_has_room_is_not_called_full(facts: dict[str, Any]) -> None:
    found = redis_store()
    found._client = Info(facts)  # type: ignore[assignment]
    assert found.advice() is None


@pytest.mark.parametrize(
    ("state", "kind"),
    [("25006", StoreUnavailableError), ("40001", StoreUnavailableError), ("22003", StoreCommitError)],
)
def test_a_postgresql_that_was_demoted_is_waited_for(state: str, kind: type[LakeboundError]) -> None:
    error = psycopg.errors.lookup(state)("cannot execute SELECT FOR UPDATE in a read-only transaction")
    told = PostgresStore(store(postgres=POSTGRES), "to_stores[0]")._told(error)
    assert isinstance(told, kind) and passes(told) == (kind is StoreUnavailableError)


@pytest.mark.parametrize(
    ("bound", "setting"), [("MOST_BYTES", "client-query-buffer-limit"), ("MOST_ARGUMENT_BYTES", "proto-max-bulk-len")]
)
def test_a_batch_that_a_redis_would_answer_by_closing_the_connection_is_refused(
    bound: str, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_script, bound, 10 * 2**20)
    value = "x" * (6 * 2**20)
    rows = pa.table({"card": ["a", "b"], "note": [value, value]})
    what = StoreCommit(expected=None, epoch=1, commit="c", pipeline="payments", value=b"{}", now_ms=0)
    with pytest.raises(StoreRefusedError, match=rf"12 MiB .* takes 10 MiB \({setting}\); lower limits.max_records_per_batch"):
        redis_store().commit(what, Changes(rows=rows))
