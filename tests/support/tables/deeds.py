"""What other people do to an Iceberg table by ordinary SQL, as data: how it is done, and what must then be in the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
Rows = list[Row]


@dataclass(frozen=True)
class Deed:
    """One thing that a colleague does.

    Attributes:
        name: As it is called in a test.
        statements: Spark SQL; ``{t}`` is the table, ``{name}`` its name in the catalog, ``{before}`` the snapshot with half of
            its rows.
        becomes: What the rows are that were in the table before it; None where they stay.
        of_columns: Whether it is done to the columns, so that a rewind does not undo it.
        refused: Part of the feature's name, where nothing may be committed afterwards.
        unerasable: Part of why no row can be erased afterwards; empty: as ``refused``.
        goes_back: Whether the table is what it was at ``{before}``, its ledger included.
        keeps_history: Whether a rewind still finds the ledger that the table no longer shows.
    """

    name: str
    statements: Sequence[str]
    becomes: Callable[[Rows], Rows] | None = None
    of_columns: bool = False
    refused: str = ""
    unerasable: str = ""
    goes_back: bool = False
    keeps_history: bool = False

    def __str__(self) -> str:
        return self.name


def _where(keeps: Callable[[Row], bool]) -> Callable[[Rows], Rows]:
    return lambda rows: [row for row in rows if keeps(row)]


def _moved(rows: Rows) -> Rows:
    return [{**row, "city": "elsewhere"} if row["id"] == 4 else row for row in rows]


def _again(rows: Rows) -> Rows:
    return [*rows, *(row for row in rows if row["id"] == 1)]


def _without_cities(rows: Rows) -> Rows:
    return [{**row, "city": None} for row in rows]


def _set(name: str, value: str) -> str:
    return f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{name}' = '{value}')"


_MERGE_ON_READ = tuple(_set(f"write.{what}.mode", "merge-on-read") for what in ("delete", "update", "merge"))
_MERGE = "MERGE INTO {t} AS t USING (SELECT 4L AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET city = 'elsewhere'"

_INSERT = "INSERT INTO {t} SELECT * FROM {t} WHERE id = 1"


def _of_rows() -> list[Deed]:
    found = []
    for how, before, left in (("copied", (), ""), ("merged on read", _MERGE_ON_READ, "delete files")):
        found += [
            Deed(
                f"DELETE, {how}", (*before, "DELETE FROM {t} WHERE id = 3"), _where(lambda row: row["id"] != 3), unerasable=left
            ),
            Deed(f"UPDATE, {how}", (*before, "UPDATE {t} SET city = 'elsewhere' WHERE id = 4"), _moved, unerasable=left),
            Deed(f"MERGE, {how}", (*before, _MERGE), _moved, unerasable=left),
        ]
    return [
        *found,
        Deed("INSERT", (_INSERT,), _again),
        Deed("INSERT OVERWRITE", ("INSERT OVERWRITE {t} SELECT * FROM {t} WHERE id < 5",), _where(lambda row: row["id"] < 5)),
    ]


_OF_COLUMNS = [
    Deed(
        "RENAME and ADD",
        ("ALTER TABLE {t} RENAME COLUMN city TO town", "ALTER TABLE {t} ADD COLUMN city string"),
        _without_cities,
        True,
    ),
    Deed("DROP and ADD", ("ALTER TABLE {t} DROP COLUMN city", "ALTER TABLE {t} ADD COLUMN city string"), _without_cities, True),
    Deed("ADD COLUMN", ("ALTER TABLE {t} ADD COLUMN extra struct<a: int, b: array<string>>",)),
    Deed("ADD COLUMN first", ("ALTER TABLE {t} ADD COLUMN extra int FIRST",)),
    Deed("ADD COLUMN in a list", ("ALTER TABLE {t} ADD COLUMN items.element.extra int",)),
    Deed("ALTER TYPE in a list", ("ALTER TABLE {t} ALTER COLUMN items.element.quantity TYPE bigint",)),
    Deed("ALTER COLUMN AFTER", ("ALTER TABLE {t} ALTER COLUMN id AFTER city",)),
]

_OF_OTHER_THINGS = [
    Deed(
        "rewrite_data_files", ("CALL ice.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))",)
    ),
    Deed("rewrite_manifests", ("CALL ice.system.rewrite_manifests('{name}')",)),
    Deed("expire_snapshots", ("CALL ice.system.expire_snapshots(table => '{name}', older_than => now(), retain_last => 3)",)),
    Deed("CREATE TAG", ("ALTER TABLE {t} CREATE TAG monday",)),
    Deed(
        "rows in a branch",
        ("ALTER TABLE {t} CREATE BRANCH trial", "INSERT INTO {t}.branch_trial SELECT * FROM {t} WHERE id = 1"),
    ),
    Deed("write.wap.enabled", (_set("write.wap.enabled", "true"),)),
    Deed("WRITE ORDERED BY", ("ALTER TABLE {t} WRITE ORDERED BY city, id",)),
    Deed("ADD PARTITION FIELD", ("ALTER TABLE {t} ADD PARTITION FIELD days(at)",)),
    Deed("WRITE DISTRIBUTED BY PARTITION", ("ALTER TABLE {t} WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id",)),
    Deed(
        "DROP PARTITION FIELD",
        (
            "ALTER TABLE {t} ADD PARTITION FIELD bucket(4, id)",
            "UPDATE {t} SET city = 'elsewhere' WHERE id = 4",
            "ALTER TABLE {t} DROP PARTITION FIELD bucket(4, id)",
        ),
        _moved,
        unerasable="partitioned in a way that is not written",
    ),
    Deed("write.object-storage.enabled", (_set("write.object-storage.enabled", "true"),)),
    Deed("metrics of no column", (_set("write.metadata.metrics.default", "none"),)),
]

_OF_HISTORY = [
    *(
        Deed(name, (statement,), _where(lambda row: row["id"] < 10), goes_back=True)
        for name, statement in (
            ("rollback_to_snapshot", "CALL ice.system.rollback_to_snapshot('{name}', {before})"),
            ("set_current_snapshot", "CALL ice.system.set_current_snapshot('{name}', {before})"),
            ("REPLACE BRANCH main", "ALTER TABLE {t} REPLACE BRANCH main AS OF VERSION {before}"),
        )
    ),
    Deed(
        "fast_forward",
        (
            "ALTER TABLE {t} CREATE BRANCH ahead",
            _INSERT.replace("{t}", "{t}.branch_ahead", 1),
            "CALL ice.system.fast_forward('{name}', 'main', 'ahead')",
        ),
        _again,
    ),
    Deed(
        "publish_changes",
        (
            _set("write.wap.enabled", "true"),
            "SET spark.wap.id = audited",
            _INSERT,
            "RESET spark.wap.id",
            "CALL ice.system.publish_changes('{name}', 'audited')",
        ),
        _again,
    ),
    Deed(
        "rewrite_position_delete_files",
        (
            *_MERGE_ON_READ,
            "DELETE FROM {t} WHERE id = 3",
            "CALL ice.system.rewrite_position_delete_files(table => '{name}', options => map('rewrite-all', 'true'))",
        ),
        _where(lambda row: row["id"] != 3),
        unerasable="delete files",
    ),
    Deed(
        "metadata files deleted after a commit",
        (
            _set("write.metadata.delete-after-commit.enabled", "true"),
            _set("write.metadata.previous-versions-max", "1"),
            "DELETE FROM {t} WHERE id = 3",
        ),
        _where(lambda row: row["id"] != 3),
    ),
    Deed(
        "CREATE OR REPLACE TABLE",
        ("CREATE OR REPLACE TABLE {t} USING iceberg AS SELECT * FROM {t}",),
        refused="no ledger",
        keeps_history=True,
    ),
]

_OF_KAFKA = [
    Deed("ADD COLUMN in _kafka", ("ALTER TABLE {t} ADD COLUMN _kafka.note string",)),
    Deed("ALTER TYPE in _kafka", ("ALTER TABLE {t} ALTER COLUMN _kafka.ordinal TYPE bigint",)),
]

_REFUSED = [
    Deed("format version 3", (_set("format-version", "3"),), refused="format version 3"),
    Deed(
        "deletion vectors",
        (_set("format-version", "3"), *_MERGE_ON_READ, "DELETE FROM {t} WHERE id = 3"),
        _where(lambda row: row["id"] != 3),
        refused="format version 3",
    ),
    Deed("default values", (_set("format-version", "3"), "ALTER TABLE {t} ADD COLUMN extra int"), refused="format version 3"),
    *(
        Deed(name, (_set(name, value),), refused=name)
        for name, value in (
            ("write.py-location-provider.impl", "tests.support.tables.named_code.Provider"),
            ("py-io-impl", "tests.support.tables.named_code.Provider"),
            ("encryption.key-id", "k1"),
            ("write.format.default", "orc"),
            ("write.data.path", "file:///tmp/elsewhere"),
            ("write.metadata.path", "file:///tmp/elsewhere"),
        )
    ),
    Deed("ADD PARTITION FIELD of buckets", ("ALTER TABLE {t} ADD PARTITION FIELD bucket(4, id)",), refused="is of a kind"),
]

DEEDS = [*_of_rows(), *_OF_COLUMNS, *_OF_OTHER_THINGS, *_OF_HISTORY, *_OF_KAFKA, *_REFUSED]
