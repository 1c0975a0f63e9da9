"""The statements by which a store in PostgreSQL is made, looked at and changed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from psycopg import sql

from lakebound.errors import TableMismatchError
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.to_stores import BUCKET_COLUMNS, COUNT, ToStoreSpec
from lakebound.tables.type_names import type_name

LEDGER = "lakebound_ledger"
"""The table of ledgers, in the schema of the stores: a row per store."""
WINDOW, BUCKET = BUCKET_COLUMNS
_TYPES: tuple[tuple[str, str], ...] = (
    ("bool", "boolean"),
    ("int8", "smallint"),
    ("int16", "smallint"),
    ("int32", "integer"),
    ("int64", "bigint"),
    ("float", "real"),
    ("double", "double precision"),
    ("string", "text"),
    ("binary", "bytea"),
    ("date32[day]", "date"),
    ("timestamp[us, tz=UTC]", "timestamp with time zone"),
    ("timestamp[us]", "timestamp without time zone"),
)
_WIDER: Mapping[str, tuple[str, ...]] = {
    "smallint": ("integer", "bigint", "numeric"),
    "integer": ("bigint", "numeric"),
    "bigint": ("numeric",),
    "real": ("double precision",),
    "text": ("character varying",),
}

SERVER_ID = sql.SQL(
    "SELECT concat_ws('/', system_identifier, extract(epoch from pg_postmaster_start_time()), current_database()) "
    "FROM pg_control_system()"
)
"""A copy that was made from the server's files has the same system identifier, but was not started in the same microsecond."""
CREATE_LEDGER = sql.SQL(
    "CREATE TABLE IF NOT EXISTS {ledger} (target text PRIMARY KEY, pipeline text NOT NULL, epoch bigint NOT NULL, "
    "version bigint NOT NULL, commit_id text NOT NULL, entry text NOT NULL, committed_at timestamptz NOT NULL)"
)
READ = sql.SQL(
    "SELECT version, commit_id, epoch, entry, extract(epoch from committed_at)::float8, to_regclass({table})::oid::text "
    "FROM {ledger} WHERE target = %s"
)
OTHER_NAME = sql.SQL(
    "SELECT target, pipeline FROM {ledger} WHERE target <> %s "
    "AND to_regclass(split_part(target, ':', 2)) = to_regclass({table})"
)
"""A table of PostgreSQL has two names where its schema may be left out."""
LOCK = sql.SQL("SELECT version, commit_id, epoch FROM {ledger} WHERE target = %s FOR UPDATE")
FIRST = sql.SQL(
    "INSERT INTO {ledger} (target, pipeline, epoch, version, commit_id, entry, committed_at) "
    "VALUES (%s, %s, %s, 1, %s, %s, to_timestamp(%s)) ON CONFLICT (target) DO NOTHING"
)
NEXT = sql.SQL(
    "UPDATE {ledger} SET pipeline = %s, epoch = %s, version = version + 1, commit_id = %s, entry = %s, "
    "committed_at = to_timestamp(%s) WHERE target = %s AND commit_id = %s AND epoch <= %s"
)
COLUMNS = sql.SQL(
    "SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute WHERE attrelid = to_regclass({table}) "
    "AND attnum > 0 AND NOT attisdropped"
)
HAS_NULL = sql.SQL("SELECT EXISTS (SELECT FROM {table} WHERE {column} IS NULL)")
COUNT_ROWS = sql.SQL("SELECT count(*) FROM {table}")
FORGET = sql.SQL("DELETE FROM {ledger} WHERE target = %s")
HAS_ROWS = sql.SQL("SELECT EXISTS (SELECT FROM {table})")


def type_of(kind: pa.DataType) -> str | None:
    """Return PostgreSQL's type for one of Arrow's, as ``format_type`` writes it; None where there is none."""
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    return "jsonb" if pa.types.is_nested(kind) else dict(_TYPES).get(str(kind))


def table_columns(spec: ToStoreSpec, schema: pa.Schema) -> dict[str, str]:
    """Return the columns of the store's table and their types, those of its primary key first.

    Args:
        spec: The store.
        schema: Columns of the files in which rows wait.

    Raises:
        TableMismatchError: PostgreSQL has no type for a column.
    """
    found: dict[str, str] = {}
    left_out = (KAFKA_COLUMN, spec.delete_if)
    for field in schema if spec.counters is None else [schema.field(spec.key)]:
        kind = type_of(field.type)
        if field.name not in left_out and kind is None:
            raise TableMismatchError(
                spec.id, f"PostgreSQL has no type for {field.name!r} of type {type_name(field.type)}: cast it in the transform"
            )
        if field.name not in left_out and kind is not None:
            found[field.name] = kind
    if spec.counters is not None:
        found |= {WINDOW: "integer", BUCKET: "timestamp with time zone"}
        found |= dict.fromkeys((COUNT, *spec.counters.sums), "bigint")
    return {name: found[name] for name in (*primary_key(spec), *(name for name in found if name not in primary_key(spec)))}


def primary_key(spec: ToStoreSpec) -> tuple[str, ...]:
    """Return the columns that name a row of the table."""
    return (spec.key,) if spec.counters is None else (spec.key, WINDOW, BUCKET)


def added_columns(spec: ToStoreSpec) -> tuple[str, ...]:
    """Return the columns that counters add up: none may hold NULL, because a sum with NULL is NULL."""
    return () if spec.counters is None else (COUNT, *spec.counters.sums)


def column_problem(spec: ToStoreSpec, wanted: Mapping[str, str], found: Mapping[str, str]) -> str | None:
    """Return why a table that is there cannot take the columns; None where it can.

    Args:
        spec: The store.
        wanted: Columns and types that the rows have.
        found: Those of the table.
    """
    for name, kind in wanted.items():
        if name not in found and spec.counters is not None:
            rest = f"{kind} NOT NULL DEFAULT 0" if name in added_columns(spec) else kind
            return (
                f"its table has no column {name}; run ALTER TABLE … ADD COLUMN {name} {rest}. A column that is added does not "
                f"count the records of the buckets that are there already: to count them, build the store again"
            )
        if name not in found:
            return f"its table has no column {name}; run ALTER TABLE … ADD COLUMN {name} {kind}, or leave it out by 'columns'"
        wider = (kind, *_WIDER.get(kind, ()), *(("numeric",) if kind.startswith("numeric") else ()))
        if found[name] not in wider:
            return f"its column {name} is of type {found[name]}, and the rows have {kind}; cast it in the transform"
    return None


def create_table(spec: ToStoreSpec, columns: Mapping[str, str]) -> sql.Composed:
    """Return the statement that makes the table.

    Args:
        spec: The store.
        columns: As ``table_columns`` gives them.
    """
    # The types are of the list above, or made of two numbers: none is anybody's text.
    added = added_columns(spec)
    listed = [
        sql.SQL("{} " + kind + (" NOT NULL DEFAULT 0" if name in added else "")).format(sql.Identifier(name))
        for name, kind in columns.items()
    ]
    key = sql.SQL(", ").join(map(sql.Identifier, primary_key(spec)))
    body = sql.SQL(", ").join([*listed, sql.SQL("PRIMARY KEY ({})").format(key)])
    return sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(table_name(spec), body)


def create_index(spec: ToStoreSpec) -> sql.Composed:
    """Return the statement that makes the index by which old buckets are found."""
    return sql.SQL("CREATE INDEX ON {} ({}, {})").format(table_name(spec), sql.Identifier(WINDOW), sql.Identifier(BUCKET))


def write(spec: ToStoreSpec, columns: Mapping[str, str]) -> sql.Composed:
    """Return the statement that writes rows or adds to counters; it takes an array per column.

    Args:
        spec: The store.
        columns: As ``table_columns`` gives them.
    """
    table, names = table_name(spec), list(columns)
    arrays = sql.SQL(", ").join(sql.SQL("%s::" + _array(kind) + "[]") for kind in columns.values())
    given = sql.SQL(", ").join(sql.Identifier(f"c{number}") for number in range(len(names)))
    casts = sql.SQL(", ").join(
        sql.SQL("c{}::" + kind).format(sql.SQL(str(number))) for number, kind in enumerate(columns.values())
    )
    key = primary_key(spec)
    changed = [_change(name, adds=spec.counters is not None) for name in names if name not in key]
    action = sql.SQL("UPDATE SET {}").format(sql.SQL(", ").join(changed)) if changed else sql.SQL("NOTHING")
    return sql.SQL(
        "INSERT INTO {table} AS held ({names}) SELECT {casts} FROM unnest({arrays}) AS given({given}) "
        "ON CONFLICT ({key}) DO {action}"
    ).format(
        table=table,
        names=sql.SQL(", ").join(map(sql.Identifier, names)),
        casts=casts,
        arrays=arrays,
        given=given,
        key=sql.SQL(", ").join(map(sql.Identifier, key)),
        action=action,
    )


def delete(spec: ToStoreSpec, kind: str) -> sql.Composed:
    """Return the statement that removes keys; it takes an array of them.

    Args:
        spec: The store.
        kind: Type of the key column.
    """
    array = sql.SQL("%s::" + kind + "[]")
    return sql.SQL("DELETE FROM {} WHERE {} = ANY({})").format(table_name(spec), sql.Identifier(spec.key), array)


def expire(spec: ToStoreSpec) -> sql.Composed:
    """Return the statement that removes old buckets of a window; it takes its seconds and the latest begin that is too old."""
    return sql.SQL("DELETE FROM {} WHERE {} = %s AND {} <= to_timestamp(%s)").format(
        table_name(spec), sql.Identifier(WINDOW), sql.Identifier(BUCKET)
    )


def name_aside(spec: ToStoreSpec, unique: str) -> str:
    """Return a new name for a table that makes room for another, without the schema.

    Args:
        spec: The store.
        unique: Some characters by which it differs from earlier ones.
    """
    return f"{spec.name.rpartition('.')[2]}_before_{unique[:6]}"


def rename(spec: ToStoreSpec, name: str) -> sql.Composed:
    """Return the statement that gives the table another name in its schema."""
    return sql.SQL("ALTER TABLE {} RENAME TO {}").format(table_name(spec), sql.Identifier(name))


def all_buckets(spec: ToStoreSpec) -> sql.Composed:
    """Return the statement that adds up the buckets of all keys: seconds of the window, begin, count, and the sums."""
    sums = sql.SQL(", ").join(sql.SQL("coalesce(sum({}), 0)").format(sql.Identifier(name)) for name in added_columns(spec))
    return sql.SQL("SELECT {0}, extract(epoch from {1})::bigint, {2} FROM {3} GROUP BY {0}, {1}").format(
        sql.Identifier(WINDOW), sql.Identifier(BUCKET), sums, table_name(spec)
    )


def table_name(spec: ToStoreSpec) -> sql.Identifier:
    """Return the name of the table, quoted."""
    return sql.Identifier(*spec.name.split("."))


def ledger_name(spec: ToStoreSpec) -> sql.Identifier:
    """Return the name of the table of ledgers, quoted."""
    return sql.Identifier(*spec.name.split(".")[:-1], LEDGER)


def quoted_text(spec: ToStoreSpec) -> sql.Literal:
    """Return the name of the table as a text with quotes in it, for ``to_regclass``."""
    return sql.Literal(".".join(f'"{part}"' for part in spec.name.split(".")))


def named(statement: sql.SQL, spec: ToStoreSpec) -> sql.Composed:
    """Return a statement with the names of the ledger and of the table, as a text where it compares."""
    return statement.format(ledger=ledger_name(spec), table=quoted_text(spec))


def in_chunks(size: int, most: int) -> Sequence[tuple[int, int]]:
    """Return the bounds of the pieces of so many rows."""
    return [(start, min(start + most, size)) for start in range(0, size, most)]


def _array(kind: str) -> str:
    # JSON is given as text: one array of it would take a wrapper per value.
    return "text" if kind == "jsonb" else kind.partition("(")[0]


def _change(name: str, *, adds: bool) -> sql.Composed:
    # What is NULL counts as 0: NULL plus a number would be NULL for ever.
    form = "{name} = coalesce(held.{name}, 0) + coalesce(EXCLUDED.{name}, 0)" if adds else "{name} = EXCLUDED.{name}"
    return sql.SQL(form).format(name=sql.Identifier(name))
