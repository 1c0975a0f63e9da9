"""What is thought of a table's health, as frozen values; ``lakebound.operations.maintenance.score`` makes them."""

from __future__ import annotations

from lakebound.frozen import Frozen
from lakebound.tables.health import MetadataFacts


class Deduction(Frozen):
    """Points taken from 100, and the sentence that says why."""

    points: float
    sentence: str


class SizeBin(Frozen):
    """One bin of the size histogram.

    Attributes:
        up_to_bytes: Its upper bound, which belongs to it; None: the last bin has none.
    """

    up_to_bytes: int | None
    files: int
    size_bytes: int


class PartitionHealth(Frozen):
    """One partition in figures.

    Attributes:
        name: Such as ``day=2026-11-20``; empty for an unpartitioned table.
        small_files: Below the policy's ``small_file_ratio`` of its target.
        small_bytes: Of these.
        ideal_files: Files of the target's size that would hold its bytes, at least one.
        removable_files: Files fewer, were the small ones written together as files of the target's size.
    """

    name: str
    files: int
    size_bytes: int
    small_files: int
    small_bytes: int
    ideal_files: int
    removable_files: int
    delete_files: int = 0


class TableHealth(Frozen):
    """A table's health.

    Attributes:
        table: ``format:name``.
        score: From 0 to 100: 100 less the deductions.
        deductions: The largest first.
        notes: What is worth knowing and costs no points, as no maintenance would mend it.
        read_amplification: What a full scan costs compared with the same rows in ideal files, opening a file counted as
            Spark counts it (``spark.sql.files.openCostInBytes``, 4 MiB)::

                ((files + delete files) * open cost + bytes + metadata bytes) / (ideal files * open cost + bytes)
        partitions: How many there are.
        worst_partitions: Those from which compaction would remove most files, at most ten.
        metadata: As it was read.
    """

    table: str
    at_ms: int
    version: str
    score: float
    deductions: tuple[Deduction, ...]
    notes: tuple[str, ...]
    rows: int
    files: int
    size_bytes: int
    small_files: int
    small_bytes: int
    ideal_files: int
    removable_files: int
    delete_files: int
    read_amplification: float
    size_histogram: tuple[SizeBin, ...]
    partitions: int
    worst_partitions: tuple[PartitionHealth, ...]
    metadata: MetadataFacts
