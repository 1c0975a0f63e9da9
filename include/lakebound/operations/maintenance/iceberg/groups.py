"""Which files of a partition one commit rewrites together, and which of them become one file. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from lakebound.operations.maintenance.packing import even_bins, iceberg_files_written
from lakebound.operations.maintenance.steps import Compact
from lakebound.tables.iceberg.live_files import LiveFile

FILES_PER_COMMIT = 8
INPUTS_PER_COMMIT = 5_000
"""Each attempt writes an entry for each of them, and must end before the stream's next commit."""


def groups(files: Sequence[LiveFile], step: Compact) -> Iterator[list[list[LiveFile]]]:
    """Yield the files that a step rewrites in groups: what one commit replaces, by the file that takes their place.

    Args:
        files: Of the table, oldest first.
        step: The partition, and sizes in bytes.
    """
    small = [one for one in files if one.size_bytes < step.below_bytes and dict(one.partition) == step.partition]
    if not small:
        return
    sizes = [one.size_bytes for one in small]
    written = iceberg_files_written(sum(sizes), step.below_bytes, step.target_file_bytes)
    group: list[list[LiveFile]] = []
    for joined in even_bins(sizes, written):
        for part in _parts([small[number] for number in joined]):
            if len(group) == FILES_PER_COMMIT or sum(map(len, group)) + len(part) > INPUTS_PER_COMMIT:
                yield group
                group = []
            group.append(part)
    if group:
        yield group


def _parts(files: Sequence[LiveFile]) -> Iterator[list[LiveFile]]:
    """Yield the files in as few parts as one commit takes each, of about as many files: the next run joins what they become."""
    count = ceil(len(files) / INPUTS_PER_COMMIT)
    for number in range(count):
        yield list(files[number * len(files) // count : (number + 1) * len(files) // count])
