"""A store in PostgreSQL: rows or counters, and the ledger's row, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql

from lakebound import faults
from lakebound.errors import CommitRefusedError, LakeboundError, StoreNotEmptyError, StoreRefusedError, StoreUnavailableError
from lakebound.first_line import first_line
from lakebound.landing.to_stores import postgres_statements as statements
from lakebound.landing.to_stores.bucket_counts import BUCKET, KEY, oldest_expired
from lakebound.landing.to_stores.shape import StoreShape
from lakebound.landing.to_stores.store import Held, StoreCommit
from lakebound.landing.to_stores.store_rows import Changes, as_json
from lakebound.landing.to_stores.unshaped import Buckets, bucket_contradiction
from lakebound.landing.to_topics.ledger_record import decode_record
from lakebound.ledger.entry import new_commit_id
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.secret_uses import server_of_login
from lakebound.spec.secrets import read_secret
from lakebound.spec.to_stores import COUNT, ToStoreSpec
from lakebound.storage.postgresql import login, refusal_in

_SESSION = {
    "statement_timeout": "120s",
    # A suspended application must not hold the ledger's row for ever: the server ends its transaction then.
    "idle_in_transaction_session_timeout": "20s",
    "lock_timeout": "40s",
}
_SETTINGS = sql.SQL("SELECT {}").format(sql.SQL(", ").join(sql.SQL("set_config(%s, %s, true)") for _ in _SESSION))
_ROWS_AT_ONCE = 10_000
_EXPIRE_SECONDS = 10
_LOCK_OF_MAKING = 0x1A_EB_0D
"""Key of the advisory lock under which tables are made: two that are made at once collide in PostgreSQL's catalog."""
_PASSING = ("40", "53", "57", "55P03", "25P03", "25006")
"""SQLSTATEs of what passes: conflicts, no resources, an administrator's or a timeout's end, a lock, an idle transaction, and a
server that takes no writes: it was demoted, and its name may soon lead to the new primary."""


class StoreCommitError(LakeboundError):
    """A commit to a store failed for a reason that would come again."""

    def __init__(self, store: str, reason: str) -> None:
        super().__init__(f"store {store}: the commit was not made: {reason}")


class PostgresStore:
    """One table in PostgreSQL, and its row in the table of ledgers."""

    def __init__(self, spec: ToStoreSpec, field: str) -> None:
        """Connect to nothing yet.

        Args:
            spec: The store.
            field: Where the pipeline's YAML names it, for messages.
        """
        self._spec = spec
        self._field = field
        self._connection: psycopg.Connection[Any] | None = None
        self._columns: dict[str, str] = {}
        self._expired_at = 0

    def newest(self, *, settled: bool) -> Held | None:
        """Return the newest entry, as ``TargetStore.newest`` says."""
        with self._transaction() as cursor:
            if not self._has_table(cursor, statements.LEDGER):
                return None
            if settled:
                # Waits for a commit whose answer was lost, and which the server has still to end.
                cursor.execute(statements.named(statements.LOCK, self._spec), (self._spec.id,))
            cursor.execute(statements.named(statements.READ, self._spec), (self._spec.id,))
            found = cursor.fetchone()
            if found is None:
                self._refuse_another_name(cursor)
                return None
        version, commit, _, entry, at, oid = found
        where = f"{statements.LEDGER} at {self._spec.place}, {self._spec.id}"
        record = decode_record(entry.encode(), version, round(at * 1000), where)
        if oid != record.totals.topic_id:
            told = "is gone" if oid is None else "was dropped and created again"
            raise self._refused(f"its table {told}: the rows that the ledger names are lost")
        return Held(commit, record)

    def _refuse_another_name(self, cursor: psycopg.Cursor[Any]) -> None:
        """Raise where the ledger holds the table under its other name: whatever is landed by this one would be landed twice."""
        other = cursor.execute(statements.named(statements.OTHER_NAME, self._spec), (self._spec.id,)).fetchone()
        if other is not None:
            raise self._refused(
                f"pipeline {other[1]!r} writes to its table already, under the name {other[0]}; write that name in this "
                f"pipeline's YAML if it is the same pipeline, or give this one another table"
            )

    def check(self, schema: pa.Schema) -> None:
        """Check the table that is there, as ``TargetStore.check`` says."""
        wanted = statements.table_columns(self._spec, schema)
        with self._transaction() as cursor:
            found = self._found_columns(cursor)
            if found and (problem := statements.column_problem(self._spec, wanted, found)):
                raise self._refused(problem)
            if found:
                self._check_sums(cursor)
                # PostgreSQL itself says whether the columns of the key are unique, and whether the user may write.
                cursor.execute(statements.write(self._spec, wanted), [[] for _ in wanted])

    def contradiction(self, shape: StoreShape, at: int) -> str | None:
        """Look at the buckets, as ``TargetStore.contradiction`` says; columns and primary key were compared by ``check``."""
        if self._spec.counters is None:
            return None
        buckets, sums = Buckets(), statements.added_columns(self._spec)
        with self._transaction() as cursor:
            for seconds, begin, *numbers in cursor.execute(statements.all_buckets(self._spec)).fetchall():
                buckets.add(f"{seconds}s", begin, dict(zip(sums, map(int, numbers), strict=True)))
        return bucket_contradiction(shape, buckets, at)

    def advice(self) -> str | None:
        """There is nothing to be said of a PostgreSQL that answers."""
        return None

    def server_id(self) -> str:
        """Return the system's id, when the server was started, and the database, as ``TargetStore.server_id`` says."""
        with self._transaction() as cursor:
            return f"postgres {self._one(cursor, statements.SERVER_ID.format())}"

    def make(self, schema: pa.Schema) -> str:
        """Make the table and the table of ledgers, as ``TargetStore.make`` says; the table's number is by what it is known."""
        with self._transaction() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK_OF_MAKING,))
            return self._make(cursor, schema)

    def held(self) -> int:
        """Count the rows, as ``TargetStore.held`` says."""
        with self._transaction() as cursor:
            if not self._found_columns(cursor):
                return 0
            if self._has_table(cursor, statements.LEDGER):
                self._refuse_another_name(cursor)
            return int(self._one(cursor, statements.COUNT_ROWS.format(table=statements.table_name(self._spec))))

    def empty(self) -> str:
        """Rename the table and delete the ledger's row, in one transaction, as ``TargetStore.empty`` says."""
        with self._transaction() as cursor:
            done = self._set_aside(cursor)
            faults.reach("store_ledger_gone")
        return done

    def begin_anew(self, schema: pa.Schema, first: Callable[[str], StoreCommit]) -> str:
        """Rename the table, make it anew and write the first entry, in one transaction, as ``TargetStore.begin_anew`` says."""
        with self._transaction() as cursor:
            done = self._set_aside(cursor)
            self._write_ledger(cursor, first(self._make(cursor, schema)))
            faults.reach("store_ledger_gone")
        return done

    def commit(self, what: StoreCommit, changes: Changes) -> int:
        """Commit, as ``TargetStore.commit`` says: the ledger's row is locked first, and compared."""
        with self._transaction() as cursor:
            self._fence(cursor, what)
            faults.reach("store_begun", self._spec.format)
            self._write(cursor, changes)
            faults.reach("store_rows_sent", self._spec.format)
            version = self._write_ledger(cursor, what)
            faults.reach("store_ledger_sent", self._spec.format)
        return version

    def close(self) -> None:
        """Disconnect."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    def _make(self, cursor: psycopg.Cursor[Any], schema: pa.Schema) -> str:
        wanted = statements.table_columns(self._spec, schema)
        if not self._has_table(cursor, statements.LEDGER):
            cursor.execute(statements.named(statements.CREATE_LEDGER, self._spec))
        found = self._found_columns(cursor)
        if not found:
            cursor.execute(statements.create_table(self._spec, wanted))
            if self._spec.counters is not None:
                cursor.execute(statements.create_index(self._spec))
        elif problem := statements.column_problem(self._spec, wanted, found):
            raise self._refused(problem)
        elif self._one(cursor, statements.HAS_ROWS.format(table=statements.table_name(self._spec))):
            raise StoreNotEmptyError(self._spec.id, self._spec.place)
        number = self._one(cursor, sql.SQL("SELECT to_regclass({})::oid::text").format(statements.quoted_text(self._spec)))
        return str(number)

    def _set_aside(self, cursor: psycopg.Cursor[Any]) -> str:
        kept = statements.name_aside(self._spec, new_commit_id())
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK_OF_MAKING,))
        if self._has_table(cursor, statements.LEDGER):
            self._refuse_another_name(cursor)
            cursor.execute(statements.named(statements.FORGET, self._spec), (self._spec.id,))
        if not self._found_columns(cursor):
            return "its ledger removed"
        cursor.execute(statements.rename(self._spec, kept))
        return f"the table renamed to {kept}, and its ledger removed"

    def _fence(self, cursor: psycopg.Cursor[Any], what: StoreCommit) -> None:
        cursor.execute(statements.named(statements.LOCK, self._spec), (self._spec.id,))
        found = cursor.fetchone()
        _, commit, epoch = found if found is not None else (0, None, 0)
        if commit != what.expected or epoch > what.epoch:
            reason = (
                f"its ledger now has commit {commit} of epoch {epoch}, but the application (epoch {what.epoch}) expected "
                f"commit {what.expected}"
            )
            raise CommitRefusedError(self._spec.id, reason)

    def _write(self, cursor: psycopg.Cursor[Any], changes: Changes) -> None:
        spec = self._spec
        if changes.gone is not None and len(changes.gone):
            kind = statements.type_of(changes.gone.type) or "text"
            cursor.execute(statements.delete(spec, kind), (changes.gone.to_pylist(),))
        if changes.rows is not None and changes.rows.num_rows:
            columns = statements.table_columns(spec, changes.rows.schema.append(pa.field(KAFKA_COLUMN, pa.null())))
            self._insert(cursor, columns, changes.rows)
        for window, counts in changes.counts.items():
            assert spec.counters is not None
            seconds = spec.counters.seconds[window][0]
            named = {
                spec.key: counts[KEY],
                statements.WINDOW: pa.chunked_array([pa.repeat(pa.scalar(seconds, pa.int32()), counts.num_rows)]),
                statements.BUCKET: counts[BUCKET].cast(pa.timestamp("s", tz="UTC")),
                **{name: counts[name] for name in (COUNT, *spec.counters.sums)},
            }
            key_kind = statements.type_of(counts[KEY].type) or "text"
            kinds = {statements.WINDOW: "integer", statements.BUCKET: "timestamp with time zone"}
            self._insert(cursor, {name: kinds.get(name, "bigint") for name in named} | {spec.key: key_kind}, pa.table(named))
        self._expire(cursor, changes.now)

    def _insert(self, cursor: psycopg.Cursor[Any], columns: dict[str, str], rows: pa.Table) -> None:
        statement = statements.write(self._spec, columns)
        for start, end in statements.in_chunks(rows.num_rows, _ROWS_AT_ONCE):
            cursor.execute(statement, [_values(rows[name].slice(start, end - start)) for name in columns])

    def _expire(self, cursor: psycopg.Cursor[Any], now: int) -> None:
        counters = self._spec.counters
        if counters is None or now - self._expired_at < _EXPIRE_SECONDS:
            return
        for window, (seconds, _) in counters.seconds.items():
            cursor.execute(statements.expire(self._spec), (seconds, oldest_expired(counters, window, now)))
        self._expired_at = now

    def _write_ledger(self, cursor: psycopg.Cursor[Any], what: StoreCommit) -> int:
        at, entry = what.now_ms / 1000, what.value.decode()
        if what.expected is None:
            given: tuple[Any, ...] = (self._spec.id, what.pipeline, what.epoch, what.commit, entry, at)
            cursor.execute(statements.named(statements.FIRST, self._spec), given)
        else:
            given = (what.pipeline, what.epoch, what.commit, entry, at, self._spec.id, what.expected, what.epoch)
            cursor.execute(statements.named(statements.NEXT, self._spec), given)
        if cursor.rowcount != 1:
            raise CommitRefusedError(self._spec.id, "another commit was made in between")
        return int(self._one(cursor, statements.named(statements.LOCK, self._spec), self._spec.id))

    def _has_table(self, cursor: psycopg.Cursor[Any], name: str) -> bool:
        path = ".".join(f'"{part}"' for part in (*self._spec.name.split(".")[:-1], name))
        return self._one(cursor, sql.SQL("SELECT to_regclass({})::oid").format(sql.Literal(path))) is not None

    def _found_columns(self, cursor: psycopg.Cursor[Any]) -> dict[str, str]:
        return {name: kind for name, kind, _ in cursor.execute(statements.named(statements.COLUMNS, self._spec)).fetchall()}

    def _check_sums(self, cursor: psycopg.Cursor[Any]) -> None:
        """Raise where a bucket holds NULL instead of a sum: somebody has added the column, and readers would see too little."""
        table, added = statements.table_name(self._spec), statements.added_columns(self._spec)
        found = cursor.execute(statements.named(statements.COLUMNS, self._spec)).fetchall()
        for column in [name for name, _, is_never_null in found if name in added and not is_never_null]:
            if self._one(cursor, statements.HAS_NULL.format(table=table, column=sql.Identifier(column))):
                raise self._refused(
                    f"its column {column} holds NULL in some buckets, whose sums are not known. Build the store again; or let "
                    f"these sums begin now: UPDATE … SET {column} = 0 WHERE {column} IS NULL, and then ALTER TABLE … ALTER "
                    f"COLUMN {column} SET NOT NULL"
                )

    @staticmethod
    def _one(cursor: psycopg.Cursor[Any], statement: sql.Composed, *given: Any) -> Any:
        found = cursor.execute(statement, given or None).fetchone()
        return None if found is None else found[0]

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Cursor[Any]]:
        """Open a transaction for the block. After an error the connection is given up: nobody knows what it is in."""
        try:
            connection = self._connected()
            with connection.cursor() as cursor:
                # For this transaction alone: a pooler gives the next one another connection.
                cursor.execute(_SETTINGS, [text for setting in _SESSION.items() for text in setting])
                yield cursor
            connection.commit()
        except psycopg.Error as exc:
            self.close()
            raise self._told(exc) from exc
        except BaseException:
            self.close()
            raise

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            database = self._spec.postgres
            assert database is not None
            field = f"{self._field}.postgres"
            arguments = login(database, field)
            password = read_secret(database.password, f"{field}.password", server_of_login(database))
            self._connection = psycopg.connect(**arguments, password=password)
        return self._connection

    def _refused(self, reason: str) -> StoreRefusedError:
        return StoreRefusedError(self._spec.id, self._spec.place, reason)

    def _told(self, error: psycopg.Error) -> LakeboundError:
        """Return what an error of the driver means, without values of rows: those of wrong data quote them."""
        state, reason, found = error.sqlstate or "", first_line(error), refusal_in(error)
        if found == "away" or state.startswith(_PASSING):
            return StoreUnavailableError(self._spec.id, self._spec.place, reason)
        if found == "login":
            return self._refused(f"the server refuses the login: {reason}")
        if found == "database":
            return self._refused(f"the server has no such database for this user: {reason}")
        if found == "rights":
            return self._refused(f"the user may not do this: {reason}")
        if state.startswith("42"):
            # What is wrong with a statement names tables and columns, no values.
            return self._refused(reason)
        return StoreCommitError(self._spec.id, f"{type(error).__name__} (SQLSTATE {state or 'unknown'})")


def _values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_nested(column.type):
        return [None if value is None else as_json(value, column.type) for value in column.to_pylist()]
    return list(column.to_pylist())
