"""A table's health from its facts, and a score from 0 to 100 that explains itself. Pure.

The score takes Amoro's idea (a weight for each kind of debt, tiny tables are healthy), with two differences. A table of 2,000
files of 5 KB is small in bytes and still slow to read: debt is counted in files. And more small files never raise the
score: it is no mean of sizes, but what compaction could remove, beside what needs none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import ceil

from lakebound.operations.maintenance.assessment import Deduction, PartitionHealth, SizeBin, TableHealth
from lakebound.operations.maintenance.wording import count_words, size_words
from lakebound.spec.maintenance import MaintenanceSpec
from lakebound.tables.health import SIZE_BOUNDS_BYTES, MetadataFacts, PartitionFacts, TableFacts

OPEN_COST_BYTES = 4 * 1024 * 1024
"""What opening a file costs, in bytes that could be read meanwhile: Spark's ``spark.sql.files.openCostInBytes``."""

MAX_WORST_PARTITIONS = 10

SMALL_FILES_POINTS = 60.0
DELETE_FILES_POINTS = 15.0
LAYERS_POINTS = 10.0
METADATA_BYTES_POINTS = 10.0
LOG_FILES_POINTS = 5.0
"""Maximum deduction for each kind of debt, in points."""

_TRIGGERS_OF_HALF = 5
"""Removable files, in units of ``min_small_files``, that cost half the points in a table without a well-sized file."""

_DELETE_FILES_OF_HALF = 20
_METADATA_BYTES = 16 * 1024 * 1024
_METADATA_BYTES_PER_FILE = 4096
_LOG_FILES = 20_000
_MANY_PARTITIONS = 20


def assess(facts: TableFacts, policy: MaintenanceSpec) -> TableHealth:
    """Return the health of a table under a policy."""
    partitions = [_partition(partition, policy) for partition in facts.partitions]
    files, size_bytes = sum(part.files for part in partitions), sum(part.size_bytes for part in partitions)
    ideal_files = sum(part.ideal_files for part in partitions)
    delete_files = sum(part.delete_files for part in partitions) + facts.metadata.dangling_delete_files
    deductions = _deductions(partitions, delete_files, facts.metadata, policy)
    return TableHealth(
        table=facts.table,
        at_ms=facts.at_ms,
        version=facts.version,
        score=round(max(0.0, 100 - sum(deduction.points for deduction in deductions)), 1),
        deductions=deductions,
        notes=_notes(partitions, facts.metadata, policy),
        rows=facts.rows,
        files=files,
        size_bytes=size_bytes,
        small_files=sum(part.small_files for part in partitions),
        small_bytes=sum(part.small_bytes for part in partitions),
        ideal_files=ideal_files,
        removable_files=sum(part.removable_files for part in partitions),
        delete_files=delete_files,
        read_amplification=_read_amplification(files + delete_files, size_bytes, ideal_files, facts.metadata),
        size_histogram=_histogram(facts.partitions),
        partitions=len(partitions),
        worst_partitions=_worst(partitions),
        metadata=facts.metadata,
    )


def small_below_bytes(policy: MaintenanceSpec) -> int:
    """Return the size below which a file is small."""
    return int(policy.compaction.target_file_bytes * policy.compaction.small_file_ratio)


def _partition(facts: PartitionFacts, policy: MaintenanceSpec) -> PartitionHealth:
    target, below = policy.compaction.target_file_bytes, small_below_bytes(policy)
    size_bytes = sum(file.size_bytes for file in facts.files)
    small = [file.size_bytes for file in facts.files if file.size_bytes < below]
    return PartitionHealth(
        name=facts.name,
        files=len(facts.files),
        size_bytes=size_bytes,
        small_files=len(small),
        small_bytes=sum(small),
        ideal_files=max(1, ceil(size_bytes / target)),
        removable_files=max(0, len(small) - max(1, ceil(sum(small) / target))),
        delete_files=facts.delete_files,
    )


def _deductions(
    partitions: Sequence[PartitionHealth], delete_files: int, metadata: MetadataFacts, policy: MaintenanceSpec
) -> tuple[Deduction, ...]:
    well_sized = sum(part.files - part.small_files for part in partitions)
    found = [
        _small_files(partitions, well_sized, policy),
        _delete_files(delete_files, well_sized),
        _over(
            metadata.log_tail_commits,
            policy.max_log_tail_commits,
            LAYERS_POINTS,
            "{found} commits since the last log checkpoint: each reader replays them (limit {limit})",
        ),
        _over(
            metadata.manifests,
            policy.max_manifests,
            LAYERS_POINTS,
            "{found} manifests: each reader plans through them (limit {limit})",
        ),
        _metadata_bytes(metadata, well_sized),
        _over(
            metadata.log_files,
            _LOG_FILES,
            LOG_FILES_POINTS,
            "{found} files in the log folder: each reader that looks for the newest commit lists them (limit {limit})",
        ),
    ]
    return tuple(sorted((one for one in found if one.points > 0), key=lambda one: -one.points))


def _small_files(partitions: Sequence[PartitionHealth], well_sized: int, policy: MaintenanceSpec) -> Deduction:
    """Deduct for the table as a whole, or half as much for its worst partition where that is more: some query reads just it."""
    half = _TRIGGERS_OF_HALF * policy.compaction.min_small_files
    removable = sum(part.removable_files for part in partitions)
    whole = _share(removable, well_sized + half)
    worst = max(partitions, key=lambda part: _partition_share(part, half), default=None)
    below = size_words(small_below_bytes(policy))
    if worst is None or _partition_share(worst, half) / 2 <= whole:
        files, small = sum(part.files for part in partitions), sum(part.small_files for part in partitions)
        sentence = f"{small:,} of {count_words(files, 'file')} are below {below}: compaction would leave {files - removable:,}"
        return Deduction(points=round(SMALL_FILES_POINTS * whole, 1), sentence=sentence)
    return Deduction(
        points=round(SMALL_FILES_POINTS * _partition_share(worst, half) / 2, 1),
        sentence=f"{worst.small_files:,} of {count_words(worst.files, 'file')} in partition {worst.name} are below {below}: "
        f"compaction would leave {worst.files - worst.removable_files:,} there",
    )


def _partition_share(part: PartitionHealth, half: int) -> float:
    return _share(part.removable_files, part.files - part.small_files + half)


def _delete_files(delete_files: int, well_sized: int) -> Deduction:
    return Deduction(
        points=round(DELETE_FILES_POINTS * _share(delete_files, well_sized + _DELETE_FILES_OF_HALF), 1),
        sentence=f"{count_words(delete_files, 'delete file or vector', 'delete files or vectors')} must be applied to the data "
        f"that is read",
    )


def _metadata_bytes(metadata: MetadataFacts, well_sized: int) -> Deduction:
    """Deduct for metadata beyond what well-sized files explain. Small files explain none: they would raise the score."""
    limit = _METADATA_BYTES + _METADATA_BYTES_PER_FILE * well_sized
    return Deduction(
        points=_points_over(metadata.metadata_bytes, limit, METADATA_BYTES_POINTS),
        sentence=f"{size_words(metadata.metadata_bytes)} of metadata: readers load them, and Iceberg commits rewrite a part "
        f"(limit {size_words(limit)} with {well_sized:,} well-sized files)",
    )


def _over(found: int, limit: int, points: float, sentence: str) -> Deduction:
    return Deduction(
        points=_points_over(found, limit, points), sentence=sentence.format(found=f"{found:,}", limit=f"{limit:,}")
    )


def _points_over(found: int, limit: int, points: float) -> float:
    """Return none up to the limit, half the points at twice the limit, and nearly all far beyond."""
    return round(points * (1 - limit / found), 1) if found > limit else 0.0


def _share(debt: int, beside: int) -> float:
    return debt / (debt + beside) if debt else 0.0


def _notes(partitions: Sequence[PartitionHealth], metadata: MetadataFacts, policy: MaintenanceSpec) -> tuple[str, ...]:
    notes = []
    mean = sum(part.size_bytes for part in partitions) / max(1, len(partitions))
    if len(partitions) >= _MANY_PARTITIONS and mean < small_below_bytes(policy) / 8:
        notes.append(
            f"{len(partitions):,} partitions hold {size_words(mean)} each on average, and compaction joins no partitions: "
            f"a coarser partition_by would give larger files"
        )
    if metadata.dangling_delete_files:
        notes.append(f"{metadata.dangling_delete_files:,} delete files belong to partitions without a data file")
    return tuple(notes)


def _read_amplification(opened: int, size_bytes: int, ideal_files: int, metadata: MetadataFacts) -> float:
    ideal = ideal_files * OPEN_COST_BYTES + size_bytes
    return round((opened * OPEN_COST_BYTES + size_bytes + metadata.metadata_bytes) / ideal, 2) if ideal else 1.0


def _histogram(partitions: Sequence[PartitionFacts]) -> tuple[SizeBin, ...]:
    counts, sizes = [0] * (len(SIZE_BOUNDS_BYTES) + 1), [0] * (len(SIZE_BOUNDS_BYTES) + 1)
    for partition in partitions:
        for file in partition.files:
            index = bisect_left(SIZE_BOUNDS_BYTES, file.size_bytes)
            counts[index] += 1
            sizes[index] += file.size_bytes
    bounds: tuple[int | None, ...] = (*SIZE_BOUNDS_BYTES, None)
    return tuple(
        SizeBin(up_to_bytes=bound, files=count, size_bytes=size)
        for bound, count, size in zip(bounds, counts, sizes, strict=True)
    )


def _worst(partitions: Sequence[PartitionHealth]) -> tuple[PartitionHealth, ...]:
    found = sorted((part for part in partitions if part.removable_files), key=lambda part: (-part.removable_files, part.name))
    return tuple(found[:MAX_WORST_PARTITIONS])
