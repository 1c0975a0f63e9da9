"""Reading reference data from PostgreSQL: in a transaction that cannot write, and that sees one state of the database."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pyarrow as pa
from psycopg import sql

from lakebound.first_line import first_line
from lakebound.spec.reference import ReferenceSpec
from lakebound.spec.secret_uses import server_of_login
from lakebound.spec.secrets import read_secret
from lakebound.storage.postgresql import login, refusal_in
from lakebound.tables.type_names import type_name
from lakebound_spark.reference.loaded import Loaded, UnusableReferenceError, Version, check_size
from lakebound_spark.reference.postgres_types import Column, arrow_types, rows_of
from lakebound_spark.reference.rules import MOST_ROWS, key_problem

STATEMENT_SECONDS = 30
_STATEMENTS = ("42", "0A", "25006")
"""SQLSTATEs of what is wrong with a statement, or would write: their messages quote names and code, no values."""
_SESSION = {
    "statement_timeout": f"{STATEMENT_SECONDS}s",
    # What values look like as text.
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "extra_float_digits": "1",
}
_SETTINGS = sql.SQL("SELECT {}").format(sql.SQL(", ").join(sql.SQL("set_config(%s, %s, true)") for _ in _SESSION))
_DESCRIBE = sql.SQL("SELECT {columns} FROM {source} LIMIT 0")
_ROWS = sql.SQL("SELECT {columns} FROM {source} LIMIT {most}")
_FINGERPRINT = sql.SQL(
    "SELECT count(*), coalesce(sum(hashtextextended(ROW(one_row.*)::text, 0)), 0)::text FROM ({rows}) AS one_row"
)
"""The same for the same rows in any order. The server makes it: a look moves no rows."""
_COPY = sql.SQL("COPY ({rows}) TO STDOUT (FORMAT csv)")


def look(name: str, spec: ReferenceSpec) -> Version:
    """Return the version of what a reference names; the server reads it, and sends no rows.

    Args:
        name: The transform's name for it.
        spec: As it is declared.

    Raises:
        UnusableReferenceError: It is not usable, or the server refuses it or does not answer.
        MissingSecretError: The password is not where the YAML says.
        ForbiddenSecretError: The password may not be read on this machine.
    """
    with _transaction(name, spec) as cursor:
        return _version(cursor, spec, _types(cursor, spec))


def load(name: str, spec: ReferenceSpec) -> Loaded:
    """Return the rows of what a reference names, and their version. Raises as ``look`` does.

    Args:
        name: The transform's name for it.
        spec: As it is declared.
    """
    with _transaction(name, spec) as cursor:
        types = _types(cursor, spec)
        return Loaded(_version(cursor, spec, types), rows_of(_text(cursor, spec, types), types))


@contextmanager
def _transaction(name: str, spec: ReferenceSpec) -> Iterator[psycopg.Cursor]:
    """Open a transaction for the block; the driver's errors leave it in Lakebound's words, and without values of rows."""
    field, database = f"reference.{name}", spec.postgres
    assert database is not None
    arguments = login(database, f"{field}.postgres")
    password = read_secret(database.password, f"{field}.postgres.password", server_of_login(database))
    try:
        with psycopg.connect(**arguments, password=password) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            with connection.cursor() as cursor:
                _set_session(cursor)
                yield cursor
            # A query may call what writes though the transaction reads: large objects before PostgreSQL 16.
            connection.rollback()
    except psycopg.Error as exc:
        # Without a cause: the driver's text may hold a value of a row.
        raise UnusableReferenceError(problem_of(exc, field, spec)) from None


def _set_session(cursor: psycopg.Cursor) -> None:
    """Set what each statement needs; before each, because the query of the one before may have set something else."""
    cursor.execute(_SETTINGS, [text for setting in _SESSION.items() for text in setting])


def _source(spec: ReferenceSpec) -> sql.Composable:
    if spec.query is not None:
        # The end of the line ends a comment, too.
        return sql.SQL("(\n{}\n) AS source").format(sql.SQL(spec.query))
    return sql.Identifier(*(spec.name or "").split("."))


def _types(cursor: psycopg.Cursor, spec: ReferenceSpec) -> dict[str, pa.DataType]:
    """Return the columns and their types, of which Arrow has all."""
    columns = sql.SQL("*") if spec.columns is None else sql.SQL(", ").join(map(sql.Identifier, spec.columns))
    # Binary, because then the server takes one statement only: a query is proved to be no more, before COPY repeats it.
    cursor.execute(_DESCRIBE.format(columns=columns, source=_source(spec)), binary=True)
    described = [
        Column(one.name, _kind(one), one.precision if one.scale is not None else None, one.scale)
        for one in cursor.description or ()
    ]
    types = arrow_types(described)
    if problem := key_problem(spec.key, {column: type_name(kind) for column, kind in types.items()}):
        raise UnusableReferenceError(problem)
    return types


def _kind(column: psycopg.Column) -> str:
    known = psycopg.postgres.types.get(column.type_code)
    if known is None:
        return "an enum, or a type of an extension"
    return known.name if column.type_code == known.oid else f"{known.name}[]"


def _rows(spec: ReferenceSpec, types: dict[str, pa.DataType]) -> sql.Composed:
    columns = sql.SQL(", ").join(map(sql.Identifier, types))
    return _ROWS.format(columns=columns, source=_source(spec), most=sql.Literal(MOST_ROWS + 1))


def _version(cursor: psycopg.Cursor, spec: ReferenceSpec, types: dict[str, pa.DataType]) -> Version:
    _set_session(cursor)
    [(count, hashes)] = cursor.execute(_FINGERPRINT.format(rows=_rows(spec, types))).fetchall()
    check_size(count)
    facts = repr((count, hashes, [(column, str(kind)) for column, kind in types.items()]))
    text = f"rows-{hashlib.sha256(facts.encode()).hexdigest()[:16]}"
    return Version(text, text)


def _text(cursor: psycopg.Cursor, spec: ReferenceSpec, types: dict[str, pa.DataType]) -> bytes:
    _set_session(cursor)
    text = bytearray()
    with cursor.copy(_COPY.format(rows=_rows(spec, types))) as copied:
        for part in copied:
            text += part
            check_size(None, len(text))
    return bytes(text)


def problem_of(error: psycopg.Error, field: str, spec: ReferenceSpec) -> str:
    """Return what an error of the driver means, without values of rows: those of wrong data quote them.

    Args:
        error: What the driver raised.
        field: The reference in the YAML.
        spec: As it is declared.
    """
    state, reason = error.sqlstate or "", first_line(error)
    what = f"{field}.{'query' if spec.query is not None else 'name'}"
    if isinstance(error, psycopg.errors.QueryCanceled):
        return f"the server did not finish within {STATEMENT_SECONDS} s; read less by 'columns' or 'query', or give it an index"
    found = refusal_in(error)
    if found == "away":
        return f"the server is away, or cannot answer: {reason}; if it is elsewhere, correct {field}.postgres"
    if found == "login":
        return f"the server refuses the login: {reason}; correct {field}.postgres.username or what its password names"
    if found == "database":
        return f"the server has no such database for this user: {reason}; correct {field}.postgres.database"
    if found == "rights":
        return f"the user may not read it: {reason}; grant SELECT to {field}.postgres.username"
    if state.startswith(_STATEMENTS):
        return f"the server refuses the statement: {reason}; correct {what}"
    return f"the server cannot make the rows: {type(error).__name__} (SQLSTATE {state or 'unknown'}); try {what} in psql"
