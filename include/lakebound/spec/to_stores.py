"""An online store as a target of a pipeline: rows or counters by key, in PostgreSQL or Redis, as the author writes it."""

from __future__ import annotations

import re

from pydantic import Field, field_validator, model_validator

from lakebound.frozen import Frozen
from lakebound.spec.connection import SecretRef
from lakebound.spec.postgres import PostgresSpec
from lakebound.spec.redis import RedisSpec

_NAME = re.compile(r"[a-z][a-z0-9_]{0,47}(\.[a-z][a-z0-9_]{0,47})?")
_COLUMN = re.compile(r"[A-Za-z_]\w{0,62}")
_INTERVAL = re.compile(r"([1-9]\d{0,5})(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_MOST_BUCKETS = 1000
BUCKET_COLUMNS = ("window_seconds", "bucket")
"""Of counters in PostgreSQL: the length of the window, and when the bucket begins."""
COUNT = "count"
"""How the number of rows of a bucket is called, beside the sums."""


def parse_interval(text: str) -> int:
    """Return the seconds of an interval such as 5s, 1m, 24h or 7d.

    Raises:
        ValueError: It is none.
    """
    match = _INTERVAL.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an interval such as 5s, 1m, 24h or 7d")
    return int(match[1]) * _SECONDS[match[2]]


class CountersSpec(Frozen):
    """Counters of each key: the number of recent rows, and sums of columns. They are kept in time buckets, which expire."""

    time: str = Field(description="Column with the time of a row, a timestamp. It says to which bucket the row belongs.")
    windows: dict[str, str] = Field(
        min_length=1,
        description="Length of each window and of its buckets, such as 1m: 5s. Buckets older than their window are removed.",
    )
    sums: tuple[str, ...] = Field(
        default=(),
        description="Columns of whole numbers that are summed up, such as an amount in cents. Rows are always counted.",
    )

    @field_validator("windows")
    @classmethod
    def _windows(cls, windows: dict[str, str]) -> dict[str, str]:
        seconds = []
        for window, bucket in windows.items():
            whole, part = parse_interval(window), parse_interval(bucket)
            if whole % part or whole // part > _MOST_BUCKETS:
                raise ValueError(f"{window}: {bucket}: a window has 1 to {_MOST_BUCKETS} whole buckets")
            seconds.append(whole)
        if len(set(seconds)) != len(seconds):
            raise ValueError("two windows have the same length")
        return windows

    @field_validator("sums")
    @classmethod
    def _sums(cls, sums: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(sums)) != len(sums) or not all(_COLUMN.fullmatch(name) for name in sums):
            raise ValueError("a column is named twice, or is not a name")
        if taken := sorted({COUNT, *BUCKET_COLUMNS} & {*sums}):
            raise ValueError(f"{taken[0]!r} is a column of the counters themselves; rename the column in the transform")
        return sums

    @property
    def seconds(self) -> dict[str, tuple[int, int]]:
        """Length of each window and of its buckets, in seconds."""
        return {window: (parse_interval(window), parse_interval(bucket)) for window, bucket in self.windows.items()}

    @property
    def longest_seconds(self) -> int:
        """Length of the longest window."""
        return max(whole for whole, _ in self.seconds.values())

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, beside the key."""
        return (self.time, *self.sums)


class ToStoreSpec(Frozen):
    """One store."""

    name: str = Field(
        description="For PostgreSQL: the table, as schema.table or its name only. For Redis: the prefix of the keys, which are "
        "<name>:<key>. Nobody else may write there."
    )
    key: str = Field(description="Column whose value names the row: text, bytes, a whole number or a date. It is never null.")
    postgres: PostgresSpec | None = Field(default=None, description="The database, and the login.")
    redis: RedisSpec | None = Field(default=None, description="The server, and the login.")
    columns: tuple[str, ...] | None = Field(
        default=None, min_length=1, description="Columns that are stored in addition to the key. Default: all columns."
    )
    delete_if: str | None = Field(
        default=None,
        description="Boolean column. A row where it is true removes its key from the store. The column is not stored.",
    )
    counters: CountersSpec | None = Field(
        default=None, description="Keep counters of the rows of each key instead of the newest row."
    )

    @field_validator("name")
    @classmethod
    def _named(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is not a name: one or two of [a-z][a-z0-9_]*, joined by a dot, up to 48 characters each"
            )
        if "lakebound" in (part[:9] for part in name.split(".")):
            raise ValueError(f"{name!r} is a name that Lakebound uses itself")
        return name

    @field_validator("key", "delete_if")
    @classmethod
    def _column(cls, column: str | None) -> str | None:
        if column is not None and not _COLUMN.fullmatch(column):
            raise ValueError(f"{column!r} is not the name of a column: letters, digits and _, up to 63")
        return column

    @model_validator(mode="after")
    def _one_server(self) -> ToStoreSpec:
        if (self.postgres is None) == (self.redis is None):
            raise ValueError("give either 'postgres' or 'redis', to say where the store is")
        return self

    @model_validator(mode="after")
    def _rows_or_counters(self) -> ToStoreSpec:
        if self.counters is not None and (self.columns is not None or self.delete_if is not None):
            raise ValueError("'columns' and 'delete_if' are for rows, not for counters")
        if self.delete_if is not None and self.delete_if in (self.key, *(self.columns or ())):
            raise ValueError("'delete_if' cannot be the key or one of 'columns'")
        if self.counters is not None and self.key in (*self.counters.columns, *BUCKET_COLUMNS, COUNT):
            raise ValueError(
                "counters: the key cannot be the time, a sum, or have the name of a column of the counters; rename it"
            )
        return self

    @property
    def id(self) -> str:
        """``postgres:name`` or ``redis:name``, the target's name in progress, reports and messages, and in its ledger."""
        return f"{self.format}:{self.name}"

    @property
    def format(self) -> str:
        """``postgres`` or ``redis``, where a table has its format."""
        return "redis" if self.postgres is None else "postgres"

    @property
    def place(self) -> str:
        """The server and the database, for messages."""
        server = self.postgres or self.redis
        assert server is not None
        return f"{server.host}:{server.port}/{server.database}"

    @property
    def login(self) -> str:
        """How the server is reached, as text to compare."""
        server = self.postgres or self.redis
        return "" if server is None else server.model_dump_json()

    @property
    def secrets(self) -> dict[tuple[str, ...], SecretRef]:
        """Where its secrets are, by their keys in the YAML."""
        server = self.postgres or self.redis
        password = None if server is None else server.password
        return {} if password is None else {(self.format, "password"): password}
