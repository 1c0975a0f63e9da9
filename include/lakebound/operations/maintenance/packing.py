"""Which small files of a partition are written together, and as how many. Pure.

A rewrite takes the files below a size, the smallest first. How far up it goes decides how often a byte is written again: a file
of 100 MB must not be rewritten to take in 5 MB of new ones. So it goes only as far as the largest file that it takes comes out
at least twice as large, or, where it then is no small file any more, a third larger. A byte is therefore rewritten at most
log2(target / size at which it came) times, and once more at the end. A first run over thousands of tiny files takes them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from lakebound.spec.maintenance import CompactionSpec
from lakebound.tables.health import FileFacts

GROWTH = 2.0
"""Of the largest file that a rewrite takes, at least."""

LAST_GROWTH = 4 / 3
"""The same where what comes out is no small file any more: it will not be taken again."""

_NEXT_TRIED = 0.9
"""Of sizes at which a cut is tried: each is below this part of the one before, where that was no good."""


@dataclass(frozen=True)
class Packing:
    """A rewrite of one partition's small files.

    Attributes:
        below_bytes: Files of this size and above are left alone.
        cost_bytes: Of the files that are rewritten.
        files_taken: How many are rewritten.
        files_written: As how many.
    """

    below_bytes: int
    cost_bytes: int
    files_taken: int
    files_written: int

    @property
    def files_removed(self) -> int:
        """Files fewer."""
        return self.files_taken - self.files_written


def pack(
    files: Sequence[FileFacts], spec: CompactionSpec, *, joins_neighbours: bool, max_bytes: int | None = None
) -> Packing | None:
    """Return the largest rewrite that is worth it; None where none removes at least ``min_files_removed``.

    Args:
        files: Of the partition.
        spec: What is small, and what the files should be.
        joins_neighbours: The engine joins neighbours in time up to the target's size, as Delta's; Iceberg's splits evenly.
        max_bytes: What it may rewrite at most.
    """
    limit = small_below(spec)
    small = sorted((file for file in files if file.size_bytes < limit), key=lambda file: file.size_bytes)
    sizes = [file.size_bytes for file in small]
    totals = [0, *accumulate(sizes)]
    tried = float("inf")
    for count in range(len(small), 1, -1):
        largest, total = sizes[count - 1], totals[count]
        if count < len(small) and sizes[count] == largest:
            continue  # no bound lies between files of one size
        if (max_bytes is not None and total > max_bytes) or largest > tried:
            continue
        below = sizes[count] if count < len(small) else limit
        found = _delta(small[:count], below, spec) if joins_neighbours else _iceberg(sizes[:count], total, below, spec)
        if found is not None and found.files_removed >= spec.min_files_removed:
            return found
        tried = largest * _NEXT_TRIED
    return None


def small_below(spec: CompactionSpec) -> int:
    """Return the size below which a file is small."""
    return int(spec.target_file_bytes * spec.small_file_ratio)


def iceberg_files_written(total_bytes: int, below_bytes: int, target_bytes: int) -> int:
    """Return into how many files Iceberg's ``rewrite_data_files`` splits a group.

    It rounds down where what is then too much makes each file at most a tenth larger than the target, and else up
    (``SizeBasedFileRewritePlanner.expectedOutputFiles``, Iceberg 1.12).
    """
    if total_bytes < target_bytes:
        return 1
    whole, rest = divmod(total_bytes, target_bytes)
    if rest > below_bytes or total_bytes / whole >= 1.1 * target_bytes:
        return int(whole + (1 if rest else 0))
    return int(whole)


def even_bins(sizes: Sequence[int], count: int) -> list[range]:
    """Return which neighbours are written together as one of ``count`` files of about one size; none of one file alone.

    Args:
        sizes: Of the files in bytes, in their order.
        count: Of the files that are written.
    """
    total = sum(sizes)
    joined: dict[int, list[int]] = {}
    for number, after in enumerate(accumulate(sizes)):
        middle = after - sizes[number] / 2
        # The middle of empty files at the end is the end itself, which belongs to the last file that is written.
        joined.setdefault(min(int(middle * count / total), count - 1) if total else 0, []).append(number)
    return [range(one[0], one[-1] + 1) for one in joined.values() if len(one) > 1]


def delta_bins(files: Sequence[FileFacts], target_bytes: int) -> list[list[FileFacts]]:
    """Return which files Delta's engine joins: neighbours in time, as long as they are no more than the target together."""
    bins: list[list[FileFacts]] = []
    free = -1
    for file in sorted(files, key=lambda file: file.added_at_ms):
        if file.size_bytes > free:
            bins.append([])
            free = target_bytes
        bins[-1].append(file)
        free -= file.size_bytes
    return [joined for joined in bins if len(joined) > 1]


def _iceberg(sizes: Sequence[int], total: int, below: int, spec: CompactionSpec) -> Packing | None:
    written = iceberg_files_written(total, below, spec.target_file_bytes)
    if not _grows(sizes[-1], total / written, spec):
        return None
    return Packing(below, total, len(sizes), written)


def _delta(files: Sequence[FileFacts], below: int, spec: CompactionSpec) -> Packing | None:
    """Return the rewrite, None where most of what it writes would be large files that hardly grow."""
    bins = [[file.size_bytes for file in joined] for joined in delta_bins(files, spec.target_file_bytes)]
    cost = sum(map(sum, bins))
    idle = sum(max(joined) for joined in bins if not _grows(max(joined), sum(joined), spec))
    if not bins or 2 * idle > cost:
        return None
    return Packing(below, cost, sum(map(len, bins)), len(bins))


def _grows(largest: int, written_bytes: float, spec: CompactionSpec) -> bool:
    is_last = written_bytes >= small_below(spec)
    return written_bytes >= largest * (LAST_GROWTH if is_last else GROWTH)
