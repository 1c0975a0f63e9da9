"""What colleagues do to a Delta table with ordinary Spark SQL, once in a template; its copies then have it done at any moment.

A commit in a Delta log is files with new names: to give a copy a colleague's commit, they are copied into it.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

Row = tuple[int, str | None]


@dataclass(frozen=True)
class Colleague:
    """What is done to a table with the ids 0 to 19 in two files.

    Attributes:
        name: Of the test.
        statements: With ``{t}`` for the table; one that begins with ``overwrite`` names the columns of another partitioning.
        append: By what name it is refused to land rows then, and so of the others; empty: it is not.
        meanwhile: Of a compaction that is under way.
        erasure: Of an erasure; None: as ``replace``.
        is_sampled: Whether it is in the short form, too.
    """

    name: str
    statements: tuple[str, ...]
    append: str = ""
    replace: str = ""
    restore: str = ""
    vacuum: str = ""
    meanwhile: str = ""
    erasure: str | None = None
    is_sampled: bool = False

    @property
    def refused_erasure(self) -> str:
        """By what name an erasure is refused."""
        return self.replace if self.erasure is None else self.erasure


def _set(name: str, value: str = "true") -> str:
    return f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{name}' = '{value}')"


_VECTORS = _set("delta.enableDeletionVectors")
_MAPPING = _set("delta.columnMapping.mode", "name")

COLLEAGUES = (
    Colleague("delete", ("DELETE FROM {t} WHERE id IN (3, 14)",)),
    Colleague("update", ("UPDATE {t} SET city = 'moved' WHERE id = 4",)),
    Colleague("merge", ("MERGE INTO {t} USING (SELECT 5L AS k) ON id = k WHEN MATCHED THEN UPDATE SET city = 'merged'",)),
    Colleague("insert", ("INSERT INTO {t} (id, city) VALUES (1000, 'theirs')",)),
    Colleague("truncate", ("DELETE FROM {t}",), erasure="nothing to erase"),
    Colleague("insert overwrite", ("INSERT OVERWRITE {t} SELECT * FROM {t} WHERE id < 5",)),
    Colleague("add column", ("ALTER TABLE {t} ADD COLUMN note STRING",)),
    Colleague("add field", ("ALTER TABLE {t} ADD COLUMN items.element.note STRING",)),
    Colleague("optimize", ("OPTIMIZE {t}",)),
    Colleague("zorder", ("OPTIMIZE {t} ZORDER BY (id)",)),
    Colleague("other partitions", ("overwrite city",), append="by \\[\\] when .*by \\[city\\] now", is_sampled=True),
    Colleague("deletion vectors", (_VECTORS,), replace="deletionVectors"),
    Colleague(
        "delete with vectors", (_VECTORS, "DELETE FROM {t} WHERE id IN (3, 14)"), replace="deletionVectors", is_sampled=True
    ),
    Colleague(
        "delete with vectors in prefixes",
        (_set("delta.randomizeFilePrefixes"), _VECTORS, "DELETE FROM {t} WHERE id = 3"),
        replace="deletionVectors",
    ),
    Colleague("reorg", (_VECTORS, "DELETE FROM {t} WHERE id = 3", "REORG TABLE {t} APPLY (PURGE)"), replace="deletionVectors"),
    Colleague(
        "column mapping", (_MAPPING, "ALTER TABLE {t} ADD COLUMN note STRING"), append="columnMapping", replace="columnMapping"
    ),
    Colleague(
        "rename and add",
        (_MAPPING, "ALTER TABLE {t} RENAME COLUMN city TO town", "ALTER TABLE {t} ADD COLUMN city STRING"),
        append="columnMapping",
        replace="columnMapping",
        is_sampled=True,
    ),
    Colleague("drop column", (_MAPPING, "ALTER TABLE {t} DROP COLUMN city"), append="columnMapping", replace="columnMapping"),
    Colleague("check", ("ALTER TABLE {t} ADD CONSTRAINT early CHECK (id < 25)",), append="checkConstraints .*early"),
    Colleague(
        "default",
        (_set("delta.feature.allowColumnDefaults", "supported"), "ALTER TABLE {t} ALTER COLUMN city SET DEFAULT 'x'"),
        append="allowColumnDefaults",
        restore="allowColumnDefaults",
    ),
    Colleague(
        "row tracking",
        (_set("delta.enableRowTracking"),),
        append="rowTracking",
        replace="rowTracking",
        restore="rowTracking",
        vacuum="rowTracking",
    ),
    Colleague(
        "in-commit timestamps",
        (_set("delta.enableInCommitTimestamps"),),
        append="inCommitTimestamp",
        replace="inCommitTimestamp",
        restore="inCommitTimestamp",
        vacuum="inCommitTimestamp",
    ),
    Colleague(
        "clustering", ("ALTER TABLE {t} CLUSTER BY (id)",), replace="clustering|domainMetadata", restore="clustering|domainM"
    ),
    Colleague("v2 checkpoints", (_set("delta.checkpointPolicy", "v2"),)),
    Colleague("change data feed", (_set("delta.enableChangeDataFeed"),)),
    Colleague("append only", (_set("delta.appendOnly"),), restore="appendOnly", erasure="appendOnly"),
    Colleague(
        "type widening",
        (_set("delta.enableTypeWidening"), "ALTER TABLE {t} ALTER COLUMN items.element.quantity TYPE BIGINT"),
        append="has changed column items",
        replace="typeWidening",
        restore="typeWidening",
    ),
    *(
        Colleague(
            f"restore to {version}",
            (f"RESTORE TABLE {{t}} TO VERSION AS OF {version}",),
            append="was restored",
            replace="was restored",
            vacuum="was restored",
            meanwhile="was restored",
        )
        for version in (0, 2)
    ),
    Colleague("replace table", ("CREATE OR REPLACE TABLE {t} USING delta AS SELECT * FROM {t} WHERE id < 15",)),
    Colleague("replace where", ("INSERT INTO {t} REPLACE WHERE id >= 15 SELECT * FROM {t} WHERE id >= 15 AND id <> 17",)),
    Colleague(
        "dropped feature",
        (_VECTORS, "DELETE FROM {t} WHERE id = 3", "ALTER TABLE {t} DROP FEATURE deletionVectors"),
        replace="checkpointProtection",
        restore="checkpointProtection",
    ),
    Colleague("no statistics", (_set("delta.dataSkippingNumIndexedCols", "0"), "UPDATE {t} SET city = 'moved' WHERE id = 4")),
    Colleague(
        "checkpoint without JSON",
        (
            _set("delta.checkpoint.writeStatsAsJson", "false"),
            _set("delta.checkpoint.writeStatsAsStruct"),
            _set("delta.checkpointInterval", "1"),
            "DELETE FROM {t} WHERE id = 3",
        ),
    ),
    Colleague("first column", ("ALTER TABLE {t} ALTER COLUMN city FIRST", "COMMENT ON TABLE {t} IS 'ours, too'")),
    Colleague("variant", ("ALTER TABLE {t} ADD COLUMN any VARIANT",), append="variantType", replace="variantType"),
    Colleague("field in _kafka", ("ALTER TABLE {t} ADD COLUMN _kafka.note STRING",)),
)


def do(table: str, statements: Sequence[str]) -> list[Row]:
    """Do a colleague's work, in the process that has Spark, and return the rows that Spark reads then."""
    session = SparkSession.getActiveSession()
    assert session is not None
    for statement in statements:
        word, _, rest = statement.partition(" ")
        if word == "overwrite":
            rows = session.read.format("delta").load(table)
            rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").partitionBy(rest).save(table)
        else:
            session.sql(statement.format(t=f"delta.`{table}`"))
    return read_all([table])[0]


def read_all(tables: Sequence[str]) -> list[list[Row]]:
    """Return the rows of tables as Spark reads them, in the process that has it; a column that was dropped is null."""
    session = SparkSession.getActiveSession()
    assert session is not None
    found: list[list[Row]] = []
    for table in tables:
        frame = session.sql(f"SELECT * FROM delta.`{table}`")
        city = "city" if "city" in frame.columns else "NULL"
        found.append(sorted((row[0], row[1]) for row in frame.selectExpr("id", city).collect()))
    return found


def files_of(folder: Path) -> set[Path]:
    """Return the files of a table."""
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.suffix != ".crc"}


def give(template: Path, files: set[Path], folder: Path) -> None:
    """Copy files of the template into another table, its commits last and in their order."""
    for file in sorted(files, key=lambda one: (one.parts[0] == "_delta_log", one)):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(template / file, folder / file)


def id_city(rows: pa.Table) -> list[Row]:
    """Return the rows of a batch likewise."""
    return sorted(zip(rows["id"].to_pylist(), rows["city"].to_pylist(), strict=True))
