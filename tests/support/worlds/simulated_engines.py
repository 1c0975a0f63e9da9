"""What the engines make of a compaction's step, on sizes alone: written from how they work, not from how it is planned."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from lakebound.operations.maintenance.steps import Compact
from lakebound.tables.health import FileFacts, MetadataFacts, PartitionFacts, TableFacts

_TARGETS_PER_GROUP = 8
Sizes = list[int]


def facts(table: str, partitions: dict[str, list[FileFacts]], now_ms: int = 0, delete_files: int = 0) -> TableFacts:
    """Return a table of these partitions; "" is that of an unpartitioned table."""
    return TableFacts(
        table=table,
        at_ms=now_ms,
        version="7",
        rows=1,
        partitions=tuple(
            PartitionFacts(values={"day": name} if name else {}, files=tuple(files), delete_files=delete_files)
            for name, files in partitions.items()
        ),
        metadata=MetadataFacts(),
    )


def files(sizes: Sequence[int], at_ms: int = 0) -> list[FileFacts]:
    """Return files of these sizes, added one after the other from a time on."""
    return [FileFacts(size_bytes=size, added_at_ms=at_ms + number) for number, size in enumerate(sizes)]


def rewritten(step: Compact, before: Sequence[FileFacts], at_ms: int) -> tuple[list[FileFacts], int]:
    """Return a partition's files after a step, and the bytes that were rewritten."""
    taken = [file for file in before if file.size_bytes < step.below_bytes]
    rest = [file for file in before if file.size_bytes >= step.below_bytes]
    engine = _delta if step.table.startswith("delta:") else _iceberg
    untouched, outputs, cost = engine(step, sorted(taken, key=lambda file: file.added_at_ms))
    return [*rest, *untouched, *files(outputs, at_ms)], cost


def _delta(step: Compact, taken: list[FileFacts]) -> tuple[list[FileFacts], Sizes, int]:
    """Groups, oldest first; in each, neighbours are joined while they fit the target. What stays alone is left alone."""
    untouched: list[FileFacts] = []
    outputs: Sizes = []
    cost = 0
    for group in _groups(step, taken):
        joined: list[FileFacts] = []
        for file in [*group, None]:
            if file is not None and sum(one.size_bytes for one in joined) + file.size_bytes <= step.target_file_bytes:
                joined.append(file)
                continue
            if len(joined) > 1:
                outputs.append(sum(one.size_bytes for one in joined))
                cost += outputs[-1]
            else:
                untouched += joined
            joined = [file] if file is not None else []
    return untouched, outputs, cost


def _iceberg(step: Compact, taken: list[FileFacts]) -> tuple[list[FileFacts], Sizes, int]:
    """Groups; each is split evenly, into a file less where none gets a tenth too large by it."""
    untouched: list[FileFacts] = []
    outputs: Sizes = []
    cost = 0
    for group in _groups(step, taken):
        size = sum(file.size_bytes for file in group)
        if len(group) < 2:
            untouched += group
            continue
        count = max(1, ceil(size / step.target_file_bytes))
        is_spread = size % step.target_file_bytes <= step.below_bytes and count > 1
        if is_spread and size / (count - 1) < 1.1 * step.target_file_bytes:
            count -= 1
        outputs += [size // count] * count
        cost += size
    return untouched, outputs, cost


def _groups(step: Compact, taken: list[FileFacts]) -> list[list[FileFacts]]:
    groups: list[list[FileFacts]] = [[]]
    for file in taken:
        size = sum(one.size_bytes for one in groups[-1])
        if groups[-1] and size + file.size_bytes > _TARGETS_PER_GROUP * step.target_file_bytes:
            groups.append([])
        groups[-1].append(file)
    return groups
