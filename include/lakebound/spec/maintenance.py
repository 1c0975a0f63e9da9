"""The ``maintenance`` block of a pipeline: when its tables are tidied up, how far, and what is kept. Durations in seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

MAINTENANCE_POOL = "lakebound_maintenance"
"""The Airflow pool of the DAGs ``maintain__*``. It has to be there; ``lakebound up`` makes it, with one slot."""

MIB = 1024 * 1024
HOUR_SECONDS = 3600.0
DAY_SECONDS = 24 * HOUR_SECONDS

MIN_ORPHAN_AGE_SECONDS = 3 * DAY_SECONDS
"""Nothing younger is ever taken for an orphan: a running batch writes its files before the commit that names them."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CompactionSpec(_Frozen):
    """When small files are rewritten as large ones. The triggers' words are those of Flink's Iceberg maintenance."""

    target_file_bytes: int = Field(default=128 * MIB, ge=MIB)
    small_file_ratio: float = Field(default=0.75, gt=0, le=1, description="A file below this part of the target is small.")
    min_small_files: int = Field(default=20, ge=2, description="Small files in a partition that make it worth rewriting.")
    min_aged_small_files: int = Field(default=5, ge=2, description="The same, once the oldest of them is max_age_seconds old.")
    max_age_seconds: float = Field(default=HOUR_SECONDS, gt=0)
    min_files_removed: int = Field(default=4, ge=1, description="A rewrite that removes fewer files has no gain: it is left.")
    hot_seconds: float = Field(default=300.0, ge=0, description="A partition that got a file so recently is hot.")
    hot_min_small_files: int = Field(default=200, ge=2, description="A hot partition is left alone below this.")
    max_delete_files: int = Field(
        default=20, ge=1, description="Iceberg: a partition with more delete files is rewritten without them."
    )
    max_bytes_per_run: int = Field(
        default=4 * 1024 * MIB, ge=MIB, description="Budget of one run; closed partitions come first."
    )
    zorder_by: tuple[str, ...] = Field(default=(), description="Columns by which rewritten Delta files are Z-ordered.")
    sort_by: tuple[str, ...] = Field(default=(), description="Columns by which rewritten Iceberg files are sorted.")


class HistorySpec(_Frozen):
    """How much of a table's past is kept: so far back can be rewound and read as of a time.

    Delta keeps every version for ``keep_delta_seconds``, as its log cannot have gaps. Iceberg keeps every snapshot for
    ``keep_all_seconds`` only, and ``keep_all_snapshots`` of them, as each commit writes the list of them anew; beyond it the
    last one of each second, then of each minute, then of each hour.
    """

    keep_delta_seconds: float = Field(default=6 * HOUR_SECONDS, ge=60, description="Delta: every version.")
    keep_all_seconds: float = Field(default=900.0, ge=60, description="Iceberg: every snapshot, but see keep_all_snapshots.")
    keep_all_snapshots: int = Field(
        default=1000,
        ge=100,
        description="Iceberg: so many at most; of older ones within keep_all_seconds the last of each second.",
    )
    keep_minutely_seconds: float = Field(
        default=6 * HOUR_SECONDS, ge=0, description="Iceberg: the last snapshot of each minute."
    )
    keep_hourly_seconds: float = Field(default=7 * DAY_SECONDS, ge=0, description="Iceberg: the last snapshot of each hour.")
    undo_seconds: float = Field(default=DAY_SECONDS, ge=0, description="What a rewind left, so that it can be undone.")
    removed_files_seconds: float = Field(
        default=DAY_SECONDS,
        ge=HOUR_SECONDS,
        description="Delta: files that compaction replaced, for readers that still use them.",
    )


class OrphansSpec(_Frozen):
    """Files that no version of the table names. They are moved aside before they are deleted."""

    mode: Literal["off", "dry_run", "quarantine"] = "dry_run"
    min_age_seconds: float = Field(default=MIN_ORPHAN_AGE_SECONDS, ge=MIN_ORPHAN_AGE_SECONDS)
    keep_quarantined_seconds: float = Field(default=7 * DAY_SECONDS, ge=DAY_SECONDS)
    every_seconds: float = Field(default=7 * DAY_SECONDS, ge=HOUR_SECONDS)


class ReaderSpec(_Frozen):
    """Somebody who reads a table as a stream: what it has still to read is not expired.

    Give the checkpoint folder of a Spark stream, which names where it stands, or a version by hand.
    """

    name: str = Field(min_length=1)
    table: str = Field(description="The table's name, or format:name.")
    checkpoint: Path | None = None
    version: int | None = Field(default=None, ge=0, description="Delta version or Iceberg snapshot id.")
    available_now: bool = Field(
        default=False,
        description="It runs with Trigger.AvailableNow. Of Iceberg it then needs all since its very first snapshot "
        "(apache/iceberg#18000), and nothing since that is expired.",
    )

    @model_validator(mode="after")
    def _one_place(self) -> ReaderSpec:
        if (self.checkpoint is None) == (self.version is None):
            raise ValueError("give either checkpoint or version")
        return self


class MaintenanceSpec(_Frozen):
    """Maintenance of a pipeline's tables, its quarantine included."""

    enabled: bool = True
    every_seconds: float = Field(default=1800.0, ge=60, description="Look at the tables at least so often.")
    every_commits: int = Field(default=1000, ge=1, description="Look at them after so many commits.")
    cooldown_seconds: float = Field(default=300.0, ge=0, description="Between two rewrites of a partition.")
    compaction: CompactionSpec = CompactionSpec()
    history: HistorySpec = HistorySpec()
    orphans: OrphansSpec = OrphansSpec()
    max_manifests: int = Field(default=100, ge=1, description="Iceberg: more are rewritten.")
    max_log_tail_commits: int = Field(
        default=200, ge=1, description="Delta: more commits since the log checkpoint get a new one."
    )
    vacuum_full_every_seconds: float = Field(
        default=7 * DAY_SECONDS, ge=HOUR_SECONDS, description="Delta: list the folder, too."
    )
    readers: tuple[ReaderSpec, ...] = ()

    @model_validator(mode="after")
    def _distinct_readers(self) -> MaintenanceSpec:
        names = [reader.name for reader in self.readers]
        if len(set(names)) != len(names):
            raise ValueError(f"readers: two have one name: {', '.join(sorted(names))}")
        return self
