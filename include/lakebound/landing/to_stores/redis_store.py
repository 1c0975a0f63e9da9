"""A store in Redis or Valkey: rows or counters, and the ledger, in one script."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from lakebound import faults
from lakebound.errors import (
    BadEntryError,
    CommitRefusedError,
    LakeboundError,
    StoreNotEmptyError,
    StoreRefusedError,
    StoreTornError,
    StoreUnavailableError,
)
from lakebound.first_line import first_line
from lakebound.landing.to_stores.redis_script import BEGIN, PROBE, SCRIPT, arguments, ledger_key, row_key, size_problem
from lakebound.landing.to_stores.shape import StoreShape
from lakebound.landing.to_stores.store import Held, StoreCommit
from lakebound.landing.to_stores.store_rows import Changes
from lakebound.landing.to_stores.unshaped import (
    Buckets,
    bucket_contradiction,
    field_contradiction,
    key_contradiction,
    row_contradiction,
)
from lakebound.landing.to_topics.ledger_record import decode_record
from lakebound.ledger.entry import new_commit_id
from lakebound.spec.named_files import authority_path
from lakebound.spec.secret_uses import server_of_login
from lakebound.spec.secrets import read_secret
from lakebound.spec.to_stores import ToStoreSpec

_CONNECT_SECONDS = 10.0
_ANSWER_SECONDS = 60.0
"""A script with a million keys takes some seconds."""
_KEYS_AT_ONCE = 10_000
_KEYS_LOOKED_AT = 1000
"""At once; a key of counters may have some thousand fields."""
_PROBE = b"\x00lakebound-probe"
_CODE = r"(?:^|(?<=\s)-)(?:{})\b"
"""Where an answer's code stands: at its begin, or, in what Redis 6.2 says of a script, behind a minus in the middle."""
_OF_THE_LOGIN = re.compile(_CODE.format("NOAUTH|WRONGPASS|NOPERM"))
_PASSING = re.compile(
    _CODE.format("LOADING|BUSY|MASTERDOWN|NOREPLICAS|TRYAGAIN|CLUSTERDOWN|OOM|MISCONF|READONLY|UNKILLABLE|max number")
)
"""What an answer says that means: not now. Of OOM and MISCONF a person may have to hear; until then it is waited. READONLY is a
server that was demoted: its name may soon lead to the new primary."""
_CODES: dict[type[Exception], str] = {
    redis.exceptions.OutOfMemoryError: "OOM",
    redis.exceptions.ReadOnlyError: "READONLY",
    redis.exceptions.MasterDownError: "MASTERDOWN",
    redis.exceptions.ClusterDownError: "CLUSTERDOWN",
    redis.exceptions.TryAgainError: "TRYAGAIN",
    redis.exceptions.NoPermissionError: "NOPERM",
}
"""The codes that redis-py takes off an answer, by its classes. MASTERDOWN is a kind of CLUSTERDOWN, and comes before it."""


class RedisStore:
    """The keys of one name in a Redis, and their ledger."""

    def __init__(self, spec: ToStoreSpec, field: str) -> None:
        """Connect to nothing yet.

        Args:
            spec: The store.
            field: Where the pipeline's YAML names it, for messages.
        """
        self._spec = spec
        self._field = field
        self._client: redis.Redis | None = None
        self._ledger = ledger_key(spec)

    def newest(self, *, settled: bool) -> Held | None:
        """Return the newest entry, as ``TargetStore.newest`` says. A script that is still under way would be refused."""
        with self._answers() as client:
            kind = client.type(self._ledger)
            if kind == b"none":
                return None
            if kind != b"hash":
                raise self._refused(f"its ledger {self._ledger} is not a hash: somebody else has written it")
            found: Any = client.hmget(self._ledger, ["commit", "version", "entry", "at_ms", "writing"])
        commit, version, entry, at, writing = found
        if writing is not None and self._spec.counters is not None:
            raise StoreTornError(self._spec.id, self._spec.place, writing.decode(errors="replace"))
        if commit is None:
            return None  # the first commit began, and did not end
        try:
            numbers = int(version), int(at)
        except (TypeError, ValueError) as exc:
            raise BadEntryError(f"{self._ledger} at {self._spec.place}", "its version or time is not a number") from exc
        return Held(commit.decode(), decode_record(entry, *numbers, f"{self._ledger} at {self._spec.place}"))

    def check(self, schema: pa.Schema) -> None:
        """Check the server and, by a script without effect, what the user may do; see ``TargetStore.check``."""
        self.advice()
        with self._answers() as client:
            failed: Any = client.eval(PROBE, 2, row_key(self._spec, _PROBE), self._ledger)
        if failed:
            answer = first_line(failed.decode(errors="replace"))
            is_passing = _PASSING.search(answer) is not None
            raise self._unavailable(answer) if is_passing else self._refused(f"the server refuses a command: {answer}")

    def contradiction(self, shape: StoreShape, at: int) -> str | None:
        """Look at all keys, as ``TargetStore.contradiction`` says: once, at the first start that notes the shape."""
        if shape.kind == "rows":
            return row_contradiction(shape, self._held_hashes())
        buckets = Buckets()
        for key, fields in self._held_hashes():
            found = key_contradiction(shape, key) or field_contradiction(shape, fields, buckets)
            if found is not None:
                return found
        return bucket_contradiction(shape, buckets, at)

    def advice(self) -> str | None:
        """Return what a person should know of the server's settings, as ``TargetStore.advice`` says."""
        facts: dict[str, Any] = {}
        with self._answers() as client, suppress(redis.exceptions.NoPermissionError):
            facts = client.info()
        return self._judged(facts)

    def server_id(self) -> str:
        """Return the id of the server's process, and the database, as ``TargetStore.server_id`` says."""
        with self._answers() as client:
            told: dict[str, Any] = client.info("server")
        if "run_id" not in told:
            raise self._refused("the server does not say which process it is")
        database = self._spec.redis.database if self._spec.redis is not None else 0
        return f"redis {told['run_id']}/{database}"

    def make(self, schema: pa.Schema) -> str:
        """Look whether there are keys already, as ``TargetStore.make`` says; a name is made up by which the store is known."""
        with self._answers() as client:
            if any(True for _ in client.scan_iter(match=f"{self._spec.name}:*", count=_KEYS_AT_ONCE)):
                raise StoreNotEmptyError(self._spec.id, self._spec.place)
        return new_commit_id()

    def held(self) -> int:
        """Count the keys, as ``TargetStore.held`` says."""
        with self._answers() as client:
            return sum(1 for _ in client.scan_iter(match=f"{self._spec.name}:*", count=_KEYS_AT_ONCE))

    def empty(self) -> str:
        """Delete the ledger, then the keys, as ``TargetStore.empty`` says: keys without a ledger are refused by a start."""
        with self._answers() as client:
            client.delete(self._ledger)
            faults.reach("store_ledger_gone")
            removed = self._remove_keys(client)
        return f"{removed:,} keys and the ledger removed"

    def begin_anew(self, schema: pa.Schema, first: Callable[[str], StoreCommit]) -> str:
        """Put the first entry in the place of the ledger, then delete the keys, as ``TargetStore.begin_anew`` says."""
        self.check(schema)
        what = first(new_commit_id())
        with self._answers() as client:
            client.eval(BEGIN, 1, self._ledger, what.commit, what.epoch, what.value, what.now_ms)
            faults.reach("store_ledger_gone")
            removed = self._remove_keys(client)
        return f"{removed:,} keys and the ledger removed"

    def commit(self, what: StoreCommit, changes: Changes) -> int:
        """Run the script, as ``TargetStore.commit`` says."""
        mode = "rows" if self._spec.counters is None else "counters"
        head = (what.expected or "", what.epoch, what.commit, what.value, what.now_ms, what.now_ms, mode)
        rows = arguments(self._spec, changes)
        given: list[Any] = [*head, *rows]
        faults.reach("store_begun", self._spec.format)
        try:
            with self._answers() as client:
                answer: Any = client.eval(SCRIPT, 1, self._ledger, *given)
        except StoreUnavailableError:
            # A server that takes no more closes the connection; it may be set up to take more than it does by default.
            if (problem := size_problem(rows)) is not None:
                raise self._refused(problem) from None
            raise
        faults.reach("store_rows_sent", self._spec.format)
        said, *told = [part.decode(errors="replace") for part in answer]
        if said == "done":
            return int(told[0])
        raise self._not_done(said, told, what)

    def close(self) -> None:
        """Disconnect."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(redis.RedisError, OSError):
                client.close()

    def _remove_keys(self, client: redis.Redis) -> int:
        removed = 0
        keys = client.scan_iter(match=f"{self._spec.name}:*", count=_KEYS_AT_ONCE)
        while some := list(itertools.islice(keys, _KEYS_LOOKED_AT)):
            removed += int(client.delete(*some))
            faults.reach("store_keys_gone")
        return removed

    def _held_hashes(self) -> Iterator[tuple[bytes, dict[bytes, bytes]]]:
        """Yield the keys without the store's name, and the fields of each."""
        prefix = f"{self._spec.name}:".encode()
        with self._answers() as client:
            keys = client.scan_iter(match=prefix + b"*", count=_KEYS_LOOKED_AT)
            while some := list(itertools.islice(keys, _KEYS_LOOKED_AT)):
                asked = client.pipeline(transaction=False)
                for key in some:
                    asked.hgetall(key)
                for key, fields in zip(some, asked.execute(), strict=True):
                    if fields:  # else it has expired meanwhile
                        yield key.removeprefix(prefix), fields

    def _not_done(self, said: str, told: list[str], what: StoreCommit) -> LakeboundError:
        if said in ("moved", "fenced"):
            now = f"commit {told[0]}" if said == "moved" else f"epoch {told[0]}"
            expected = f"the application (epoch {what.epoch}) expected commit {what.expected}"
            return CommitRefusedError(self._spec.id, f"its ledger now has {now}, but {expected}")
        if said == "torn":
            return StoreTornError(self._spec.id, self._spec.place, told[0])
        # No value of a row is told: the key of a card may be one.
        if said == "spoilt":
            field = told[1]
            return self._refused(f"the field {field} of one of its keys is not a whole number, or is too large to add to")
        return self._refused("one of its keys is not a hash: somebody else has written it")

    def _judged(self, facts: dict[str, Any]) -> str | None:
        """Return what a person should know of the server's settings; raise for what nothing can be kept in."""
        if facts.get("cluster_enabled"):
            raise self._refused("the server is part of a Redis Cluster, in which one script cannot write to all keys")
        if facts.get("role") == "slave":
            # After a switchover it may be a primary again, or its name lead to the new one.
            raise self._unavailable("the server is a replica, and takes no writes; name the primary")
        policy, most = str(facts.get("maxmemory_policy", "noeviction")), int(facts.get("maxmemory", 0))
        if most and policy.startswith("allkeys"):
            raise self._refused(f"it evicts any key when its memory is full (maxmemory-policy {policy}), also the ledger's")
        if (reason := _takes_no_writes(facts)) is not None:
            raise self._unavailable(reason)
        if most and policy != "noeviction" and self._spec.counters is not None:
            return f"it evicts counters when its memory is full (maxmemory-policy {policy}); set noeviction"
        if facts and not facts.get("aof_enabled"):
            return (
                "appendonly is off: a restart loses the writes since the last snapshot, or everything if there is none. "
                "Lakebound reads the lost records from Kafka again, if Kafka still has them"
            )
        return None

    @contextmanager
    def _answers(self) -> Iterator[redis.Redis]:
        """Give the client to the block; the client's errors leave it in Lakebound's words."""
        try:
            yield self._connected()
        except (redis.RedisError, OSError) as exc:
            self.close()
            raise self._told(exc) from exc

    def _connected(self) -> redis.Redis:
        if self._client is None:
            server = self._spec.redis
            assert server is not None
            field, to = f"{self._field}.redis.password", server_of_login(server)
            password = None if server.password is None else read_secret(server.password, field, to)
            tls: dict[str, Any] = {"ssl": True, "ssl_cert_reqs": "required", "ssl_check_hostname": True} if server.tls else {}
            if server.tls_ca_file is not None:
                tls["ssl_ca_certs"] = authority_path(server.tls_ca_file, f"{self._field}.redis.tls_ca_file")
            self._client = redis.Redis(
                host=server.host,
                port=server.port,
                db=server.database,
                username=server.username,
                password=password,
                socket_connect_timeout=_CONNECT_SECONDS,
                socket_timeout=_ANSWER_SECONDS,
                socket_keepalive=True,
                protocol=2,
                # What became of a script whose answer was lost is for the ledger to say.
                retry=Retry(NoBackoff(), 0),
                **tls,
            )
        return self._client

    def _refused(self, reason: str) -> StoreRefusedError:
        return StoreRefusedError(self._spec.id, self._spec.place, reason)

    def _told(self, error: Exception) -> LakeboundError:
        answer = _answer(error)
        is_login = isinstance(error, redis.exceptions.AuthenticationError | redis.exceptions.AuthorizationError)
        if is_login or _OF_THE_LOGIN.search(answer):
            return self._refused(f"the server refuses the login or a command: {answer.partition(',')[0]}")
        is_away = isinstance(error, redis.exceptions.ConnectionError | redis.exceptions.TimeoutError | OSError)
        if is_away or _PASSING.search(answer):
            return self._unavailable(answer)
        return self._refused(f"the server refuses the script: {answer}")

    def _unavailable(self, reason: str) -> StoreUnavailableError:
        return StoreUnavailableError(self._spec.id, self._spec.place, reason)


def _takes_no_writes(facts: dict[str, Any]) -> str | None:
    """Return why a server answers reads alone, as its INFO says it; begins as its answer to a write would."""
    most = int(facts.get("maxmemory", 0))
    # Before it answers, a server evicts what its policy lets it: where it is still too full, no key may go.
    # It does not count its buffers for replicas and its log, either.
    used = int(facts.get("used_memory", 0)) - int(facts.get("mem_not_counted_for_evict", 0))
    if most and used > most:
        return f"OOM: its memory is full (maxmemory {most:,} bytes); it accepts no writes until you add memory or remove keys"
    if facts.get("aof_enabled") and facts.get("aof_last_write_status", "ok") != "ok":
        return "MISCONF: it cannot write its log (a full or broken disk), and takes no writes until it can"
    return None


def _answer(error: Exception) -> str:
    """Return what the server has answered, its code first: redis-py takes it off where it has a class for it."""
    said = first_line(error)
    code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), None)
    return said if code is None or said.startswith(code) else f"{code} {said}"
