"""The ``maintenance`` block of a pipeline: when its tables are tidied up, how far, and what is kept. Durations in seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, Field, model_validator

from lakebound.frozen import Frozen

MAINTENANCE_POOL = "lakebound_maintenance"
"""The Airflow pool of the DAGs ``maintain__*``. It has to be there; ``lakebound up`` makes it, with one slot."""

MIB = 1024 * 1024
HOUR_SECONDS = 3600.0
DAY_SECONDS = 24 * HOUR_SECONDS
MOST_HISTORY_SECONDS = 100 * 365 * DAY_SECONDS
"""Whoever wants to keep all for ever says this: a time beyond the calendar can neither be written down nor shown."""

MIN_ORPHAN_AGE_SECONDS = 3 * DAY_SECONDS
"""Nothing younger is ever taken for an orphan: a running batch writes its files before the commit that names them."""


class CompactionSpec(Frozen):
    """When small files are rewritten as large ones. The triggers have the names of Flink's Iceberg maintenance."""

    target_file_bytes: int = Field(default=128 * MIB, ge=MIB, description="Target size of the files that compaction writes.")
    small_file_ratio: float = Field(
        default=0.75, gt=0, le=1, description="A file smaller than this fraction of target_file_bytes is small."
    )
    min_small_files: int = Field(default=20, ge=2, description="A partition with this many small files is rewritten.")
    min_aged_small_files: int = Field(
        default=5,
        ge=2,
        description="A partition with this many small files is rewritten if the oldest of them is at least max_age_seconds "
        "old.",
    )
    max_age_seconds: float = Field(
        default=HOUR_SECONDS, gt=0, description="Age of the oldest small file at which min_aged_small_files applies."
    )
    min_files_removed: int = Field(default=4, ge=1, description="A rewrite that would remove fewer files is not done.")
    hot_seconds: float = Field(default=300.0, ge=0, description="A partition is hot if its newest file is younger than this.")
    hot_min_small_files: int = Field(
        default=200, ge=2, description="A hot partition with fewer small files than this is not rewritten."
    )
    max_delete_files: int = Field(
        default=20,
        ge=1,
        description="Iceberg: a partition with more delete files than this is rewritten. The rewrite removes them.",
    )
    max_bytes_per_run: int = Field(
        default=4 * 1024 * MIB,
        ge=MIB,
        description="Maximum size that one run rewrites. Partitions that are not hot come first.",
    )
    zorder_by: tuple[str, ...] = Field(default=(), description="Columns by which rewritten Delta files are Z-ordered.")
    sort_by: tuple[str, ...] = Field(default=(), description="Columns by which rewritten Iceberg files are sorted.")


class HistorySpec(Frozen):
    """How much of a table's history is kept. A table can be rewound this far back, and read as of a time in it.

    Delta keeps every version for ``keep_delta_seconds``, because its log cannot have gaps. Iceberg keeps every snapshot for
    ``keep_all_seconds`` only, and at most ``keep_all_snapshots`` of them, because each commit rewrites the list of snapshots.
    Of older snapshots it keeps the last one of each second, then of each minute, then of each hour.
    """

    model_config = ConfigDict(allow_inf_nan=False)

    keep_delta_seconds: float = Field(
        default=6 * HOUR_SECONDS, ge=60, le=MOST_HISTORY_SECONDS, description="Delta: how long every version is kept."
    )
    keep_all_seconds: float = Field(
        default=900.0,
        ge=60,
        le=MOST_HISTORY_SECONDS,
        description="Iceberg: how long every snapshot is kept, within keep_all_snapshots.",
    )
    keep_all_snapshots: int = Field(
        default=1000,
        ge=100,
        description="Iceberg: this many of the newest snapshots are kept, within keep_all_seconds. Of the older snapshots "
        "within keep_all_seconds, only the last one of each second is kept.",
    )
    keep_minutely_seconds: float = Field(
        default=6 * HOUR_SECONDS,
        ge=0,
        le=MOST_HISTORY_SECONDS,
        description="Iceberg: how long the last snapshot of each minute is kept.",
    )
    keep_hourly_seconds: float = Field(
        default=7 * DAY_SECONDS,
        ge=0,
        le=MOST_HISTORY_SECONDS,
        description="Iceberg: how long the last snapshot of each hour is kept.",
    )
    undo_seconds: float = Field(
        default=DAY_SECONDS,
        ge=0,
        le=MOST_HISTORY_SECONDS,
        description="How long the version before a rewind or a redo is kept, so that it can be undone.",
    )
    removed_files_seconds: float = Field(
        default=DAY_SECONDS,
        ge=HOUR_SECONDS,
        le=MOST_HISTORY_SECONDS,
        description="Delta: how long files that compaction replaced are kept for readers that still use them.",
    )


class OrphansSpec(Frozen):
    """Orphan files: files that no version of the table refers to. They are moved aside before they are deleted."""

    mode: Literal["off", "dry_run", "quarantine"] = Field(
        default="dry_run",
        description="off: maintenance does not look for orphan files. dry_run: it reports them and moves nothing. "
        "quarantine: it moves them to the folder _orphans of the table, and deletes them later.",
    )
    min_age_seconds: float = Field(
        default=MIN_ORPHAN_AGE_SECONDS, ge=MIN_ORPHAN_AGE_SECONDS, description="A younger file does not count as an orphan."
    )
    keep_quarantined_seconds: float = Field(
        default=7 * DAY_SECONDS, ge=DAY_SECONDS, description="How long files that were moved aside are kept before deletion."
    )
    every_seconds: float = Field(
        default=7 * DAY_SECONDS, ge=HOUR_SECONDS, description="How often maintenance looks for orphan files in each table."
    )


class ReaderSpec(Frozen):
    """A reader that reads a table as a stream. Versions that it has not read yet are not expired.

    Give either the checkpoint folder of a Spark stream, which contains the position of the stream, or a version.
    """

    name: str = Field(min_length=1, description="Name of the reader in plans and messages; each reader has its own.")
    table: str = Field(description="The table's name, or format:name.")
    checkpoint: Path | None = Field(
        default=None, description="Checkpoint folder of the reader's Spark query. Its position is read from there."
    )
    version: int | None = Field(
        default=None, ge=0, description="The reader's position: a Delta version or an Iceberg snapshot id."
    )
    available_now: bool = Field(
        default=False,
        description="The reader runs with Trigger.AvailableNow. On an Iceberg table it then needs every snapshot since the "
        "first one that it read (apache/iceberg#18000), so maintenance keeps all of them.",
    )

    @model_validator(mode="after")
    def _one_place(self) -> ReaderSpec:
        if (self.checkpoint is None) == (self.version is None):
            raise ValueError("give either checkpoint or version")
        return self


class MaintenanceSpec(Frozen):
    """Maintenance of a pipeline's tables, its quarantine included."""

    enabled: bool = Field(default=True, description="With false, maintenance changes nothing in the tables.")
    every_seconds: float = Field(default=1800.0, ge=60, description="Maintenance looks at the tables at least this often.")
    every_commits: int = Field(default=1000, ge=1, description="Maintenance looks at the tables after this many commits.")
    cooldown_seconds: float = Field(default=300.0, ge=0, description="Minimum time between two rewrites of a partition.")
    compaction: CompactionSpec = CompactionSpec()
    history: HistorySpec = HistorySpec()
    orphans: OrphansSpec = OrphansSpec()
    max_manifests: int = Field(default=100, ge=1, description="Iceberg: manifests are rewritten when there are more.")
    max_log_tail_commits: int = Field(
        default=200, ge=1, description="Delta: a log checkpoint is written when there are more commits since the last one."
    )
    vacuum_full_every_seconds: float = Field(
        default=7 * DAY_SECONDS, ge=HOUR_SECONDS, description="Delta: how often a vacuum also lists the table's folder."
    )
    readers: tuple[ReaderSpec, ...] = Field(
        default=(), description="Streaming readers of the tables. What they have not read yet is kept."
    )

    @model_validator(mode="after")
    def _distinct_readers(self) -> MaintenanceSpec:
        names = [reader.name for reader in self.readers]
        if len(set(names)) != len(names):
            raise ValueError(f"readers: two readers have the same name: {', '.join(sorted(names))}")
        return self
